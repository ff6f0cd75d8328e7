//! Requests as they are listed.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::super::decision::{Decision, Outcome};
use super::super::request::Request;

/// How a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It waits for an answer.
    Pending,
    /// It was allowed, and its grant is not used yet.
    AllowedOnce,
    /// Somebody, a rule or the policy said no.
    Rejected,
    /// Nobody answered in time.
    Expired,
    /// It was withdrawn.
    Cancelled,
    /// There was nobody to ask, or what answered gave no answer.
    Unavailable,
    /// Its grant was used.
    Consumed,
    /// Whoever asked is gone, or did not use the grant.
    Lapsed,
}

impl State {
    pub(super) const fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::AllowedOnce => Self::AllowedOnce,
            Outcome::Rejected => Self::Rejected,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Expired => Self::Expired,
            Outcome::Unavailable => Self::Unavailable,
        }
    }

    /// Its word in documents.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::AllowedOnce => "allowed-once",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Unavailable => "unavailable",
            Self::Consumed => "consumed",
            Self::Lapsed => "lapsed",
        }
    }
}

/// A request and how it stands.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The request.
    pub request: Request,
    /// How it stands.
    pub state: State,
    /// The decision, when there is one.
    pub decision: Option<Decision>,
}

impl Serialize for Listed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = self.request.document();
        if let Value::Object(fields) = &mut document {
            fields.insert("state".to_owned(), self.state.word().into());
            let by = self.decision.as_ref().map(|it| &it.by);
            fields.insert("decidedBy".to_owned(), serde_json::to_value(by).unwrap_or(Value::Null));
            let at = self.decision.as_ref().map(|it| it.at.timestamp());
            fields.insert("decidedAt".to_owned(), at.into());
        }
        document.serialize(serializer)
    }
}
