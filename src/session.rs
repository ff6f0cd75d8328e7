//! Sessions: a directory that never changes, and a mode that a person may switch between runs.
//!
//! Each session is a log of events in the state directory, which is only ever appended to; what a session is
//! now follows from its events, the last one winning. An event is on the disk before anybody is told
//! of it, and a log that says something it cannot mean serves no run.

mod event;
mod identity;
mod store;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ringfence_backend::{SandboxMode, WorkspaceRoot};

pub use crate::error::SessionError;
pub use crate::policy::SessionPolicy;
pub use event::Event;
pub use identity::Identity;
pub use store::{Listed, New, Store};

/// A session as its events tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    id: String,
    cwd: PathBuf,
    directory: Identity,
    mode: Option<SandboxMode>,
    created_at: Timestamp,
    events: Vec<Event>,
}

impl Session {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The path of its directory, canonical when it was made.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Its mode; absent when it has none of its own, and the deployment's default holds.
    #[must_use]
    pub const fn mode(&self) -> Option<SandboxMode> {
        self.mode
    }

    /// When it was made.
    #[must_use]
    pub const fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// All that happened to it, in order; the first is that it was made.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Opens its directory, and makes sure that it is the one that the session was made in.
    ///
    /// # Errors
    /// [`SessionError::Gone`] and [`SessionError::Replaced`].
    pub fn root(&self) -> Result<WorkspaceRoot, SessionError> {
        let gone = |source| SessionError::Gone {
            id: self.id.clone(),
            cwd: self.cwd.clone(),
            source,
        };
        let root = WorkspaceRoot::open(&self.cwd).map_err(gone)?;
        let there = Identity::of(&root).map_err(gone)?;
        if root.path() == self.cwd && there.is_still(&self.directory) {
            Ok(root)
        } else {
            Err(SessionError::Replaced {
                id: self.id.clone(),
                cwd: self.cwd.clone(),
            })
        }
    }

    /// What the session says of a policy; see [`root`](Self::root).
    ///
    /// # Errors
    /// [`SessionError::Gone`] and [`SessionError::Replaced`].
    pub fn policy(&self) -> Result<SessionPolicy, SessionError> {
        Ok(SessionPolicy {
            id: self.id.clone(),
            mode: self.mode,
            root: self.root()?,
        })
    }
}
