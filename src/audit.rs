//! The trail: what was asked, decided, run and refused, one JSON object a line, each line bound to the
//! one before it by its hash.
//!
//! [`Trail::append`] writes, [`record`] is the vocabulary. Values of the environment are never written,
//! and what looks like a secret in a command's words is replaced before it is.

mod checkpoint;
pub mod entries;
pub mod export;
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

pub use checkpoint::{Checkpoint, origin};
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
pub use crate::error::trail::{AuditError, Fault, FaultKind};

/// Whether what is recorded must be on the disk when the call returns.
pub use crate::state::Durability;

#[cfg(test)]
mod tests;
