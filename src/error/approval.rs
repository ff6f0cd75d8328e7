//! Why a run that needed an approval did not happen. Each outcome is told apart, in a code and a sentence:
//! who asked has to know whether somebody said no or nobody was there.

use super::ErrorCode;

/// A run that needed an approval and did not get one, or could not use it. It did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotApproved {
    /// Nobody was asked yet.
    #[error("this needs an approval, and nobody was asked: {what}")]
    Required {
        /// What needs it, in a sentence.
        what: String,
    },
    /// Somebody, a rule or the policy said no.
    #[error("the request {request} was rejected by {by}{}", because(.reason.as_deref()))]
    Rejected {
        /// The request.
        request: String,
        /// Who or what said no.
        by: String,
        /// What was said beside it.
        reason: Option<String>,
    },
    /// Nobody answered in time, or the grant was not used in time.
    #[error("{what}. This is not a refusal")]
    Expired {
        /// What ran out, in a sentence: `nobody answered the request … within 15m`.
        what: String,
    },
    /// The request was withdrawn before it was answered.
    #[error("the request {request} was cancelled before it was answered")]
    Cancelled {
        /// The request.
        request: String,
    },
    /// There was nobody to ask, or what answered gave no answer.
    #[error("nobody could be asked: {reason}. This is not a refusal")]
    Unavailable {
        /// Why, in a sentence.
        reason: String,
    },
    /// The grant was for something else than what is there now.
    #[error("the approval {request} is not for this: {changed}")]
    Changed {
        /// The request.
        request: String,
        /// What has changed since, in a sentence.
        changed: String,
    },
    /// The grant was used before.
    #[error("the approval {request} has been used, and each is for one run")]
    Used {
        /// The request.
        request: String,
    },
}

fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}

impl NotApproved {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Required { .. } => ErrorCode::ApprovalRequired,
            Self::Rejected { .. } => ErrorCode::ApprovalRejected,
            Self::Expired { .. } => ErrorCode::ApprovalExpired,
            Self::Cancelled { .. } => ErrorCode::ApprovalCancelled,
            Self::Unavailable { .. } => ErrorCode::ApprovalUnavailable,
            Self::Changed { .. } => ErrorCode::ApprovalChanged,
            Self::Used { .. } => ErrorCode::ApprovalUsed,
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Required { .. } => {
                "ask for one run with `ringfence retry`; a person can switch a session with `ringfence session mode`"
            }
            Self::Rejected { .. } => "do not ask again for the same; go on without it, or stop",
            Self::Expired { .. } => "go on without it, or ask again when somebody is there",
            Self::Cancelled { .. } => "ask again if it is still needed",
            Self::Unavailable { .. } => "go on without it, or name another way to ask with --answer",
            Self::Changed { .. } | Self::Used { .. } => "ask again, for what is there now",
        }
        .to_owned()
    }
}
