//! Who asks for the end of a run.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nix::sys::signal::Signal;

#[cfg(target_os = "linux")]
#[path = "abort/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "abort/portable.rs"]
mod system;

/// What other systems have, for the tests of it.
#[cfg(all(test, target_os = "linux"))]
#[path = "abort/portable.rs"]
mod portable;

use system::{Bell, SI_KERNEL};

/// The caller's means of ending runs. The first request asks every process of a run to end, and gives
/// them the grace period; the second one ends them at once.
#[derive(Debug)]
pub struct Abort {
    requests: AtomicU32,
    /// Who is to hear of each request.
    listening: Mutex<Vec<Weak<Bell>>>,
    signals: Option<Signals>,
}

impl Default for Abort {
    fn default() -> Self {
        Self::new()
    }
}

impl Abort {
    /// A means that [`trigger`](Self::trigger) uses, for any number of runs.
    #[must_use]
    pub const fn new() -> Self {
        Self::by(None)
    }

    /// Each signal that this signalfd(2) gives is a request; it must be non-blocking. For one run at a
    /// time.
    ///
    /// With `shares_terminal` the command feels the INT or QUIT of a key press by itself, and what it
    /// makes of it is its own affair: those are no requests.
    #[must_use]
    pub const fn of_signals(fd: OwnedFd, shares_terminal: bool) -> Self {
        Self::by(Some(Signals {
            fd,
            shares_terminal,
            first: AtomicI32::new(0),
        }))
    }

    const fn by(signals: Option<Signals>) -> Self {
        Self {
            requests: AtomicU32::new(0),
            listening: Mutex::new(Vec::new()),
            signals,
        }
    }

    /// Asks for the end of the runs.
    pub fn trigger(&self) {
        self.requests.fetch_add(1, Ordering::SeqCst);
        for listener in self.listeners().iter().filter_map(Weak::upgrade) {
            listener.ring();
        }
    }

    /// The first signal that was a request, if one was.
    pub fn signal(&self) -> Option<i32> {
        self.requests();
        let first = self.signals.as_ref()?.first.load(Ordering::SeqCst);
        (first != 0).then_some(first)
    }

    /// How many times the end was asked for until now.
    pub fn requests(&self) -> u32 {
        let new = self.signals.as_ref().map_or(0, Signals::take);
        self.requests.fetch_add(new, Ordering::SeqCst).saturating_add(new)
    }

    /// Listens on behalf of one run.
    ///
    /// # Errors
    /// The operating system's, when it has no descriptor to give.
    pub(super) fn listen(&self) -> io::Result<Requests<'_>> {
        let by = if let Some(signals) = &self.signals {
            By::Signals(signals)
        } else {
            let event = Arc::new(Bell::new()?);
            let mut listening = self.listeners();
            listening.retain(|listener| listener.strong_count() > 0);
            listening.push(Arc::downgrade(&event));
            // One that came before this was listening is heard of at once.
            if self.requests() > 0 {
                event.ring();
            }
            By::Event(event)
        };
        Ok(Requests {
            abort: self,
            by,
            seen: 0,
        })
    }

    fn listeners(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Bell>>> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests that one run has heard of.
#[derive(Debug)]
pub(super) struct Requests<'a> {
    abort: &'a Abort,
    by: By<'a>,
    seen: u32,
}

/// By what a run hears of requests.
#[derive(Debug)]
enum By<'a> {
    Event(Arc<Bell>),
    Signals(&'a Signals),
}

impl Requests<'_> {
    /// What to wait for.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.by {
            By::Event(event) => event.as_fd(),
            By::Signals(signals) => signals.fd.as_fd(),
        }
    }

    /// How many requests there were since this was last asked.
    pub(super) fn since(&mut self) -> u32 {
        if let By::Event(event) = &self.by {
            // Read before the count: what comes in between is heard of again, and counts for nothing.
            event.hush();
        }
        let all = self.abort.requests();
        let new = all.saturating_sub(self.seen);
        self.seen = all;
        new
    }
}

/// Signals that are read, and the first of them that was a request.
#[derive(Debug)]
struct Signals {
    fd: OwnedFd,
    shares_terminal: bool,
    first: AtomicI32,
}

impl Signals {
    /// Reads the signals that have come, and counts the requests among them.
    fn take(&self) -> u32 {
        let mut count = 0;
        while let Some((number, code)) = system::signal(&self.fd) {
            if is_request(number, code, self.shares_terminal) {
                count += 1;
                let _ = self
                    .first
                    .compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst);
            }
        }
        count
    }
}

/// Each signal is a request, but for that of a key which the command felt as well: the kernel marks it.
fn is_request(number: i32, code: i32, shares_terminal: bool) -> bool {
    let key = code == SI_KERNEL && (number == Signal::SIGINT as i32 || number == Signal::SIGQUIT as i32);
    !(shares_terminal && key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{SigSet, raise};
    use nix::sys::signalfd::{SfdFlags, SignalFd};

    #[test]
    fn a_bell_of_a_pipe_is_readable_from_the_first_ring_until_it_is_hushed() {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        let bell = portable::Bell::new().unwrap();
        let rings = || poll(&mut [PollFd::new(bell.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO).unwrap() == 1;
        assert!(!rings());
        // More often than the pipe has room for.
        for _ in 0..100_000 {
            bell.ring();
        }
        assert!(rings());
        bell.hush();
        assert!(!rings());
    }

    #[test]
    fn signals_in_a_pipe_are_taken_one_by_one_and_count_as_keys() {
        let (read, write) = std::io::pipe().unwrap();
        nix::fcntl::fcntl(&read, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK)).unwrap();
        let read = OwnedFd::from(read);
        assert_eq!(portable::signal(&read), None);
        nix::unistd::write(&write, &[2, 15]).unwrap();
        let taken = [
            portable::signal(&read),
            portable::signal(&read),
            portable::signal(&read),
        ];
        let key = portable::SI_KERNEL;
        assert_eq!(taken, [Some((2, key)), Some((15, key)), None]);
        assert_eq!(key, SI_KERNEL, "what is_request knows a key by");
    }

    #[test]
    fn a_key_pressed_at_a_shared_terminal_is_the_commands_affair() {
        let (int, hup, sent) = (Signal::SIGINT as i32, Signal::SIGHUP as i32, nix::libc::SI_USER);
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
            let abort = Abort::of_signals(fd.as_fd().try_clone_to_owned().unwrap(), true);
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
    fn everybody_who_listens_hears_of_every_request_and_of_those_before() {
        let abort = Abort::new();
        let (mut one, mut other) = (abort.listen().unwrap(), abort.listen().unwrap());
        assert_eq!((one.since(), other.since()), (0, 0));
        abort.trigger();
        assert_eq!((one.since(), one.since()), (1, 0));
        abort.trigger();
        assert_eq!((one.since(), other.since()), (1, 2));
        let mut late = abort.listen().unwrap();
        assert_eq!(late.since(), 2);
    }
}
