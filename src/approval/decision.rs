//! A decision: what somebody or something said to a request.

use serde::{Deserialize, Serialize};

use super::clock::Moment;
use super::request::Request;
use crate::audit::Decider;

/// How a request was decided. There is no other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It may be done once.
    AllowedOnce,
    /// Somebody, a rule or the policy said no.
    Rejected,
    /// It was withdrawn.
    Cancelled,
    /// Nobody answered in time.
    Expired,
    /// There was nobody to ask, or what answered gave no answer.
    Unavailable,
}

impl Outcome {
    /// Its word in documents.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::AllowedOnce => "allowed-once",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A decision, which names what it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Decision {
    pub(crate) schema: u32,
    pub(crate) id: String,
    pub(crate) digest: String,
    pub(crate) outcome: Outcome,
    pub(crate) by: Decider,
    pub(crate) at: Moment,
}

impl Decision {
    pub(crate) fn new(request: &Request, outcome: Outcome, by: Decider, at: Moment) -> Self {
        Self {
            schema: crate::facts::SCHEMA,
            id: request.id.clone(),
            digest: request.digest.clone(),
            outcome,
            by,
            at,
        }
    }

    /// How it was decided.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// By whom or what.
    #[must_use]
    pub const fn by(&self) -> &Decider {
        &self.by
    }

    pub(super) fn is_for(&self, request: &Request) -> bool {
        self.schema == crate::facts::SCHEMA && self.id == request.id && self.digest == request.digest
    }
}
