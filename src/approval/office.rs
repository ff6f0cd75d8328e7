//! What a desk and its grants share: the files, the trail and the clocks; and the one way to decide.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::clock::{Clock, Moment};
use super::decision::{Decision, Outcome};
use super::request::{Request, lossy};
use super::settings::Answerer;
use super::store::{Found, Settled, Store};
use crate::audit::{AuditError, Decider, Durability, Entry, Event, Trail};
use crate::error::Error;

/// The word for the queue, in requests and decisions.
pub(super) const QUEUE: &str = Answerer::Queue.word();

/// How long the files of a closed request are kept: 30 days.
const KEPT_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// What a desk and its grants share.
#[derive(Debug)]
pub(crate) struct Office {
    pub(super) store: Store,
    pub(super) trail: Arc<Trail>,
    pub(super) clock: Clock,
}

impl Office {
    pub(super) fn now(&self) -> Result<Moment, Error> {
        self.clock.now().map_err(host)
    }

    /// Records it, on the disk.
    pub(super) fn record(&self, entries: &[Entry]) -> Result<(), Error> {
        self.trail.append(entries, Durability::Disk)?;
        Ok(())
    }

    /// Closes the requests that nobody waits for any more: whoever asked is gone.
    pub(super) fn sweep(&self) -> Result<(), Error> {
        for id in self.store.ids(false).unwrap_or_default() {
            self.sweep_one(&id)?;
        }
        let old = self.now()?.wall_ms.saturating_sub(KEPT_MS);
        self.store.forget_older(old);
        Ok(())
    }

    /// The same for one request.
    pub(super) fn sweep_one(&self, id: &str) -> Result<(), Error> {
        if self.store.is_awaited(id) {
            return Ok(());
        }
        let Found::Ours((request, true)) = self.store.request(id) else {
            return Ok(());
        };
        // Whoever takes it from the open requests records it. A death in between leaves a request
        // without a record of its end, and never one with two.
        if !self.store.close(id).unwrap_or(false) {
            return Ok(());
        }
        self.store.let_go(id);
        let by = decider("asker", "Ringfence", Some("whoever asked is gone".to_owned()));
        let gone = Decision::new(&request, Outcome::Cancelled, by, self.now()?);
        let decision = self.decide(&request, gone.clone()).unwrap_or(gone);
        self.record(&[decided(&request, &decision)])
    }

    /// Decides a request, unless somebody has: the decision that holds.
    pub(super) fn decide(&self, request: &Request, decision: Decision) -> io::Result<Decision> {
        for _ in 0..8 {
            match self.store.decide(request, &decision)? {
                Settled::Now => return Ok(decision),
                Settled::Before(before) if may_come_from_elsewhere(request, &before) => return Ok(before),
                Settled::Before(before) if before.outcome != Outcome::AllowedOnce => return Ok(before),
                Settled::Before(_) => self.store.put_aside(&request.id)?,
            }
        }
        Err(io::Error::other(
            "what is no decision is put in its place again and again",
        ))
    }
}

/// Whether a decision that this process did not make may be one of that request: it was asked of the
/// queue, and the queue says yes or no.
pub(super) fn may_come_from_elsewhere(request: &Request, decision: &Decision) -> bool {
    decision.by.kind == QUEUE
        && request.answerers.iter().any(|it| it == QUEUE)
        && matches!(decision.outcome, Outcome::AllowedOnce | Outcome::Rejected)
}

pub(super) fn decider(kind: &str, principal: &str, reason: Option<String>) -> Decider {
    Decider {
        kind: kind.to_owned(),
        principal: principal.to_owned(),
        assurance: None,
        reason,
    }
}

pub(super) fn unwritable(path: &Path, reason: String) -> Error {
    let path = path.to_owned();
    AuditError::Unwritable { path, reason }.into()
}

pub(super) fn for_the_trail(argv: &[OsString]) -> Vec<String> {
    lossy(argv)
}

pub(super) fn asked(request: &Request, argv: Vec<String>) -> Entry {
    entry(
        request,
        Event::ApprovalAsked {
            request: request.id.clone(),
            argv,
            workdir: request.workdir_text().to_owned(),
            difference: request.difference_text.join("; "),
            justification: request.justification.clone(),
            digest: request.digest.clone(),
            expires_at: request.expires_at.clone(),
        },
    )
}

pub(super) fn decided(request: &Request, decision: &Decision) -> Entry {
    entry(
        request,
        Event::ApprovalDecided {
            request: request.id.clone(),
            outcome: decision.outcome.word().to_owned(),
            by: decision.by.clone(),
            digest: request.digest.clone(),
        },
    )
}

/// The record of something that happened to a request. It belongs to the run that was asked for again.
pub(super) fn entry(request: &Request, event: Event) -> Entry {
    Entry {
        session: request.session.clone(),
        run: Some(request.run.clone()),
        event,
    }
}

/// The operating system's refusal of something that asking takes.
pub(super) fn host(source: io::Error) -> Error {
    Error::Host {
        doing: "waiting for the answer to a request",
        source,
    }
}
