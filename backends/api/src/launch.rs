//! The spawn step: one clone(2) for the reaper, one for the command, the child's steps, exec.
//!
//! Both are made with `CLONE_VM`: they cost the same whatever the size of the runner. The calling
//! thread waits until the program is executed or the launch has failed; until then they share the
//! runner's memory, so they take raw steps on prepared data only. The command confines itself; no
//! thread of the runner is ever confined.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicI32;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::sys::socket::{setsockopt, sockopt::PassCred};

use crate::backend::Prepared;
use crate::channel::{Channel, Message, status_channel};
use crate::child::{Child, Strings, child_main};
use crate::image::ExecImage;
use crate::listener::Listener;
use crate::reaper::{Reaper, reaper_main};
use crate::running::{Launched, Memory};
use crate::shared::Shared;
use crate::stack::{Stack, clone_onto};
use crate::status::{Failure, Record, Stage};
use crate::task::{Attempt, Launch, Task};
use crate::{Boundary, Containment, descriptor, through};

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
    /// The launcher was killed while it started the command, which may have begun. Nothing of it is left.
    #[error("the launching process was killed while it started the command")]
    Interrupted,
    /// A program that was to make the boundary ended; no command ran.
    #[error("{program} did not make the boundary: {words}")]
    Outside {
        /// The program.
        program: String,
        /// The beginning of what it said, or that it said nothing.
        words: String,
    },
}

/// Starts a command inside the boundary, and a reaper that it cannot outlive.
///
/// The run ends with the calling thread, which must therefore stay until then.
///
/// # Errors
/// [`LaunchError`]; the command has then not run, and no process is left.
pub fn launch(prepared: &Prepared, launch: &Launch<'_>, image: &ExecImage) -> Result<Launched, LaunchError> {
    let boundary = match prepared {
        Prepared::Direct(boundary) => boundary.as_ref(),
        Prepared::Through(through) => return through::launch(through, launch, image),
    };
    let (read, write) = status_channel()?;
    // The kernel then says who sent a record, under the number that the runner knows it by (unix(7)).
    setsockopt(&read, PassCred, &true).map_err(io::Error::from)?;
    let strings = Strings::new(image);
    let stacks = [Stack::new()?, Stack::new()?];
    let shared = Arc::new(Shared::new());
    let namespaces = boundary.clone_flags();
    let containment = if namespaces & libc::CLONE_NEWPID == 0 {
        Containment::Subreaper
    } else {
        Containment::PidNamespace
    };
    let reaper = Reaper {
        child: Child {
            boundary,
            launch,
            task: Task::Exec(image),
            strings,
            status: write.as_raw_fd(),
            parent: AtomicI32::new(0),
        },
        stack: stacks[1].top(),
        shared: Arc::as_ptr(&shared),
        namespace: containment == Containment::PidNamespace,
    };
    let channel = Channel::new(read);
    let started = blocking_signals(|| {
        let flags = libc::CLONE_VM | namespaces;
        let started = clone_onto(&stacks[0], flags, reaper_main, &reaper, Some(shared.gate()))?;
        // Until then the reaper uses what stands in this frame.
        shared.wait();
        Ok(started)
    })?;
    let (pid, pidfd) = started.map_err(unstarted)?;
    let memory = Memory {
        stacks: Some(stacks),
        shared,
    };
    drop(write);
    let told = Told::of(&channel);
    let mut launched = Launched::new(pid, pidfd, channel, memory, containment);
    launched.command = told.sender;
    launched.listener = told.check()?;
    Ok(launched)
}

/// Starts a child that enters the boundary and tries it, and waits for its end.
///
/// # Errors
/// [`LaunchError`] when the boundary did not stand; no process is left in any case.
pub fn attempt(boundary: &dyn Boundary, launch: &Launch<'_>, attempts: &dyn Attempt) -> Result<Tried, LaunchError> {
    let (read, write) = status_channel()?;
    let stack = Stack::new()?;
    let namespaces = boundary.clone_flags();
    let in_own = namespaces & libc::CLONE_NEWPID != 0;
    let child = Child {
        boundary,
        launch,
        task: Task::Try(attempts),
        strings: Strings::default(),
        status: write.as_raw_fd(),
        // A parent outside the namespace has no number in it (pid_namespaces(7)).
        parent: AtomicI32::new(if in_own { 0 } else { nix::unistd::getpid().as_raw() }),
    };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | namespaces;
    let (_, pidfd) = blocking_signals(|| clone_onto(&stack, flags, child_main, &child, None))?.map_err(unstarted)?;
    drop(write);
    // It has ended: all records are there.
    let told = Told::of(&Channel::new(read));
    let _ = descriptor::signal(pidfd.as_fd(), libc::SIGKILL);
    let _ = descriptor::wait_for(pidfd.as_fd(), true);
    let attempts = told.tried.clone();
    let listener = told.check()?;
    Ok(Tried { attempts, listener })
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
            LaunchError::Interrupted
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
            None if self.lost => Err(Failure {
                stage: Stage::Listener,
                errno: libc::EMFILE,
            }
            .into()),
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
