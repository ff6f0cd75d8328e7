//! The deployment: what a machine's administrator fixes, what its user prefers, and what a workspace
//! tightens, from up to three files.
//!
//! The system's file stands first and may say anything. The user's may choose the default mode
//! beneath the ceiling; of whatever else the system says it can only tighten it. The workspace's may only
//! tighten. A file that is there and cannot be read is an error.

mod approval;
mod error;
mod file;
mod layer;
mod merge;
#[cfg(test)]
mod properties;
mod read;
mod said;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use ringfence_backend::{Require, SandboxMode, WorkspaceRoot};

pub use approval::{Answerer, Approval, ApprovalPolicy, Looseness, Reject, Rejected};
pub use error::{ConfigError, Key};
pub use layer::Origin;

use crate::tables::Place;
use said::Standing;

/// The file of the system.
pub const SYSTEM_FILE: &str = "/etc/ringfence/config.toml";
/// The file of a workspace, in its root.
pub const WORKSPACE_FILE: &str = ".ringfence.toml";

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

impl Recording {
    /// The word for it in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Required => "required",
        }
    }
}

/// Where the files are. One that is not there says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files<'a> {
    /// The system's, usually [`SYSTEM_FILE`].
    pub system: Option<&'a Path>,
    /// The user's.
    pub user: Option<&'a Path>,
    /// The workspace, in whose root a [`WORKSPACE_FILE`] may stand.
    pub workspace: Option<&'a WorkspaceRoot>,
    /// The user's home, which a `~` in a rule means.
    pub home: Option<&'a Path>,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The file.
    pub path: PathBuf,
    /// Whose it is.
    pub origin: Origin,
    /// The SHA-256 digest of its content, in hexadecimal.
    pub sha256: String,
}

/// What the files come to, or the defaults where there are none. Immutable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    mode: Standing<SandboxMode>,
    ceiling: Standing<SandboxMode>,
    require: Standing<Require>,
    audit: Standing<Recording>,
    approval: Approval,
    sources: Vec<Loaded>,
}

impl Default for Settings {
    /// What holds without any file: read-only unless asked, no ceiling, and whoever is at the terminal may approve.
    fn default() -> Self {
        Self {
            mode: Standing::default_of(SandboxMode::ReadOnly),
            ceiling: Standing::default_of(SandboxMode::DangerFullAccess),
            require: Standing::default_of(Require::Partial),
            audit: Standing::default_of(Recording::On),
            approval: Approval::default(),
            sources: Vec::new(),
        }
    }
}

/// Reads the files that are there, and settles what they come to.
///
/// # Errors
/// [`ConfigError`] for a file that cannot be read, that others could have written, or that says something
/// it cannot mean or must not say.
pub fn load(files: &Files<'_>) -> Result<Settings, ConfigError> {
    let mut settings = Settings::default();
    let texts = [
        file::system(files.system)?,
        file::user(files.user)?,
        file::workspace(files.workspace)?,
    ];
    let found = Origin::ALL.into_iter().zip(texts);
    for (origin, (path, text)) in found.filter_map(|(origin, text)| Some((origin, text?))) {
        let layer = read::layer(origin, &path, &text, files.home)?;
        settings.merge(layer)?;
        settings.sources.push(Loaded {
            path,
            origin,
            sha256: crate::bytes::sha256(text.as_bytes()),
        });
    }
    Ok(settings)
}

impl Settings {
    /// The mode of runs that do not say one.
    #[must_use]
    pub const fn mode(&self) -> SandboxMode {
        self.mode.value
    }

    /// Which file says so; absent for the default.
    #[must_use]
    pub const fn mode_said_in(&self) -> Option<&Place> {
        self.mode.said_in.as_ref()
    }

    /// The loosest mode that a run can have.
    #[must_use]
    pub const fn ceiling(&self) -> SandboxMode {
        self.ceiling.value
    }

    /// Which file says so; absent for the default.
    #[must_use]
    pub const fn ceiling_said_in(&self) -> Option<&Place> {
        self.ceiling.said_in.as_ref()
    }

    /// How complete the enforcement of every run has to be at least. `partial` asks for nothing, so
    /// whatever a run asks for beyond this adds to it.
    #[must_use]
    pub const fn require(&self) -> Require {
        self.require.value
    }

    /// Whether runs are recorded that do not say so themselves.
    #[must_use]
    pub const fn audit(&self) -> Recording {
        self.audit.value
    }

    /// What holds for approvals.
    #[must_use]
    pub const fn approval(&self) -> &Approval {
        &self.approval
    }

    /// The files that were read, in the order in which they count.
    #[must_use]
    pub fn sources(&self) -> &[Loaded] {
        &self.sources
    }

    /// Makes sure that a mode is no looser than the ceiling. `asked_by` says in words who wants it: `--mode`,
    /// `the session 7`.
    ///
    /// # Errors
    /// [`ConfigError::AboveCeiling`] that names the file which sets the ceiling.
    pub fn allows(&self, mode: SandboxMode, asked_by: &str) -> Result<(), ConfigError> {
        if mode <= self.ceiling() {
            return Ok(());
        }
        Err(ConfigError::AboveCeiling {
            asked_by: asked_by.to_owned(),
            mode,
            ceiling: self.ceiling(),
            said_in: self.ceiling.said_in.clone(),
        })
    }

    /// How a run is recorded that asks for this; what is deployed, when it asks for nothing.
    ///
    /// # Errors
    /// [`ConfigError::LessRecorded`] when a file asks for more.
    pub fn recording(&self, asked: Option<Recording>) -> Result<Recording, ConfigError> {
        match (asked, &self.audit.said_in) {
            (Some(asked), Some(place)) if asked < self.audit() => Err(ConfigError::LessRecorded {
                asked,
                fixed: self.audit(),
                said_in: place.clone(),
            }),
            (asked, _) => Ok(asked.unwrap_or(self.audit())),
        }
    }
}
