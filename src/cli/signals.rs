//! What a signal to Ringfence means for the run.
//!
//! INT, TERM, HUP and QUIT are blocked and read from a signalfd, and each of them ends the run in
//! good order: the command is asked to stop, and the report is still written. Two cases differ.
//!
//! * A command that shares the caller's terminal gets the INT or QUIT of a key press by itself,
//!   and what it makes of it is its own affair (an editor goes on). The kernel marks those, and
//!   they do not end the run. A signalfd cannot tell them apart by being readable, so a thread
//!   reads it; it is only there when a terminal is, where nobody counts microseconds.
//! * A signal that was ignored when Ringfence was started stays ignored, as under nohup(1).

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::errno::Errno;
use nix::libc::SI_KERNEL;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use ringfence::{Abort, Error};
use ringfence_backend::descriptor;

const STOPPING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// The signals that end the run, from now on until [`StopSignals::finish`].
pub(crate) struct StopSignals {
    abort: Arc<Abort>,
    reader: Arc<Reader>,
    before: SigSet,
}

/// Reads the signals, and keeps the first that ends the run.
struct Reader {
    signals: SignalFd,
    /// Whether the command gets the terminal's signals by itself.
    terminal: bool,
    /// The number of the first signal that ends the run; 0 for none.
    told: AtomicI32,
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
        let terminal = !captured && has_terminal();
        let reader = Arc::new(Reader {
            signals,
            terminal,
            told: AtomicI32::new(0),
        });
        let abort = if terminal {
            let abort = Arc::new(Abort::new()?);
            relay(Arc::clone(&reader), Arc::clone(&abort))?;
            abort
        } else {
            Arc::new(Abort::watching(reader.signals.as_fd().try_clone_to_owned()?))
        };
        Ok(Self { abort, reader, before })
    }

    /// What the run has to obey.
    pub(crate) fn abort(&self) -> &Abort {
        &self.abort
    }

    /// The first signal that told Ringfence to stop. From here signals act as they did before, so
    /// that a reader who does not take the report cannot hold Ringfence for ever.
    pub(crate) fn finish(self) -> Option<i32> {
        while self.reader.next() != Next::Nothing {}
        // Signals stay blocked when this fails, which harms nothing but the promptness of the end.
        let _ = self.before.thread_set_mask();
        Some(self.reader.told.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}

#[derive(PartialEq, Eq)]
enum Next {
    Stop,
    Passed,
    Nothing,
}

impl Reader {
    /// Takes one signal, when there is one.
    fn next(&self) -> Next {
        match self.signals.read_signal() {
            Ok(Some(info)) if stops(info.ssi_signo, info.ssi_code, self.terminal) => {
                let number = info.ssi_signo.cast_signed();
                let _ = self
                    .told
                    .compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst);
                Next::Stop
            }
            Ok(Some(_)) => Next::Passed,
            Ok(None) | Err(_) => Next::Nothing,
        }
    }
}

/// Whether a signal ends the run: each does, but for that of a key which the command felt as well.
fn stops(number: u32, code: i32, terminal: bool) -> bool {
    let key = code == SI_KERNEL && (number == Signal::SIGINT as u32 || number == Signal::SIGQUIT as u32);
    !(terminal && key)
}

/// Starts the thread that tells signals apart. It ends with the program.
fn relay(reader: Arc<Reader>, abort: Arc<Abort>) -> io::Result<()> {
    let work = move || {
        loop {
            let mut waiting = [PollFd::new(reader.signals.as_fd(), PollFlags::POLLIN)];
            match poll(&mut waiting, PollTimeout::NONE) {
                Ok(_) if reader.next() == Next::Stop => abort.trigger(),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(work)
        .map(drop)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_pressed_at_a_shared_terminal_is_the_commands_affair() {
        let (int, hup, sent) = (Signal::SIGINT as u32, Signal::SIGHUP as u32, nix::libc::SI_USER);
        assert!(!stops(int, SI_KERNEL, true));
        assert!(stops(int, sent, true), "a process sent it to Ringfence");
        assert!(
            stops(int, SI_KERNEL, false),
            "the command has no terminal to feel the key at"
        );
        assert!(stops(hup, SI_KERNEL, true), "the terminal is gone");
    }

    #[test]
    fn a_signal_that_was_sent_is_read_and_kept() {
        // The mask and what is pending belong to this thread alone.
        let reader = std::thread::spawn(|| {
            let mut set = SigSet::empty();
            set.add(Signal::SIGQUIT);
            set.thread_block().unwrap();
            let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK).unwrap();
            let reader = Reader {
                signals,
                terminal: true,
                told: AtomicI32::new(0),
            };
            assert!(reader.next() == Next::Nothing);
            nix::sys::signal::raise(Signal::SIGQUIT).unwrap();
            assert!(reader.next() == Next::Stop, "a process sent it, no key");
            reader
        });
        assert_eq!(
            reader.join().unwrap().told.load(Ordering::SeqCst),
            Signal::SIGQUIT as i32
        );
    }
}
