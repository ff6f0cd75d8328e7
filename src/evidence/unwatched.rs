//! Where nobody can watch calls: there is neither a supervisor nor a log, and no run ever has one.

use std::os::fd::BorrowedFd;

use ringfence_backend::{LaunchPlan, Listener};

use crate::facts::{Denial, Observed};

/// What watches calls where that is possible.
#[derive(Debug)]
pub(crate) enum Supervisor {}

impl Supervisor {
    /// Watches through a listener, of which there is none.
    #[expect(clippy::needless_pass_by_value, reason = "the same as where there are some")]
    pub(crate) const fn new(listener: Listener, _plan: &LaunchPlan) -> Self {
        match listener {}
    }

    /// What to wait for.
    pub(crate) const fn fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }

    /// Answers a call.
    pub(crate) const fn serve(&mut self, _tell: &mut dyn FnMut(&Denial)) {
        match *self {}
    }

    /// What was seen.
    pub(crate) const fn finish(self) -> Observed {
        match self {}
    }
}

/// The kernel's log where it tells of denials.
#[derive(Debug)]
pub(crate) enum KernelLog {}

impl KernelLog {
    /// Never opens.
    ///
    /// # Errors
    /// That there is none, in a sentence.
    pub(crate) fn open(_plan: &LaunchPlan) -> Result<Self, String> {
        Err("this system has no log of denials that is read".to_owned())
    }

    /// Follows a command.
    pub(crate) const fn follow(&mut self, _child: i32) {
        match *self {}
    }

    /// What to wait for.
    pub(crate) const fn fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }

    /// Reads what has come.
    pub(crate) const fn read(&mut self) {
        match *self {}
    }

    /// What was logged.
    ///
    /// # Errors
    /// Why nothing is known.
    pub(crate) const fn finish(self) -> Result<Observed, String> {
        match self {}
    }
}

/// What makes watching cheap where calls are watched.
pub(crate) mod accelerator {
    use ringfence_backend::Accelerator;

    use crate::state::StateDir;

    /// None.
    ///
    /// # Errors
    /// Why, in a sentence.
    pub(crate) fn find(_state: &StateDir) -> Result<Accelerator, String> {
        Err("nobody can watch calls on this system".to_owned())
    }
}
