//! What a signal to Ringfence means for the run.
//!
//! INT, TERM, HUP and QUIT are blocked and read from a signalfd, and each of them ends the run in
//! good order: the command is asked to stop, and the report is still written; the second one ends it
//! at once. Two cases differ.
//!
//! * A command that shares the caller's terminal gets the INT or QUIT of a key press by itself,
//!   and what it makes of it is its own affair (an editor goes on).
//! * A signal that was ignored when Ringfence was started stays ignored, as under nohup(1).

use std::io;
use std::os::fd::AsFd;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use ringfence::{Abort, Error};
use ringfence_backend::descriptor;

const STOPPING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// The signals that end the run, from now on until [`StopSignals::finish`].
pub(crate) struct StopSignals {
    abort: Abort,
    before: SigSet,
}

impl StopSignals {
    /// Blocks the signals and watches for them. `captured`: the command has a session of its own.
    ///
    /// # Errors
    /// [`Error::Host`] when the system gives no signalfd.
    pub(crate) fn watch(captured: bool) -> Result<Self, Error> {
        Self::try_watch(captured).map_err(|source| Error::Host {
            doing: "watching for signals",
            source,
        })
    }

    fn try_watch(captured: bool) -> io::Result<Self> {
        let mut stopping = SigSet::empty();
        for signal in STOPPING
            .into_iter()
            .filter(|signal| !descriptor::is_ignored(*signal as i32))
        {
            stopping.add(signal);
        }
        let before = SigSet::thread_get_mask()?;
        stopping.thread_block()?;
        let signals = SignalFd::with_flags(&stopping, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self {
            abort: Abort::of_signals(signals.as_fd().try_clone_to_owned()?, !captured && has_terminal()),
            before,
        })
    }

    /// What the run has to obey.
    pub(crate) const fn abort(&self) -> &Abort {
        &self.abort
    }

    /// The first signal that told Ringfence to stop. From here signals act as they did before, so
    /// that a reader who does not take the report cannot hold Ringfence for ever.
    pub(crate) fn finish(self) -> Option<i32> {
        let told = self.abort.signal();
        // Signals stay blocked when this fails, which harms nothing but the promptness of the end.
        let _ = self.before.thread_set_mask();
        told
    }
}

/// Whether this process has a controlling terminal: only then can a key send signals.
fn has_terminal() -> bool {
    use nix::fcntl::{OFlag, open};
    open(
        "/dev/tty",
        OFlag::O_RDONLY | OFlag::O_NOCTTY | OFlag::O_CLOEXEC,
        nix::sys::stat::Mode::empty(),
    )
    .is_ok()
}
