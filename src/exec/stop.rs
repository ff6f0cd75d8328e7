//! Ending a run: who asks for it, and how it is done.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::libc::SI_KERNEL;

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use ringfence_backend::Launched;

use super::tree;

/// Why a run was ended from outside. The first cause stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Its deadline passed.
    Deadline,
    /// The caller asked.
    Abort,
    /// It said nothing for too long.
    Idle,
    /// It said too much.
    Output,
}

/// The caller's means of ending a run. The first request asks every process of the run to end, and
/// gives them the grace period; the second one ends them at once.
#[derive(Debug)]
pub struct Abort {
    trigger: Trigger,
    requests: AtomicU32,
}

#[derive(Debug)]
enum Trigger {
    Event(EventFd),
    Signals(Signals),
}

impl Abort {
    /// A means that [`trigger`](Self::trigger) uses.
    ///
    /// # Errors
    /// The operating system's, when it has no descriptor to give.
    pub fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self::by(Trigger::Event(EventFd::from_value_and_flags(0, flags)?)))
    }

    /// Each signal that this signalfd(2) gives is a request; it must be non-blocking.
    ///
    /// With `shares_terminal` the command feels the INT or QUIT of a key press by itself, and what it
    /// makes of it is its own affair: those are no requests.
    #[must_use]
    pub const fn of_signals(fd: SignalFd, shares_terminal: bool) -> Self {
        Self::by(Trigger::Signals(Signals {
            fd,
            shares_terminal,
            first: AtomicI32::new(0),
        }))
    }

    const fn by(trigger: Trigger) -> Self {
        Self {
            trigger,
            requests: AtomicU32::new(0),
        }
    }

    /// Asks for the end of the run. Without effect on a means that signals use, and after the end.
    pub fn trigger(&self) {
        if let Trigger::Event(event) = &self.trigger {
            // A counter that is full has been triggered before.
            let _ = event.write(1);
        }
    }

    /// The first signal that was a request, if one was.
    pub fn signal(&self) -> Option<i32> {
        self.requests();
        match &self.trigger {
            Trigger::Signals(signals) => Some(signals.first.load(Ordering::SeqCst)).filter(|number| *number != 0),
            Trigger::Event(_) => None,
        }
    }

    /// How many times the end was asked for until now.
    pub(super) fn requests(&self) -> u32 {
        let new = match &self.trigger {
            Trigger::Event(event) => event.read().map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX)),
            Trigger::Signals(signals) => signals.take(),
        };
        self.requests.fetch_add(new, Ordering::SeqCst).saturating_add(new)
    }
}

impl AsFd for Abort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.trigger {
            Trigger::Event(event) => event.as_fd(),
            Trigger::Signals(signals) => signals.fd.as_fd(),
        }
    }
}

/// Signals that are read, and the first of them that was a request.
#[derive(Debug)]
struct Signals {
    fd: SignalFd,
    shares_terminal: bool,
    first: AtomicI32,
}

impl Signals {
    /// Reads the signals that have come, and counts the requests among them.
    fn take(&self) -> u32 {
        let mut count = 0;
        while let Ok(Some(info)) = self.fd.read_signal() {
            if is_request(info.ssi_signo, info.ssi_code, self.shares_terminal) {
                count += 1;
                let number = info.ssi_signo.cast_signed();
                let _ = self
                    .first
                    .compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst);
            }
        }
        count
    }
}

/// Each signal is a request, but for that of a key which the command felt as well: the kernel marks it.
fn is_request(number: u32, code: i32, shares_terminal: bool) -> bool {
    let key = code == SI_KERNEL && (number == Signal::SIGINT as u32 || number == Signal::SIGQUIT as u32);
    !(shares_terminal && key)
}

/// The end of a run in two steps: TERM, and after the grace period KILL.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) cause: Cause,
    kill_at: Instant,
    killed: bool,
}

impl Stop {
    /// Asks every process of the run to end. A stopped one is continued so that it can.
    pub(super) fn begin(cause: Cause, grace: Duration, process: &Launched) -> Self {
        tree::signal(process.reaper(), &[Signal::SIGTERM, Signal::SIGCONT]);
        Self {
            cause,
            kill_at: Instant::now() + grace,
            killed: false,
        }
    }

    /// When the next step is due; after the kill, when that should have taken effect.
    pub(super) fn due(&self, bound: Duration) -> Instant {
        self.kill_at + if self.killed { bound } else { Duration::ZERO }
    }

    /// Whether the kill is longer ago than this.
    pub(super) fn is_overdue(&self, bound: Duration) -> bool {
        self.killed && Instant::now() >= self.kill_at + bound
    }

    /// Takes the step that is due, or is asked for `now`.
    pub(super) fn advance(&mut self, now: bool, process: &Launched) {
        if !self.killed && (now || Instant::now() >= self.kill_at) {
            process.kill();
            self.killed = true;
            self.kill_at = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{SigSet, raise};
    use nix::sys::signalfd::SfdFlags;

    #[test]
    fn a_key_pressed_at_a_shared_terminal_is_the_commands_affair() {
        let (int, hup, sent) = (Signal::SIGINT as u32, Signal::SIGHUP as u32, nix::libc::SI_USER);
        assert!(!is_request(int, SI_KERNEL, true));
        assert!(is_request(int, sent, true), "a process sent it to Ringfence");
        assert!(
            is_request(int, SI_KERNEL, false),
            "the command has no terminal to feel the key at"
        );
        assert!(is_request(hup, SI_KERNEL, true), "the terminal is gone");
    }

    #[test]
    fn signals_are_counted_and_the_first_is_kept() {
        // The mask and what is pending belong to this thread alone.
        let read = std::thread::spawn(|| {
            let mut set = SigSet::empty();
            set.add(Signal::SIGQUIT);
            set.add(Signal::SIGHUP);
            set.thread_block().unwrap();
            let fd = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK).unwrap();
            let abort = Abort::of_signals(fd, true);
            assert_eq!((abort.requests(), abort.signal()), (0, None));
            raise(Signal::SIGQUIT).unwrap();
            assert_eq!(abort.requests(), 1, "a process sent it, no key");
            raise(Signal::SIGHUP).unwrap();
            assert_eq!(abort.requests(), 2);
            abort.signal()
        });
        assert_eq!(read.join().unwrap(), Some(Signal::SIGQUIT as i32));
    }

    #[test]
    fn every_request_counts() {
        let abort = Abort::new().unwrap();
        assert_eq!(abort.requests(), 0);
        abort.trigger();
        abort.trigger();
        assert_eq!(abort.requests(), 2);
        abort.trigger();
        assert_eq!(abort.requests(), 3);
    }
}
