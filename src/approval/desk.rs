//! The desk: where a question becomes a request, somebody is asked, and the answer becomes a grant or an
//! error. Each request is recorded once as asked and once as decided, whatever happens.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::binding::Binding;
use super::clock::{Clock, Moment};
use super::decision::Outcome;
use super::grant::Grant;
use super::office::host;
use super::office::{Office, asked, decider, for_the_trail, unwritable};
use super::request::{Frame, Question, Request};
use super::settings::{Answerer, Settings};
use super::settle::{Posted, Verdict};
use super::store::{Found, Store};
use super::vigil::{End, Said, Turn, Vigil, Withdrawal};
use super::{hook, tty};
use crate::audit::{Decider, Trail};
use crate::config::ApprovalPolicy;
use crate::error::Error;

/// The alphabet of the short codes: no two of its characters look alike.
const CODES: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Asks whoever is to be asked.
#[derive(Debug)]
pub struct Desk {
    office: Arc<Office>,
    settings: Settings,
}

impl Desk {
    /// A desk with its files in the state directory `state_dir`, which records in `trail`.
    ///
    /// # Errors
    /// [`Error::Audit`] where no state can be kept that runs cannot write.
    pub fn open(state_dir: &Path, trail: Arc<Trail>, settings: Settings) -> Result<Self, Error> {
        Self::with_clock(state_dir, trail, settings, Clock::System)
    }

    pub(super) fn with_clock(
        state_dir: &Path,
        trail: Arc<Trail>,
        settings: Settings,
        clock: Clock,
    ) -> Result<Self, Error> {
        let store = Store::open(state_dir).map_err(|reason| unwritable(state_dir, reason))?;
        Ok(Self {
            office: Arc::new(Office { store, trail, clock }),
            settings,
        })
    }

    /// Asks, and waits for the answer, which holds for exactly what `binding` says.
    ///
    /// # Errors
    /// [`Error::Approval`] for every answer but yes, [`Error::Audit`] when the question or the answer
    /// could not be recorded. In each case nothing may run.
    pub fn ask(&self, question: Question, binding: Binding, withdrawal: &dyn Withdrawal) -> Result<Grant, Error> {
        let posted = self.post(question, binding)?;
        let verdict = self.beforehand(&posted, withdrawal).unwrap_or_else(|| {
            self.put_to_answerers(&posted, withdrawal)
                // Its end is recorded, and it is no answer.
                .unwrap_or_else(|error| unavailable(format!("asking failed: {error}")))
        });
        posted.settle(verdict)
    }

    /// Makes the request, records it, and lays it open to be answered.
    pub(super) fn post(&self, question: Question, binding: Binding) -> Result<Posted, Error> {
        let office = Arc::clone(&self.office);
        office.sweep()?;
        let now = office.now()?;
        let frame = Frame {
            id: name(&now),
            code: self.code().map_err(host)?,
            digest: binding.digest().to_string(),
            asked_at: now.timestamp(),
            deadline: now.end_after(self.settings.request_ttl),
            answerers: self.settings.answerers.iter().map(|it| it.word().to_owned()).collect(),
        };
        let opens = question.opens.clone();
        let argv = for_the_trail(&question.argv);
        let request = Request::new(question, frame);
        office.record(&[asked(&request, argv)])?;
        let open = self.rejected(&request, &opens).is_none() && !request.answerers.is_empty();
        let held = office.store.hold(&request.id).map_err(|error| error.to_string());
        let written = held.and_then(|held| match office.store.put_request(&request, open) {
            Ok(()) => Ok(held),
            Err(error) => Err(error.to_string()),
        });
        Ok(Posted {
            office,
            request,
            binding,
            opens,
            held: written,
            grant_ttl: self.settings.grant_ttl,
        })
    }

    /// Who rejects it before anybody is asked.
    fn rejected(&self, request: &Request, opens: &[PathBuf]) -> Option<Decider> {
        if self.settings.policy == ApprovalPolicy::Never {
            let why = "looser runs are not to be asked for here".to_owned();
            return Some(decider("policy", "the approval policy `never`", Some(why)));
        }
        if request.looseness > self.settings.most {
            let why = format!("what is deployed allows {} at most", word(&self.settings.most));
            return Some(decider("policy", "the approval policy `max_looseness`", Some(why)));
        }
        let rule = self
            .settings
            .reject
            .iter()
            .find(|rule| rule.rejects_mode(request.mode) || opens.iter().any(|open| rule.rejects_write(open)))?;
        Some(decider(
            "rule",
            &format!("the rule {}", rule.name),
            Some(rule.reason.clone()),
        ))
    }

