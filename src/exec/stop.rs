//! Ending a run: how it is done.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
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
        process.spare();
        tree::signal(process, &[Signal::SIGTERM, Signal::SIGCONT]);
        Self {
            cause,
            kill_at: Instant::now() + grace,
            killed: false,
        }
    }

    /// When the next step is due; after the kill, when that should have taken effect.
    pub(super) fn due(&self, soft: Duration, hard: Duration) -> Instant {
        if !self.killed {
            self.kill_at
        } else if self.is_overdue(soft) {
            self.kill_at + hard
        } else {
            self.kill_at + soft
        }
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
