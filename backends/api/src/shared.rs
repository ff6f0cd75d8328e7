//! What a reaper and its runner tell one another in the memory they share.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use crate::descriptor::End;
use crate::raw::{address, call, int};

/// The gate is shut: the reaper still reads what the runner prepared.
const SHUT: u32 = 2;
/// It is open: the command is started, or could not be.
const OPEN: u32 = 1;

/// The facts of one run. They live as long as its reaper.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The kernel clears it when the reaper has ended (`CLONE_CHILD_CLEARTID`).
    gate: AtomicU32,
    status: AtomicI32,
    exited: AtomicBool,
    ended: AtomicBool,
    found: AtomicU32,
    gone: AtomicBool,
}

impl Shared {
    pub(crate) const fn new() -> Self {
        Self {
            gate: AtomicU32::new(SHUT),
            status: AtomicI32::new(0),
            exited: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            found: AtomicU32::new(0),
            gone: AtomicBool::new(false),
        }
    }

    pub(crate) const fn gate(&self) -> &AtomicU32 {
        &self.gate
    }

    /// The reaper: lets the runner go on.
    pub(crate) fn open(&self) {
        self.gate.store(OPEN, Ordering::Release);
        let word = address(self.gate.as_ptr());
        // SAFETY: a live word.
        unsafe { call(libc::SYS_futex, [word, int(libc::FUTEX_WAKE), 1, 0, 0, 0]) };
    }

    /// The runner: waits until the gate is open, or the reaper has ended before that.
    pub(crate) fn wait(&self) {
        while self.gate.load(Ordering::Acquire) == SHUT {
            let word = address(self.gate.as_ptr());
            // SAFETY: a live word, and no timeout.
            unsafe { call(libc::SYS_futex, [word, int(libc::FUTEX_WAIT), SHUT.into(), 0, 0, 0]) };
        }
    }

    /// The reaper: the command has ended.
    pub(crate) fn end(&self, exited: bool, status: i32) {
        self.exited.store(exited, Ordering::Relaxed);
        self.status.store(status, Ordering::Relaxed);
        self.ended.store(true, Ordering::Release);
    }

    /// How the command ended, if it has.
    pub(crate) fn ended(&self) -> Option<End> {
        let status = || self.status.load(Ordering::Relaxed);
        self.ended.load(Ordering::Acquire).then(|| {
            if self.exited.load(Ordering::Relaxed) {
                End::Exited(status())
            } else {
                End::Killed(status())
            }
        })
    }

    /// The reaper: no process of the run is left; so many were found when the command had ended.
    pub(crate) fn leave(&self, found: u32) {
        self.found.store(found, Ordering::Relaxed);
        self.gone.store(true, Ordering::Release);
    }

    /// How many processes were found when the command had ended, once none is left.
    pub(crate) fn gone(&self) -> Option<u32> {
        self.gone
            .load(Ordering::Acquire)
            .then(|| self.found.load(Ordering::Relaxed))
    }
}
