//! How a request ends: one decision holds, is recorded, and is told.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::binding::Binding;
use super::clock::Left;
use super::decision::{Decision, Outcome};
use super::grant::Grant;
use super::office::{Office, decided, unwritable};
use super::request::Request;
use crate::audit::Decider;
use crate::error::{Error, Expiry, NotApproved, Rejecter};
use crate::state::Held;

/// An outcome, and who or what it comes from.
pub(super) type Verdict = (Outcome, Decider);

/// A request that is recorded as asked, and has to be settled.
#[derive(Debug)]
pub(super) struct Posted {
    pub(super) office: Arc<Office>,
    pub(super) request: Request,
    pub(super) binding: Binding,
    pub(super) opens: Vec<PathBuf>,
    /// The lock that says that somebody waits, or why the request is not written down.
    pub(super) held: Result<Held, String>,
    pub(super) grant_ttl: Duration,
}

impl Posted {
    /// Settles it: the decision that holds is put in its place, recorded, and told.
    pub(super) fn settle(self, (outcome, by): Verdict) -> Result<Grant, Error> {
        let office = &self.office;
        let now = office.now()?;
        let proposed = Decision::new(&self.request, outcome, by, now);
        let (mut decision, lost) = match office.decide(&self.request, proposed.clone()) {
            Ok(decision) => (decision, None),
            Err(error) => (proposed.clone(), Some(error)),
        };
        // Whoever withdraws does not want it any more, whatever was said at the same moment.
        if outcome == Outcome::Cancelled {
            decision = proposed;
        }
        let in_time = self.request.deadline.left(&decision.at);
        if decision.outcome == Outcome::AllowedOnce {
            let late = in_time.expiry(Expiry::Request(self.request.deadline.length()));
            let held = self.held.as_ref().err();
            if let Some(expiry) = late {
                decision.outcome = Outcome::Expired;
                decision.by.reason = Some(expiry.to_string());
            } else if lost.is_some() || held.is_some() {
                decision.outcome = Outcome::Unavailable;
            }
        }
        // The files follow the record: what they lack is seen to be without an end.
        let closed = office.store.close(&self.request.id);
        let recorded = office.record(&[decided(&self.request, &decision)]);
        let allowed = decision.outcome == Outcome::AllowedOnce && recorded.is_ok() && closed.is_ok();
        if !allowed {
            office.store.let_go(&self.request.id);
        }
        recorded?;
        closed.map_err(|error| unwritable(office.store.decisions().path(), error.to_string()))?;
        if let Some(error) = lost
            && outcome == Outcome::AllowedOnce
        {
            return Err(unwritable(office.store.decisions().path(), error.to_string()));
        }
        match (decision.outcome, self.held) {
            (Outcome::AllowedOnce, Ok(held)) => {
                let end = decision.at.end_after(self.grant_ttl);
                Ok(Grant::new(self.office, self.request, self.binding, decision, end, held))
            }
            (outcome, _) => Err(refusal(&self.request, outcome, &decision.by, in_time).into()),
        }
    }
}

/// The refusal that an outcome is. Nothing but a grant comes of `allowed-once`, so here that is none.
fn refusal(request: &Request, outcome: Outcome, by: &Decider, left: Left) -> NotApproved {
    let id = request.id.clone();
    let said = || by.reason.clone().unwrap_or_default();
    match outcome {
        Outcome::Rejected => NotApproved::Rejected {
            request: id,
            kind: match by.kind.as_str() {
                "policy" => Rejecter::Policy,
                "rule" => Rejecter::Rule,
                "hook" => Rejecter::Program,
                _ => Rejecter::Person,
            },
            by: by.principal.clone(),
            reason: by.reason.clone(),
        },
        Outcome::Cancelled => NotApproved::Cancelled {
            request: id,
            reason: said(),
        },
        Outcome::Expired => {
            let over = Expiry::Request(request.deadline.length());
            NotApproved::Expired {
                request: id,
                expiry: left.expiry(over).unwrap_or(over),
            }
        }
        Outcome::Unavailable | Outcome::AllowedOnce => NotApproved::Unavailable { reason: said() },
    }
}
