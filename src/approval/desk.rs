//! The desk: where a question becomes a request, somebody is asked, and the answer becomes a grant or an
//! error. Each request is recorded once as asked and once as decided, whatever happens.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::binding::Binding;
use super::clock::{Clock, Moment};
use super::grant::Grant;
use super::office::{Office, asked, decider, for_the_trail, unwritable};
use super::request::{Frame, Question, Request};
use super::settings::{Answerer, AnswererKind, AskPolicy, Looseness, Rule, Settings};
use super::settle::{Posted, Verdict};
use super::store::{Found, Outcome, Store};
use super::vigil::{End, Turn, Vigil, Withdrawal, host};
use super::{hook, tty};
use crate::audit::{Decider, Trail};
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
            answerers: self
                .may_grant(question.looseness)
                .map(|it| it.kind.word().to_owned())
                .collect(),
        };
        let opens = question.opens.clone();
        let argv = for_the_trail(&question.argv);
        let request = Request::new(question, frame);
        office.record(&[asked(&request, argv)])?;
        let nobody = self.settings.policy == AskPolicy::Never || request.answerers.is_empty();
        let rejected = self.rule_against(&request, &opens).is_some();
        let open = !nobody && !rejected;
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

    /// The answerers that may say yes to something this loose.
    fn may_grant(&self, looseness: Looseness) -> impl Iterator<Item = &Answerer> {
        self.settings.answerers.iter().filter(move |it| it.most >= looseness)
    }

    fn rule_against(&self, request: &Request, opens: &[PathBuf]) -> Option<&Rule> {
        self.settings
            .rules
            .iter()
            .find(|rule| rule.rejects(request.looseness, opens))
    }

    /// What is decided before anybody is asked.
    fn beforehand(&self, posted: &Posted, withdrawal: &dyn Withdrawal) -> Option<Verdict> {
        if self.settings.policy == AskPolicy::Never {
            let why = "looser runs are not to be asked for here".to_owned();
            return Some((
                Outcome::Rejected,
                decider("policy", "the approval policy `never`", Some(why)),
            ));
        }
        if let Some(rule) = self.rule_against(&posted.request, &posted.opens) {
            let by = decider("rule", &format!("the rule {}", rule.name), Some(rule.reason.clone()));
            return Some((Outcome::Rejected, by));
        }
        if let Err(why) = &posted.held {
            return Some(unavailable(format!("the request could not be written down: {why}")));
        }
        if withdrawal.is_withdrawn() {
            return Some(withdrawn());
        }
        if posted.request.answerers.is_empty() {
            let why = if self.settings.answerers.is_empty() {
                "there is no way to ask anybody".to_owned()
            } else {
                format!("nobody who is asked here may allow {}", posted.request.looseness.word())
            };
            return Some(unavailable(why));
        }
        None
    }

    /// Asks one after the other; the first decision is the one.
    fn put_to_answerers(&self, posted: &Posted, withdrawal: &dyn Withdrawal) -> Result<Verdict, Error> {
        let vigil = Vigil::new(&posted.office.store, &posted.office.clock, &posted.request, withdrawal);
        let mut reasons = Vec::new();
        for answerer in self.may_grant(posted.request.looseness) {
            let answer = match &answerer.kind {
                AnswererKind::Tty => tty::ask(&vigil, &posted.request)?,
                AnswererKind::Hook(hook) => hook::ask(&vigil, hook, &posted.request)?,
                AnswererKind::Queue => match vigil.wait(&[], None)? {
                    Turn::Ended(end) => Said::Ended(end),
                    Turn::Ready | Turn::Passed => Said::Nothing("it was not waited for".to_owned()),
                },
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
                Said::Nothing(why) => reasons.push(format!("{}: {why}", answerer.kind.word())),
            }
        }
        Ok(unavailable(reasons.join("; ")))
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

/// What an answerer came to.
#[derive(Debug)]
pub(super) enum Said {
    /// This, by somebody.
    Decided(Outcome, Decider),
    /// Nothing, and why.
    Nothing(String),
    /// The waiting ended meanwhile.
    Ended(End),
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
