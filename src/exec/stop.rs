//! Ending a run: who asks for it, and how it is done.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ringfence_backend::{Launched, Session, descriptor};

/// Why a run was ended from outside. The first cause stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Its deadline passed.
    Deadline,
    /// The caller asked.
    Abort,
}

/// The caller's means of ending a run.
#[derive(Debug)]
pub struct Abort(Trigger);

#[derive(Debug)]
enum Trigger {
    Event(EventFd),
    Watched(OwnedFd),
}

impl Abort {
    /// A means that [`trigger`](Self::trigger) uses.
    ///
    /// # Errors
    /// The operating system's, when it has no descriptor to give.
    pub fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self(Trigger::Event(EventFd::from_value_and_flags(0, flags)?)))
    }

    /// Ends the run as soon as this descriptor is readable, such as a signalfd(2). It is never read.
    #[must_use]
    pub const fn watching(fd: OwnedFd) -> Self {
        Self(Trigger::Watched(fd))
    }

    /// Ends the run. Without effect on one that watches a descriptor, or has ended.
    pub fn trigger(&self) {
        if let Trigger::Event(event) = &self.0 {
            // A counter that is full has been triggered before.
            let _ = event.write(1);
        }
    }

    /// Whether the end was asked for.
    pub(super) fn requested(&self) -> bool {
        let mut fds = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|n| n > 0)
    }
}

impl AsFd for Abort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Trigger::Event(event) => event.as_fd(),
            Trigger::Watched(fd) => fd.as_fd(),
        }
    }
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
    pub(super) fn begin(cause: Cause, grace: Duration, process: &Launched, session: Session) -> Self {
        for signal in [Signal::SIGTERM, Signal::SIGCONT] {
            signal_all(process, session, signal);
        }
        Self {
            cause,
            kill_at: Instant::now() + grace,
            killed: false,
        }
    }

    /// When the next step is due.
    pub(super) const fn due(&self) -> Option<Instant> {
        if self.killed { None } else { Some(self.kill_at) }
    }

    /// Takes the step that is due.
    pub(super) fn advance(&mut self, process: &Launched, session: Session) {
        if !self.killed && Instant::now() >= self.kill_at {
            signal_all(process, session, Signal::SIGKILL);
            self.killed = true;
        }
    }
}

/// Signals every process of the run that is known: its group, and its descendants elsewhere.
pub(super) fn signal_all(process: &Launched, session: Session, signal: Signal) {
    let descendants = descendants(process.pid);
    if session == Session::Own {
        // The command has not been reaped, so its number is still its group's. A group that is
        // gone needs no signal.
        let _ = kill(Pid::from_raw(-process.pid), signal);
    } else {
        let _ = descriptor::signal(process.pidfd.as_fd(), signal as i32);
    }
    for pid in descendants {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// The children of a process and their children, as /proc shows them (proc_pid_task_children(5)).
fn descendants(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut next = vec![pid];
    while let Some(pid) = next.pop() {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_ascii_whitespace().filter_map(|word| word.parse().ok()) {
                if !found.contains(&child) {
                    found.push(child);
                    next.push(child);
                }
            }
        }
    }
    found
}
