//! A command that was started, as its runner holds it.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::Containment;
use crate::channel::Channel;
use crate::descriptor::{self, End};
use crate::listener::Listener;
use crate::shared::Shared;
use crate::stack::Stack;
use crate::status::Word;

/// How long a program that has nothing left to do may take to end.
const SOON: Duration = Duration::from_millis(50);

/// How long a reaper is waited for that nobody waits for any more.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a reaper uses of the runner's memory as long as it lives.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Of a reaper that is another program's child, nothing.
    #[allow(dead_code, reason = "kept alive, and given back when this is dropped")]
    pub(crate) stacks: Option<[Stack; 2]>,
    pub(crate) shared: Arc<dyn Facts>,
}

/// Where a reaper tells what has become of its run.
pub(crate) trait Facts: AsRef<Shared> + fmt::Debug + Send + Sync {}

impl<T: AsRef<Shared> + fmt::Debug + Send + Sync> Facts for T {}

/// A command that was started, and the reaper it cannot outlive. Dropping this ends the run, and so does
/// the end of the thread that launched it.
#[derive(Debug)]
pub struct Launched {
    /// The command's process id; unknown only if the kernel did not tell.
    pub command: Option<i32>,
    /// Where calls of the command's processes wait for an answer, when the boundary is observed.
    pub listener: Option<Listener>,
    reaper: i32,
    pidfd: OwnedFd,
    channel: Channel,
    /// The program that makes the boundary, kept together like a run of its own.
    maker: Option<Box<Launched>>,
    /// The first process of the namespace that it made.
    first: Option<OwnedFd>,
    shared: Arc<dyn Facts>,
    // Given back when the reaper has ended.
    memory: Option<Memory>,
    containment: Containment,
}

impl Launched {
    pub(crate) fn new(reaper: i32, pidfd: OwnedFd, channel: Channel, memory: Memory, containment: Containment) -> Self {
        Self {
            command: None,
            listener: None,
            reaper,
            pidfd,
            channel,
            maker: None,
            first: None,
            shared: Arc::clone(&memory.shared),
            memory: Some(memory),
            containment,
        }
    }

    /// The same through a program that makes the boundary; with it everybody ends whom it started.
    ///
    /// # Errors
    /// The operating system's, without a descriptor to spare; the program is then ended.
    pub(crate) fn through(maker: Self, channel: Channel, memory: Memory) -> io::Result<Self> {
        let pidfd = maker.pidfd.try_clone()?;
        let mut launched = Self::new(maker.reaper, pidfd, channel, memory, Containment::PidNamespace);
        launched.maker = Some(Box::new(maker));
        Ok(launched)
    }

    /// By what means its processes are kept together.
    #[must_use]
    pub const fn containment(&self) -> Containment {
        self.containment
    }

    /// The process id of the reaper: every process of the run is its child, or a child's child.
    #[must_use]
    pub const fn reaper(&self) -> i32 {
        self.reaper
    }

    /// What to wait for: readable when no process of the run is left.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        // A maker that was killed has ended before the others have; the first process ends after them.
        self.first.as_ref().unwrap_or(&self.pidfd).as_fd()
    }

    /// What the reaper had to say since this was last asked.
    #[must_use]
    pub fn word(&self) -> Option<Word> {
        self.channel.word()
    }

    /// What to wait for: readable when the command has ended or was stopped.
    #[must_use]
    pub fn notice(&self) -> BorrowedFd<'_> {
        self.channel.fd()
    }

    /// How the command ended, once it has; others of the run may be left.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.shared.as_ref().as_ref().ended()
    }

    /// How many processes of the run were left when the command had ended, once they have been
    /// killed. Never known of a reaper that was killed itself, or could not count them.
    #[must_use]
    pub fn survivors(&self) -> Option<u32> {
        self.shared.as_ref().as_ref().gone()
    }

    /// Keeps the run from being killed as soon as its command ends: its processes were asked to end, and
    /// are waited for until [`kill`](Self::kill).
    pub fn spare(&self) {
        self.channel.say();
    }

    /// Kills every process of the run.
    pub fn kill(&self) {
        self.channel.shut();
    }

    /// Kills the reaper itself, and with it everybody in its namespace; where there is none, nothing.
    pub fn kill_reaper(&self) {
        match (&self.first, &self.maker) {
            (Some(first), _) => {
                let _ = descriptor::signal(first.as_fd(), nix::libc::SIGKILL);
            }
            (None, Some(maker)) => maker.kill(),
            (None, None) if self.containment == Containment::PidNamespace => {
                let _ = descriptor::signal(self.pidfd.as_fd(), nix::libc::SIGKILL);
            }
            (None, None) => {}
        }
    }

    /// Kills the program that makes the boundary, and everybody whom it started.
    pub(crate) fn kill_maker(&self) {
        if let Some(maker) = &self.maker {
            maker.kill();
        }
    }

    /// Says which process is the first of the namespace.
    pub(crate) fn led_by(&mut self, first: OwnedFd) {
        self.first = Some(first);
    }

    pub(crate) const fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Waits until the reaper has ended. False when it has not by then.
    pub fn reap(&mut self, patience: Duration) -> bool {
        if self.memory.is_none() {
            return true;
        }
        if let Some(maker) = &mut self.maker {
            // It has nothing left to do, and ends by itself sooner than it could be killed.
            let ended = maker.reap(SOON) || {
                maker.kill();
                maker.reap(patience)
            };
            if ended {
                self.memory = None;
            }
            return ended;
        }
        let over = Instant::now() + patience;
        loop {
            let left = over.saturating_duration_since(Instant::now()).as_millis();
            let timeout = PollTimeout::from(u16::try_from(left).unwrap_or(u16::MAX));
            // It is only asked whether it has ended: a host that waits for every child may have reaped it.
            match poll(&mut [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)], timeout) {
                Ok(1..) => break,
                Err(Errno::EINTR) => {}
                _ => return false,
            }
        }
        let _ = descriptor::wait_for(self.pidfd.as_fd(), true);
        self.memory = None;
        true
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        if self.memory.is_none() {
            return;
        }
        self.kill();
        self.kill_reaper();
        if !self.reap(PATIENCE) {
            // Something cannot be killed just now. The reaper goes on waiting for it, on its stack.
            std::mem::forget(self.memory.take());
        }
    }
}
