//! Answers the calls that wait, and keeps what was refused.

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use ringfence_backend::calls::{Call, table};
use ringfence_backend::{Answer, LaunchPlan, Listener, Notification};

use super::bounds::{Bounds, Refusal, Verdict};
use super::caller::Caller;
use super::judgement::judge;
use super::ledger::Ledger;
use super::shortcut::Shortcut;
use crate::facts::{Denial, Observed, Source};

/// Watches one run.
#[derive(Debug)]
pub(crate) struct Supervisor {
    listener: Listener,
    calls: Vec<(i64, Call)>,
    bounds: Bounds,
    shortcut: Shortcut,
    ledger: Ledger,
    unseen: u64,
    accelerated: bool,
}

impl Supervisor {
    /// Watches a run of this plan through its listener.
    pub(crate) fn new(listener: Listener, plan: &LaunchPlan) -> Self {
        let mut calls = table();
        calls.sort_unstable_by_key(|(number, _)| *number);
        Self {
            listener,
            calls,
            bounds: Bounds::new(plan),
            shortcut: Shortcut::new(plan.roots(), plan.held().next().is_some()),
            ledger: Ledger::default(),
            unseen: 0,
            accelerated: plan.is_accelerated(),
        }
    }

    /// What to wait for: readable when a call waits, closed when nobody is left to call.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers the call that waits, and tells of a new kind of denial. Only to be called when poll(2)
    /// said that one does.
    pub(crate) fn serve(&mut self, tell: &mut dyn FnMut(&Denial)) {
        // A caller that was killed meanwhile needs no answer.
        if let Ok(notification) = self.listener.receive() {
            self.answer(&notification, tell);
        }
    }

    fn answer(&mut self, notification: &Notification, tell: &mut dyn FnMut(&Denial)) {
        let caller = Caller::new(notification.tid);
        let call = self
            .calls
            .binary_search_by_key(&notification.number, |(number, _)| *number);
        let verdict = match call.map(|found| self.calls[found].1) {
            Ok(call) if !self.shortcut.is_inside(call, notification, &caller) => {
                judge(&self.bounds, call, notification, &caller)
            }
            _ => Verdict::Pass,
        };
        // What was read belongs to this call only if it still waits (a thread id may serve again), and
        // the kernel takes no answer to one that does not.
        match verdict {
            Verdict::Pass => self.pass(notification.id),
            Verdict::Made(made) => {
                let answer = made.map_or_else(Answer::Fail, |()| Answer::Done);
                // A caller that is gone needs no answer.
                let _ = self.listener.answer(notification.id, answer);
            }
            Verdict::Unseen => {
                if self.pass_unseen(notification.id) {
                    self.unseen += 1;
                }
            }
            Verdict::Refuse(refusal) => {
                if let Some(denial) = self.refuse(notification.id, &caller, refusal) {
                    tell(denial);
                }
            }
        }
    }

    /// Lets the kernel decide. A caller that is gone needs no answer.
    fn pass(&self, id: u64) {
        let _ = self.listener.answer(id, Answer::Continue);
    }

    /// What could not be looked at is left to the kernel, unless nothing in the kernel governs it.
    /// False when the caller is gone.
    fn pass_unseen(&self, id: u64) -> bool {
        let answer = if self.bounds.emulates() {
            Answer::Fail(Errno::EPERM)
        } else {
            Answer::Continue
        };
        self.listener.answer(id, answer).is_ok()
    }

    /// The record and the answer are one thing: what is written down is what the caller is told.
    fn refuse(&mut self, id: u64, caller: &Caller, refusal: Refusal) -> Option<&Denial> {
        let (program, pid) = (caller.program(), caller.process());
        self.listener.answer(id, Answer::Fail(refusal.errno)).ok()?;
        let Refusal { op, path, errno } = refusal;
        self.ledger.record(Denial {
            op,
            path,
            program,
            pid,
            errno,
            count: 1,
        })
    }

    /// What was seen.
    pub(crate) fn finish(self) -> Observed {
        let (denials, omitted) = self.ledger.finish();
        Observed {
            source: if self.accelerated {
                Source::Retry
            } else {
                Source::Notify
            },
            denials,
            omitted,
            unseen: self.unseen,
        }
    }
}
