//! The desk: where a question becomes a request, somebody is asked, and the answer becomes a grant or an
//! error. Each request is recorded once as asked and once as decided, whatever happens.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::binding::Binding;
use super::clock::{Clock, Left, Moment};
use super::grant::Grant;
use super::request::{Frame, Question, Request, lossy};
use super::settings::{Answerer, AnswererKind, AskPolicy, Looseness, Rule, Settings};
use super::store::{Decision, Found, Outcome, Settled, Store};
use super::vigil::{End, Turn, Vigil, Withdrawal, host};
use super::{hook, tty};
use crate::audit::{AuditError, Decider, Durability, Entry, Event, Trail};
use crate::error::{Error, Expiry, NotApproved, Rejecter};
use crate::state::Held;

/// The word for the queue, in requests and decisions.
pub(super) const QUEUE: &str = AnswererKind::Queue.word();

/// The alphabet of the short codes: no two of its characters look alike.
const CODES: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

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
    fn sweep(&self) -> Result<(), Error> {
        for id in self.store.ids(false).unwrap_or_default() {
            self.sweep_one(&id)?;
        }
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

type Verdict = (Outcome, Decider);

fn unavailable(why: String) -> Verdict {
    (Outcome::Unavailable, decider("asker", "Ringfence", Some(why)))
}

fn withdrawn() -> Verdict {
    let why = "whoever asked has withdrawn it".to_owned();
    (Outcome::Cancelled, decider("asker", "Ringfence", Some(why)))
}

/// A request that is recorded as asked, and has to be settled.
#[derive(Debug)]
pub(super) struct Posted {
    pub(super) office: Arc<Office>,
    pub(super) request: Request,
    binding: Binding,
    opens: Vec<PathBuf>,
    /// The lock that says that somebody waits, or why the request is not written down.
    held: Result<Held, String>,
    grant_ttl: Duration,
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

pub(super) fn decider(kind: &str, principal: &str, reason: Option<String>) -> Decider {
    Decider {
        kind: kind.to_owned(),
        principal: principal.to_owned(),
        assurance: None,
        reason,
    }
}

fn unwritable(path: &Path, reason: String) -> Error {
    let path = path.to_owned();
    AuditError::Unwritable { path, reason }.into()
}

/// A name for a request: a UUID of version 7 (RFC 9562), which sorts by time.
fn name(now: &Moment) -> String {
    let random = ringfence_backend::descriptor::random().unwrap_or_default();
    uuid::Builder::from_unix_timestamp_millis(now.wall_ms, &random)
        .into_uuid()
        .to_string()
}

fn for_the_trail(argv: &[OsString]) -> Vec<String> {
    lossy(argv)
}

fn asked(request: &Request, argv: Vec<String>) -> Entry {
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

fn decided(request: &Request, decision: &Decision) -> Entry {
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
