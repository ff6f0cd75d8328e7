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
use std::os::fd::OwnedFd;

use nix::sys::signal::{SigSet, Signal, raise};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};
use ringfence::{Abort, Error};
use ringfence_backend::descriptor;

#[cfg(target_os = "linux")]
#[path = "signals/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "signals/thread.rs"]
mod system;

const STOPPING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// The signals that end the run, from now on until [`StopSignals::finish`].
pub(crate) struct StopSignals {
    abort: Abort,
    before: SigSet,
    terminal: Option<Terminal>,
}

/// The terminal that a command shares, when it was this process group's.
struct Terminal {
    device: OwnedFd,
    group: Pid,
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
        let signals = system::source(stopping)?;
        let device = if captured { None } else { terminal() };
        Ok(Self {
            abort: Abort::of_signals(signals, device.is_some()),
            before,
            terminal: device.and_then(Terminal::of_this_group),
        })
    }

    /// What the run has to obey.
    pub(crate) const fn abort(&self) -> &Abort {
        &self.abort
    }

    /// Stops this process as well when the command that shares its terminal was stopped: whoever waits
    /// for Ringfence at that terminal gets it back. Returns when it is continued; false when there was no
    /// reason to stop.
    pub(crate) fn stop_along(&self) -> bool {
        self.terminal.as_ref().map(Terminal::leave_for_a_while).is_some()
    }

    /// The first signal that told Ringfence to stop. From here signals act as they did before, so
    /// that a reader who does not take the report cannot hold Ringfence for ever.
    pub(crate) fn finish(self) -> Option<i32> {
        let told = self.abort.signal();
        if let Some(terminal) = &self.terminal {
            terminal.take_back();
        }
        // Signals stay blocked when this fails, which harms nothing but the promptness of the end.
        let _ = self.before.thread_set_mask();
        told
    }
}

impl Terminal {
    fn of_this_group(device: OwnedFd) -> Option<Self> {
        let group = getpgrp();
        (tcgetpgrp(&device) == Ok(group)).then_some(Self { device, group })
    }

    /// Stops this process. Afterwards the terminal is again whose it was: a shell with job control inside
    /// has a process group of its own.
    fn leave_for_a_while(&self) {
        let inside = tcgetpgrp(&self.device);
        let _ = raise(Signal::SIGSTOP);
        if let Ok(inside) = inside
            && inside != self.group
            && tcgetpgrp(&self.device) == Ok(self.group)
        {
            self.give_to(inside);
        }
    }

    /// Gives the terminal back to this process group. A shell with job control does that itself when it
    /// ends, unless it runs in a PID namespace, where this group has no number (pid_namespaces(7)).
    fn take_back(&self) {
        self.give_to(self.group);
    }

    fn give_to(&self, group: Pid) {
        let mut set = SigSet::empty();
        // Whoever asks from the background is stopped otherwise (tcsetpgrp(3)).
        set.add(Signal::SIGTTOU);
        if set.thread_block().is_ok() {
            let _ = tcsetpgrp(&self.device, group);
        }
    }
}

/// The controlling terminal of this process, if it has one: only then can a key send signals.
fn terminal() -> Option<OwnedFd> {
    use nix::fcntl::{OFlag, open};
    open(
        "/dev/tty",
        OFlag::O_RDONLY | OFlag::O_NOCTTY | OFlag::O_CLOEXEC,
        nix::sys::stat::Mode::empty(),
    )
    .ok()
}
