//! A command that was started, as its runner holds it.

use std::io::{ErrorKind, PipeReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

use super::frame::{FRAME, Frame};
use super::table;
use crate::Containment;
use crate::descriptor::End;
use crate::status::Word;

/// How long a reaper is waited for that nobody waits for any more.
const PATIENCE: Duration = Duration::from_secs(1);

/// A command that was started, and the reaper that keeps its run together. Dropping this ends the run,
/// and so does the end of this process.
#[derive(Debug)]
pub struct Launched {
    /// The command's process id.
    pub command: Option<i32>,
    /// Where calls of the command's processes would wait for an answer: nothing here makes them.
    pub listener: Option<Listener>,
    control: UnixStream,
    alive: PipeReader,
    reaper: Mutex<Option<Child>>,
    heard: Mutex<Heard>,
    containment: Containment,
}

/// Nobody can watch the calls of a command here.
#[derive(Debug)]
pub enum Listener {}

/// What the reaper has said so far.
#[derive(Debug, Default)]
struct Heard {
    part: Vec<u8>,
    ended: Option<End>,
    survivors: Option<u32>,
    words: Vec<Word>,
}

impl Launched {
    pub(super) const fn new(
        command: i32,
        containment: Containment,
        control: UnixStream,
        alive: PipeReader,
        reaper: Child,
    ) -> Self {
        Self {
            command: Some(command),
            listener: None,
            control,
            alive,
            reaper: Mutex::new(Some(reaper)),
            heard: Mutex::new(Heard {
                part: Vec::new(),
                ended: None,
                survivors: None,
                words: Vec::new(),
            }),
            containment,
        }
    }

    /// By what means its processes are kept together.
    #[must_use]
    pub const fn containment(&self) -> Containment {
        self.containment
    }

    /// What to wait for: readable when no process of the run is left that could be found.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.alive.as_fd()
    }

    /// What the reaper had to say since this was last asked.
    #[must_use]
    pub fn word(&self) -> Option<Word> {
        let mut heard = self.hear();
        (!heard.words.is_empty()).then(|| heard.words.remove(0))
    }

    /// What to wait for: readable when the command has ended or was stopped.
    #[must_use]
    pub fn notice(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// How the command ended, once it has; others of the run may be left.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.hear().ended
    }

    /// How many processes of the run were left when the command had ended, once they have been
    /// killed. Never known where nobody could count them.
    #[must_use]
    pub fn survivors(&self) -> Option<u32> {
        self.hear().survivors
    }

    /// Whether the command was stopped and not continued since.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.command.is_some_and(table::is_stopped)
    }

    /// Sends a signal to every process of the run that can be found.
    pub fn signal(&self, signal: Signal) {
        if let Ok(number) = u8::try_from(signal as i32) {
            self.ask([b'k', number]);
        }
    }

    /// Keeps the run from being killed as soon as its command ends: its processes were asked to end, and
    /// are waited for until [`kill`](Self::kill).
    pub fn spare(&self) {
        self.ask([b's', 0]);
    }

    /// Kills every process of the run.
    pub fn kill(&self) {
        // A reaper that is gone has killed them.
        let _ = self.control.shutdown(Shutdown::Write);
    }

    /// Nothing: whoever kills the reaper leaves the run to itself.
    pub const fn kill_reaper(&self) {}

    /// Waits until the reaper has ended. False when it has not by then.
    pub fn reap(&mut self, patience: Duration) -> bool {
        let reaper = self.reaper.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(mut child) = reaper.take() else { return true };
        let over = Instant::now() + patience;
        loop {
            let left = over.saturating_duration_since(Instant::now()).as_millis();
            let timeout = PollTimeout::from(u16::try_from(left).unwrap_or(u16::MAX));
            match poll(&mut [PollFd::new(self.alive.as_fd(), PollFlags::POLLIN)], timeout) {
                Ok(1..) => break,
                Err(Errno::EINTR) => {}
                _ => {
                    *reaper = Some(child);
                    return false;
                }
            }
        }
        // It has closed all it had, and is about to end; a host that waits for every child may have it.
        let _ = child.wait();
        true
    }

    fn ask(&self, request: [u8; 2]) {
        let _ = (&self.control).write_all(&request);
    }

    /// Takes down what the reaper has said.
    fn hear(&self) -> MutexGuard<'_, Heard> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [0; FRAME];
        loop {
            match (&self.control).read(&mut bytes) {
                Ok(0) => break,
                Ok(got) => heard.take(bytes.get(..got).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        heard
    }
}

impl Heard {
    fn take(&mut self, bytes: &[u8]) {
        self.part.extend_from_slice(bytes);
        while let Some((frame, rest)) = self.part.split_first_chunk() {
            let frame = Frame::decode(*frame);
            self.part = rest.to_vec();
            match frame {
                Some(Frame::Ended(end)) => {
                    self.ended = Some(end);
                    self.words.push(Word::Ended);
                }
                Some(Frame::Stopped) => self.words.push(Word::Stopped),
                Some(Frame::Gone(found)) => self.survivors = found,
                _ => {}
            }
        }
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        self.kill();
        // One that has not ended by then ends by itself, and the system takes its number back with ours.
        self.reap(PATIENCE);
    }
}
