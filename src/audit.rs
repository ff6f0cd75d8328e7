//! The trail: what was asked, decided, run and refused, one JSON object a line, each line bound to the
//! one before it by its hash.
//!
//! [`Trail::append`] writes, [`record`] is the vocabulary. Values of the environment are never written,
//! and what looks like a secret in a command's words is replaced before it is.

mod checkpoint;
pub mod entries;
pub mod export;
mod fault;
mod hash;
mod host;
mod line;
mod merkle;
mod note;
mod prune;
pub mod query;
mod read;
pub mod record;
mod redact;
mod segment;
mod trail;
mod verify;

use std::path::PathBuf;

pub use checkpoint::{Checkpoint, origin};
pub use fault::{Fault, FaultKind};
pub use hash::Hash;
pub use line::{MAX_LINE, Record};
pub use note::{Note, Signer, Verifier};
pub use prune::{Keep, Pruned};
pub use read::{Reading, Records, Unread};
pub use record::{Decider, Entry, Event};
pub use redact::redacted;
pub use trail::{Receipt, Trail};
pub use verify::Verified;

pub use crate::config::Recording;

/// Whether what is recorded must be on the disk when the call returns.
pub use crate::state::Durability;

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

#[cfg(test)]
mod tests;
