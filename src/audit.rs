//! The trail: what was asked, decided, run and refused, one JSON object a line, each line bound to the
//! one before it by its hash.
//!
//! [`Trail::append`] writes, [`record`] is the vocabulary. Values of the environment are never written,
//! and what looks like a secret in a command's words is replaced before it is.

pub mod export;
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

/// Whether what is recorded must be on the disk when the call returns.
pub use crate::state::Durability;

/// How much depends on the trail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recording {
    /// Nothing is recorded.
    Off,
    /// Runs are recorded; one that cannot be goes on, and says so.
    #[default]
    On,
    /// A run that cannot be recorded does not begin.
    Required,
}

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
