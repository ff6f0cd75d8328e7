//! The trail: what was asked, decided, run and refused, one JSON object a line, each line bound to the
//! one before it by its hash.
//!
//! [`Trail::append`] writes, [`record`] is the vocabulary. Values of the environment are never written,
//! and what looks like a secret in a command's words is replaced before it is.

pub mod entries;
mod hash;
mod host;
mod line;
pub mod record;
mod redact;
mod segment;
mod trail;

use std::path::PathBuf;

pub use hash::Hash;
pub use line::{MAX_LINE, Record};
pub use record::{Decider, Entry, Event};
pub use redact::redacted;
pub use trail::{Receipt, Trail};

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
}

#[cfg(test)]
mod tests;
