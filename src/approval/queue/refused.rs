//! Why an answer was not taken.

use super::State;
use crate::error::{Error, ErrorCode};

/// The first few of many names.
fn some_of(ids: &[String]) -> String {
    const FEW: usize = 4;
    match ids.get(..FEW) {
        Some(few) if ids.len() > FEW => format!("{} and {} more", few.join(", "), ids.len() - FEW),
        _ => ids.join(", "),
    }
}

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotAnswered {
    /// No such request.
    #[error("there is no request {given:?}: it was never made here, or was removed since")]
    Unknown {
        /// What was given.
        given: String,
    },
    /// Several are meant.
    #[error("{given:?} may be any of {}", some_of(ids))]
    Ambiguous {
        /// What was given.
        given: String,
        /// The requests that it may be.
        ids: Vec<String>,
    },
    /// It has an end already.
    #[error("the request {id} is {} already{}", .state.word(), decided_by(.by.as_deref()))]
    Decided {
        /// The request.
        id: String,
        /// How it stands.
        state: State,
        /// Who or what decided.
        by: Option<String>,
    },
    /// Its time is over.
    #[error("the request {id} has expired: {why}")]
    Expired {
        /// The request.
        id: String,
        /// What ran out.
        why: String,
    },
    /// Whoever asked is gone.
    #[error("nobody waits for the answer to the request {id} any more: whoever asked is gone")]
    Lapsed {
        /// The request.
        id: String,
    },
    /// It is asked elsewhere.
    #[error("the request {id} is not to be answered here: it is asked of {asked}")]
    Elsewhere {
        /// The request.
        id: String,
        /// Of whom.
        asked: String,
    },
    /// Whoever answers is inside a run.
    #[error("a command inside a run of Ringfence ({run}) cannot answer requests")]
    Inside {
        /// The run.
        run: String,
    },
    /// Something unconfined of the same session could be answering.
    #[error("the run {run} of the same session is not confined and still there: it could be answering itself")]
    Unconfined {
        /// The run.
        run: String,
    },
    /// There is no terminal to show the card at.
    #[error("the card cannot be shown: {why}")]
    NoTerminal {
        /// Why.
        why: String,
    },
    /// Whoever answers has not confirmed it.
    #[error("the request {id} is not answered: {why}")]
    Unconfirmed {
        /// The request.
        id: String,
        /// What was done instead.
        why: String,
    },
    /// The state directory or the host failed.
    #[error(transparent)]
    Failed(#[from] Error),
}

fn decided_by(by: Option<&str>) -> String {
    by.map_or_else(String::new, |by| format!(", by {by}"))
}

impl NotAnswered {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown { .. } | Self::Ambiguous { .. } | Self::Elsewhere { .. } => ErrorCode::InputInvalid,
            Self::Decided { .. } => ErrorCode::ApprovalUsed,
            Self::Expired { .. } => ErrorCode::ApprovalExpired,
            Self::Lapsed { .. } | Self::Unconfirmed { .. } => ErrorCode::ApprovalCancelled,
            Self::Inside { .. } | Self::Unconfined { .. } => ErrorCode::ApprovalRejected,
            Self::NoTerminal { .. } => ErrorCode::ApprovalUnavailable,
            Self::Failed(error) => error.code(),
        }
    }

    /// What to do about it, when there is something.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unknown { .. } => "`ringfence approvals list --all` shows those that there are",
            Self::Ambiguous { .. } => "give more of the id",
            Self::Expired { .. } | Self::Lapsed { .. } => "if it is still needed it has to be asked for again",
            Self::Elsewhere { .. } => "answer it where it is asked",
            Self::Inside { .. } => "answer from a terminal outside",
            Self::Unconfined { .. } => "answer when that run has ended",
            Self::NoTerminal { .. } => {
                "answer from a terminal, or look at it with `ringfence approvals show` and answer with --yes"
            }
            Self::Decided { .. } | Self::Unconfirmed { .. } | Self::Failed(_) => return None,
        })
    }
}