    /// What is decided before anybody is asked.
    fn beforehand(&self, posted: &Posted, withdrawal: &dyn Withdrawal) -> Option<Verdict> {
        if let Some(by) = self.rejected(&posted.request, &posted.opens) {
            return Some((Outcome::Rejected, by));
        }
        if let Err(why) = &posted.held {
            return Some(unavailable(format!("the request could not be written down: {why}")));
        }
        if withdrawal.is_withdrawn() {
            return Some(withdrawn());
        }
        if posted.request.answerers.is_empty() {
            return Some(unavailable("there is no way to ask anybody".to_owned()));
        }
        None
    }

    /// Asks one after the other; the first decision is the one.
    fn put_to_answerers(&self, posted: &Posted, withdrawal: &dyn Withdrawal) -> Result<Verdict, Error> {
        let vigil = Vigil::new(&posted.office.store, &posted.office.clock, &posted.request, withdrawal);
        let mut reasons = Vec::new();
        for answerer in &self.settings.answerers {
            let answer = match answerer {
                Answerer::Tty => tty::ask(&vigil, &posted.request)?,
                Answerer::Hook(hook) => hook::ask(&vigil, hook, &posted.request)?,
                Answerer::Queue => self.wait_in_queue(&vigil, &posted.request)?,
            };
            match answer {
                Said::Decided(outcome, by) => return Ok((outcome, by)),
                Said::Ended(End::Decided(decision)) => return Ok((decision.outcome, decision.by)),
                Said::Ended(End::Withdrawn) => return Ok(withdrawn()),
                Said::Ended(End::Expired(expiry)) => {
                    return Ok((
                        Outcome::Expired,
                        decider("clock", "Ringfence", Some(expiry.to_string())),
                    ));
                }
                Said::Nothing(why) => reasons.push(format!("{}: {why}", answerer.word())),
            }
        }
        Ok(unavailable(reasons.join("; ")))
    }

    /// Waits for whoever answers from elsewhere, after they were told if there is a way to.
    fn wait_in_queue(&self, vigil: &Vigil<'_>, request: &Request) -> Result<Said, Error> {
        vigil.tell_asker();
        if let Some(notify) = &self.settings.notify
            && let Some(end) = hook::tell(vigil, notify, request)?
        {
            return Ok(Said::Ended(end));
        }
        Ok(match vigil.wait(&[], None)? {
            Turn::Ended(end) => Said::Ended(end),
            Turn::Ready | Turn::Passed => Said::Nothing("it was not waited for".to_owned()),
        })
    }

    /// A short code that no open request has.
    fn code(&self) -> io::Result<String> {
        let taken: Vec<_> = self
            .office
            .store
            .ids(false)?
            .iter()
            .filter_map(|id| match self.office.store.request(id) {
                Found::Ours((request, _)) => Some(request.code),
                Found::Nothing | Found::Foreign(_) => None,
            })
            .collect();
        loop {
            let random: [u8; 3] = ringfence_backend::descriptor::random()?;
            let code: String = random
                .iter()
                .map(|byte| char::from(CODES[usize::from(byte % 32)]))
                .collect();
            // With so many that are open another of the same code is no worse than a long search.
            if !taken.contains(&code) || taken.len() > 1000 {
                return Ok(code);
            }
        }
    }
}

fn unavailable(why: String) -> Verdict {
    (Outcome::Unavailable, decider("asker", "Ringfence", Some(why)))
}

fn withdrawn() -> Verdict {
    let why = "whoever asked has withdrawn it".to_owned();
    (Outcome::Cancelled, decider("asker", "Ringfence", Some(why)))
}

/// A name for a request: a UUID of version 7 (RFC 9562), which sorts by time.
fn name(now: &Moment) -> String {
    let random = ringfence_backend::descriptor::random().unwrap_or_default();
    uuid::Builder::from_unix_timestamp_millis(now.wall_ms, &random)
        .into_uuid()
        .to_string()
}

/// The word that documents use for a value.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|it| it.as_str().map(str::to_owned))
        .unwrap_or_default()
}
