//! A yes, and what it turns into: used once, consumed before the command starts.

use std::sync::Arc;

use super::binding::Binding;
use super::clock::Deadline;
use super::decision::Decision;
use super::office::{Office, entry};
use super::request::Request;
use super::store::Taken;
use crate::audit::{AuditError, Event};
use crate::error::{Bound, Error, Expiry, NotApproved};
use crate::state::Held;

/// That one looser run was allowed, once. Nothing copies it, nothing writes it down, and using it
/// takes it away; one that is dropped lapses.
#[derive(Debug)]
pub struct Grant {
    office: Arc<Office>,
    request: Request,
    binding: Binding,
    decision: Decision,
    deadline: Deadline,
    _waiting: Held,
}

/// That a grant was used up for the run that starts now. The run takes it.
#[derive(Debug)]
pub struct Permit {
    request: String,
    run: String,
    digest: String,
}

impl Permit {
    /// The request that was approved.
    #[must_use]
    pub fn request(&self) -> &str {
        &self.request
    }

    /// The finished run of which this is the looser one.
    #[must_use]
    pub fn retry_of(&self) -> &str {
        &self.run
    }

    /// The digest that the decision was bound to, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

impl Grant {
    pub(super) fn new(
        office: Arc<Office>,
        request: Request,
        binding: Binding,
        decision: Decision,
        deadline: Deadline,
        waiting: Held,
    ) -> Self {
        Self {
            office,
            request,
            binding,
            decision,
            deadline,
            _waiting: waiting,
        }
    }

    /// The request that was approved.
    #[must_use]
    pub const fn request(&self) -> &Request {
        &self.request
    }

    /// Uses the grant up, for what is there `now`: what it is bound to is compared, its time is looked at
    /// by both clocks, its ticket is taken and the use is recorded, and all of that is on the disk when
    /// this returns.
    ///
    /// # Errors
    /// [`Error::Approval`] when something has changed, the time is over, or the ticket was used;
    /// [`Error::Audit`] when the use could not be recorded. Nothing may run then, and the grant is gone.
    pub fn consume(self, now: &Binding) -> Result<Permit, Error> {
        let request = self.request.id.clone();
        let moment = self.office.now()?;
        let over = Expiry::Grant(self.deadline.length());
        if let Some(expiry) = self.deadline.left(&moment).expiry(over) {
            return Err(NotApproved::Expired { request, expiry }.into());
        }
        if now.boot != moment.boot || now.boot != self.binding.boot {
            let expiry = Expiry::Rebooted;
            return Err(NotApproved::Expired { request, expiry }.into());
        }
        let same = now.digest().to_string() == self.request.digest;
        if let Some(changed) = self.binding.first_change(now).or((!same).then_some(Bound::Schema)) {
            return Err(NotApproved::Changed { request, changed }.into());
        }
        match self.office.store.take(&self.request, &self.decision) {
            Ok(Taken::Now) => {}
            Ok(Taken::Before) => return Err(NotApproved::Used { request }.into()),
            Ok(Taken::Never(reason)) => return Err(NotApproved::Ticket { request, reason }.into()),
            Err(error) => {
                let path = self.office.store.decisions().path().to_owned();
                let reason = error.to_string();
                return Err(AuditError::Unwritable { path, reason }.into());
            }
        }
        let event = Event::ApprovalConsumed {
            request: request.clone(),
            digest: self.request.digest.clone(),
        };
        self.office.record(&[entry(&self.request, event)])?;
        Ok(Permit {
            request,
            run: self.request.run.clone(),
            digest: self.request.digest.clone(),
        })
    }
}

impl Drop for Grant {
    /// Nobody waits any more: what was not used until now has lapsed.
    fn drop(&mut self) {
        self.office.store.let_go(&self.request.id);
    }
}
