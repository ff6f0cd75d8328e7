//! What can be wrong with the trail.

mod fault;

use std::path::PathBuf;

pub use fault::{Fault, FaultKind};

/// Why something could not be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The trail cannot be opened or written.
    #[error("the audit trail {path:?} cannot be written: {reason}")]
    Unwritable {
        /// The directory of the trail.
        path: PathBuf,
        /// Why, in a sentence.
        reason: String,
    },
    /// The trail cannot be read.
    #[error("the audit trail {path:?} cannot be read: {reason}")]
    Unreadable {
        /// The directory of the trail, or the file in question.
        path: PathBuf,
        /// Why, in a sentence.
        reason: String,
    },
    /// The trail does not verify, and what is found in it is kept.
    #[error("the audit trail does not verify, so nothing of it is removed: {0}")]
    Faulty(Fault),
    /// There is no trail.
    #[error("there is no audit trail at {path:?}: nothing has been recorded there, or it was removed")]
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
}

impl AuditError {
    /// What to do about it.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Unwritable { .. } => {
                "make the state directory writable for you and for no run, or name another with RINGFENCE_STATE_DIR"
            }
            Self::Unreadable { .. } => "read it as the user whose trail it is, or from a copy",
            Self::Missing { .. } => {
                "RINGFENCE_STATE_DIR names the state directory; the first run that is recorded makes the trail"
            }
            Self::Faulty(_) => "keep a copy of the trail as it is, and see `ringfence audit verify`",
        }
    }
}
