//! The processes of a run, as its reaper finds them.

use nix::sys::signal::Signal;
use ringfence_backend::Launched;

/// Sends these signals to every process of the run that can be found.
pub(in crate::exec) fn signal(process: &Launched, signals: &[Signal]) {
    for signal in signals {
        process.signal(*signal);
    }
}

/// Whether the command was stopped and not continued since.
pub(in crate::exec) fn is_stopped(process: &Launched) -> bool {
    process.is_stopped()
}
