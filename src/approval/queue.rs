//! The other side of the desk: listing requests, and answering them from elsewhere.

mod listed;
mod refused;

use std::path::Path;

use super::clock::{Clock, Left, Moment};
use super::decision::{Decision, Outcome};
use super::inside::{Inside, unconfined_run_of};
use super::office::host;
use super::office::{QUEUE, decider};
use super::request::Request;
use super::store::{Found, Settled, Store};
use super::tty::{self, Broken, whoever};
use super::vigil::Vigil;
use crate::audit::AuditError;
use crate::error::{Error, Expiry};

pub use listed::{Listed, State};
pub use refused::NotAnswered;

/// What somebody answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it may be done, once.
    pub allow: bool,
    /// What is said beside it.
    pub reason: Option<String>,
}

/// How sure it is that somebody has seen what they answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assurance {
    /// The whole card was shown at a terminal, and answered there.
    Seen,
    /// The answer came without.
    Asserted,
}

impl Assurance {
    const fn word(self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::Asserted => "asserted",
        }
    }
}

/// The requests of a state directory.
#[derive(Debug)]
pub struct Queue {
    store: Store,
    clock: Clock,
}

impl Queue {
    /// The requests in the state directory `state_dir`.
    ///
    /// # Errors
    /// [`Error::Audit`] where it cannot be used.
    pub fn open(state_dir: &Path) -> Result<Self, Error> {
        Self::with_clock(state_dir, Clock::System)
    }

    pub(super) fn with_clock(state_dir: &Path, clock: Clock) -> Result<Self, Error> {
        let store = Store::open(state_dir).map_err(|reason| AuditError::Unwritable {
            path: state_dir.to_owned(),
            reason,
        })?;
        Ok(Self { store, clock })
    }

    /// The requests that are not decided, or `all` of them, oldest first; and what was found among them
    /// and is none.
    ///
    /// # Errors
    /// [`Error::Host`] when the directory cannot be read.
    pub fn list(&self, all: bool) -> Result<(Vec<Listed>, Vec<String>), Error> {
        let (mut listed, mut notes) = (Vec::new(), Vec::new());
        for id in self.store.ids(all).map_err(host)? {
            match self.store.request(&id) {
                Found::Ours((request, open)) => {
                    if all || open {
                        listed.push(self.standing(request, open)?);
                    }
                }
                Found::Foreign(what) => notes.push(format!("the file of the request {id} is left out: {what}")),
                Found::Nothing => {}
            }
        }
        Ok((listed, notes))
    }

    /// The request of this name, of a part of it that no other begins with, or of this short code.
    ///
    /// # Errors
    /// [`NotAnswered::Unknown`], [`NotAnswered::Ambiguous`].
    pub fn find(&self, given: &str) -> Result<Listed, NotAnswered> {
        let unknown = || NotAnswered::Unknown {
            given: given.to_owned(),
        };
        if given.is_empty() {
            return Err(unknown());
        }
        let ids = self.store.ids(true).map_err(host)?;
        let wanted = given.to_ascii_lowercase();
        let mut fit: Vec<_> = ids.into_iter().filter(|id| id.starts_with(&wanted)).collect();
        if fit.len() != 1 {
            // Codes are for what is open.
            let coded = self
                .list(false)?
                .0
                .into_iter()
                .filter(|it| it.request.code.eq_ignore_ascii_case(given));
            let coded: Vec<_> = coded.map(|it| it.request.id).collect();
            if !coded.is_empty() {
                fit = coded;
            }
        }
        match fit.as_slice() {
            [] => Err(unknown()),
            [id] => match self.store.request(id) {
                Found::Ours((request, open)) => Ok(self.standing(request, open)?),
                Found::Nothing | Found::Foreign(_) => Err(unknown()),
            },
            _ => Err(NotAnswered::Ambiguous {
                given: given.to_owned(),
                ids: fit,
            }),
        }
    }

    fn standing(&self, request: Request, open: bool) -> Result<Listed, Error> {
        let now = self.clock.now().map_err(host)?;
        let used = self.store.used(&request);
        let decision = match (&used, self.store.decision(&request)) {
            (Some(used), _) => Some(used.clone()),
            (None, Found::Ours(decision)) => Some(decision),
            (None, Found::Nothing | Found::Foreign(_)) => None,
        };
        let in_time = |at: &Moment| matches!(request.deadline.left(at), Left::Time(_));
        let awaited = self.store.is_awaited(&request.id);
        let state = match &decision {
            Some(_) if used.is_some() => State::Consumed,
            Some(decision) if decision.outcome == Outcome::AllowedOnce && !in_time(&decision.at) => State::Expired,
            Some(decision) if decision.outcome == Outcome::AllowedOnce && !awaited => State::Lapsed,
            Some(decision) => State::of(decision.outcome),
            None if !in_time(&now) => State::Expired,
            None if open && awaited => State::Pending,
            None => State::Lapsed,
        };
        Ok(Listed {
            request,
            state,
            decision,
        })
    }

