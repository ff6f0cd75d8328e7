//! What is told of a launch, and what becomes known by it.

use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};

use crate::channel::{Channel, Message};
use crate::listener::Listener;
use crate::status::{Failure, Record, Stage};

/// What came of a trial.
#[derive(Debug)]
pub struct Tried {
    /// Each attempt, and its errno.
    pub attempts: Vec<(u8, i32)>,
    /// The listener of an observed boundary.
    pub listener: Option<Listener>,
}

/// Why no command ran.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The runner could not prepare the launch.
    #[error("could not prepare the launch: {0}")]
    Prepare(#[from] io::Error),
    /// A step failed; the command never ran.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The child ended before it had said anything.
    #[error("the launching process ended before the boundary stood")]
    Vanished,
    /// The command may have begun, and was ended; nothing of it is left. It must not be begun again.
    #[error("{0}")]
    Interrupted(&'static str),
    /// A program that was to make the boundary ended; no command ran.
    #[error("{program} did not make the boundary: {words}")]
    Outside {
        /// The program.
        program: String,
        /// The beginning of what it said, or that it said nothing.
        words: String,
    },
}

/// What was told of a launch.
#[derive(Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the launch"
)]
pub(crate) struct Told {
    armed: bool,
    pub(crate) failed: Option<Failure>,
    pub(crate) tried: Vec<(u8, i32)>,
    listener: Option<OwnedFd>,
    lost: bool,
    /// Who said that the boundary stands: the command's own process.
    pub(crate) sender: Option<i32>,
    /// Who said that it runs inside what another program made.
    pub(crate) launcher: Option<i32>,
    /// Whether the command's process was started.
    pub(crate) started: bool,
}

impl Told {
    /// Reads what there is of the launch. A command that stops or ends at once has the reaper speak
    /// before this is read: its words are left to whoever waits for them.
    pub(crate) fn of(channel: &Channel) -> Self {
        let mut told = Self::default();
        while channel.has_record()
            && let Ok(message) = channel.take()
        {
            told.hear(message);
        }
        told
    }

    /// Takes note of one message.
    pub(crate) fn hear(&mut self, message: Message) {
        self.lost |= message.lost;
        self.listener = message.fd.or(self.listener.take());
        match message.record {
            Some(Record::Armed) => {
                self.armed = true;
                self.sender = message.sender;
            }
            Some(Record::Failed(failure)) => self.failed = Some(failure),
            Some(Record::Tried { attempt, errno }) => self.tried.push((attempt, errno)),
            Some(Record::Here) => self.launcher = message.sender,
            Some(Record::Started) => self.started = true,
            None => {}
        }
    }

    /// What it means that nothing more was told before the command was started.
    pub(crate) fn ended_early(&self) -> LaunchError {
        if self.armed {
            LaunchError::Interrupted("what started it was killed in between")
        } else {
            LaunchError::Vanished
        }
    }

    /// The listener, if the boundary stood and nothing failed. What was launched otherwise ends when
    /// it is dropped.
    pub(crate) fn check(self) -> Result<Option<Listener>, LaunchError> {
        match self.failed {
            // Without room for one more descriptor the kernel drops the listener (unix(7)): the command
            // has begun, and every call that changes files fails.
            None if self.lost => Err(LaunchError::Interrupted(
                "no descriptor was left for watching its calls; allow more open files",
            )),
            Some(failure) => Err(failure.into()),
            None if !self.armed => Err(LaunchError::Vanished),
            None => Ok(self.listener.map(Listener::new)),
        }
    }
}

pub(crate) fn unstarted(errno: Errno) -> Failure {
    Failure {
        stage: Stage::Namespaces,
        errno: errno as i32,
    }
}

/// Runs `work` with every signal blocked: a handler of the runner must not run in a child that
/// shares its memory.
pub(crate) fn blocking_signals<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let mut before = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    let done = work();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    Ok(done)
}