    /// Answers at once. Recorded as asserted: nobody knows whether the card was seen.
    ///
    /// # Errors
    /// [`NotAnswered`], and then nothing has changed.
    pub fn answer(&self, listed: &Listed, answer: &Answer, inside: Option<&Inside>) -> Result<(), NotAnswered> {
        self.check(listed, answer, inside)?;
        self.put(listed, answer, Assurance::Asserted)
    }

    /// Shows the card at the terminal, and answers when it is confirmed there: a yes with the request's
    /// code, a no with `y`.
    ///
    /// # Errors
    /// [`NotAnswered`], and then nothing has changed.
    pub fn answer_at_terminal(
        &self,
        listed: &Listed,
        answer: &Answer,
        inside: Option<&Inside>,
    ) -> Result<(), NotAnswered> {
        self.check(listed, answer, inside)?;
        let request = &listed.request;
        let vigil = Vigil::of_answerer(&self.store, &self.clock, request);
        let (question, expected) = if answer.allow {
            (" To allow it once, type its code: ", request.code.as_str())
        } else {
            (" Deny it? [y] ", "y")
        };
        let unconfirmed = |why: &str| NotAnswered::Unconfirmed {
            id: request.id.clone(),
            why: why.to_owned(),
        };
        match tty::confirm(&vigil, request, question, expected) {
            Ok(false) => return Err(unconfirmed("what was typed is something else")),
            Err(Broken::Closed(why)) => return Err(unconfirmed(&why)),
            Err(Broken::None(why)) => return Err(NotAnswered::NoTerminal { why }),
            Err(Broken::Failed(error)) => return Err(error.into()),
            // What has ended it meanwhile is told below.
            Ok(true) | Err(Broken::Ended(_)) => {}
        }
        // A card can be looked at for long.
        let Found::Ours((request, open)) = self.store.request(&request.id) else {
            let given = request.id.clone();
            return Err(NotAnswered::Unknown { given });
        };
        let listed = self.standing(request, open)?;
        self.check(&listed, answer, inside)?;
        self.put(&listed, answer, Assurance::Seen)
    }

    /// Whether it can be answered here and now.
    fn check(&self, listed: &Listed, answer: &Answer, inside: Option<&Inside>) -> Result<(), NotAnswered> {
        let id = listed.request.id.clone();
        if let Some(Inside { run }) = inside {
            return Err(NotAnswered::Inside { run: run.clone() });
        }
        match listed.state {
            State::Pending => {}
            State::Lapsed if listed.decision.is_none() => return Err(NotAnswered::Lapsed { id }),
            State::Expired => {
                let now = self.clock.now().map_err(host)?;
                let over = Expiry::Request(listed.request.deadline.length());
                let why = listed
                    .request
                    .deadline
                    .left(&now)
                    .expiry(over)
                    .unwrap_or(over)
                    .to_string();
                return Err(NotAnswered::Expired { id, why });
            }
            state => {
                let by = listed.decision.as_ref().map(|it| it.by.principal.clone());
                return Err(NotAnswered::Decided { id, state, by });
            }
        }
        if !listed.request.answerers.iter().any(|it| it == QUEUE) {
            let asked = listed.request.answerers.join(", ");
            return Err(NotAnswered::Elsewhere { id, asked });
        }
        if answer.allow
            && let Some(session) = &listed.request.session
            && let Some(run) = unconfined_run_of(session)
        {
            return Err(NotAnswered::Unconfined { run });
        }
        Ok(())
    }

    fn put(&self, listed: &Listed, answer: &Answer, assurance: Assurance) -> Result<(), NotAnswered> {
        let request = &listed.request;
        let mut by = decider(QUEUE, &whoever(), answer.reason.clone());
        by.assurance = Some(assurance.word().to_owned());
        let outcome = if answer.allow {
            Outcome::AllowedOnce
        } else {
            Outcome::Rejected
        };
        let now = self.clock.now().map_err(host)?;
        let decision = Decision::new(request, outcome, by, now);
        match self.store.decide(request, &decision) {
            Ok(Settled::Now) => Ok(()),
            Ok(Settled::Before(before)) => {
                let (id, by) = (request.id.clone(), Some(before.by.principal));
                let state = State::of(before.outcome);
                Err(NotAnswered::Decided { id, state, by })
            }
            Err(error) => {
                let path = self.store.decisions().path().to_owned();
                let reason = error.to_string();
                Err(Error::from(AuditError::Unwritable { path, reason }).into())
            }
        }
    }
}
