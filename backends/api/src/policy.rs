//! The resolved policy: complete, immutable, and carried by every run.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Door, PinnedPath, SandboxMode, WorkspaceRoot};

/// Which temporary directories a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Temp {
    /// None at all.
    None,
    /// A 0700 directory of the run's own, removed afterwards.
    Private,
    /// The host's: `/tmp`, `/var/tmp`, `$TMPDIR` and `/dev/shm`; on macOS the user's own instead of the last.
    Host,
}

/// How complete the enforcement must be before a command may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Require {
    /// The host may leave file effects ungoverned, and the report names them.
    #[default]
    Partial,
    /// Every file effect is governed, or the command does not run.
    Full,
}

/// A path inside a writable root that stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Where it stands, canonical as far as it exists.
    pub path: PathBuf,
    /// What stands there; nothing when it does not exist yet, and then its making cannot be refused.
    pub target: Option<PinnedPath>,
    /// The directories above it, the topmost first. None of them can be exchanged for another.
    pub above: Vec<PinnedPath>,
    /// Whether it was named through a link, which can be exchanged.
    pub linked: bool,
}

/// The parts of a policy, before they are checked and sealed.
#[derive(Clone, Debug)]
pub struct PolicyParts {
    /// The mode in force.
    pub mode: SandboxMode,
    /// The root of the workspace, in every mode.
    pub workspace_root: WorkspaceRoot,
    /// Everything beneath these may change; the workspace root and the host's temp area included.
    pub writable: Vec<PinnedPath>,
    /// What stays as it is inside them.
    pub protected: Vec<Protected>,
    /// Which temporary directories the run has.
    pub temp: Temp,
    /// Doors that are closed beside what the mode confines: `network`, `unix-sockets`.
    pub closed: BTreeSet<Door>,
    /// How complete the enforcement must be.
    pub require: Require,
    /// The session the run belongs to.
    pub session: Option<String>,
}

/// Parts that contradict one another.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PolicyShape {
    /// Only `workspace-write` has writable roots.
    #[error("the mode {mode} has no writable roots, and {roots} were given")]
    RootsInMode {
        /// The mode.
        mode: SandboxMode,
        /// How many roots were given.
        roots: usize,
    },
    /// Nothing is confined in `danger-full-access`, doors included.
    #[error("the mode {0} confines nothing, so no door can be closed in it")]
    DoorsInMode(SandboxMode),
    /// `workspace-write` lets the workspace root be written.
    #[error("workspace-write without its workspace root among the writable roots")]
    RootMissing,
}

/// What one run may change: complete, immutable, made by the resolver.
///
/// Its fields are private; nothing on the way from the resolver to the kernel can alter them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxExecutionPolicy {
    mode: SandboxMode,
    workspace_root: WorkspaceRoot,
    writable: Vec<PinnedPath>,
    protected: Vec<Protected>,
    temp: Temp,
    closed: BTreeSet<Door>,
    require: Require,
    session: Option<String>,
}

impl SandboxExecutionPolicy {
    /// Seals the parts. Roots that lie beneath another root are folded into it.
    ///
    /// # Errors
    /// [`PolicyShape`] when the parts contradict one another.
    pub fn seal(parts: PolicyParts) -> Result<Self, PolicyShape> {
        let PolicyParts {
            mode,
            workspace_root,
            writable,
            protected,
            temp,
            closed,
            require,
            session,
        } = parts;
        if !mode.confines() && !closed.is_empty() {
            return Err(PolicyShape::DoorsInMode(mode));
        }
        if mode == SandboxMode::WorkspaceWrite {
            if !writable.iter().any(|root| workspace_root.pinned().is_within(root)) {
                return Err(PolicyShape::RootMissing);
            }
        } else if !writable.is_empty() {
            return Err(PolicyShape::RootsInMode {
                mode,
                roots: writable.len(),
            });
        }
        let mut top: Vec<PinnedPath> = Vec::new();
        for root in &writable {
            let covered = writable
                .iter()
                .any(|other| root.path() != other.path() && root.is_within(other));
            if !covered && !top.contains(root) {
                top.push(root.clone());
            }
        }
        Ok(Self {
            mode,
            workspace_root,
            protected: within(&top, protected),
            writable: top,
            temp,
            closed,
            require,
            session,
        })
    }

    /// The mode in force.
    #[must_use]
    pub const fn mode(&self) -> SandboxMode {
        self.mode
    }

    /// The root of the workspace.
    #[must_use]
    pub const fn workspace_root(&self) -> &WorkspaceRoot {
        &self.workspace_root
    }

    /// The topmost writable roots: everything beneath them may change, nothing else.
    #[must_use]
    pub fn writable(&self) -> &[PinnedPath] {
        &self.writable
    }

    /// Whether `/` itself is among the writable roots, so that nothing lies outside of them.
    #[must_use]
    pub fn opens_everything(&self) -> bool {
        self.writable
            .iter()
            .any(|root| root.path() == std::path::Path::new("/"))
    }

    /// What stays as it is inside the writable roots: nothing else is listed, and nothing beneath
    /// something that is listed.
    #[must_use]
    pub fn protected(&self) -> &[Protected] {
        &self.protected
    }

    /// Which temporary directories the run has.
    #[must_use]
    pub const fn temp(&self) -> Temp {
        self.temp
    }

    /// Doors that are closed beside what the mode confines.
    #[must_use]
    pub const fn closed(&self) -> &BTreeSet<Door> {
        &self.closed
    }

    /// How complete the enforcement must be.
    #[must_use]
    pub const fn require(&self) -> Require {
        self.require
    }

    /// The session the run belongs to.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

/// The protected paths that mean something: those inside a root, without those beneath others of them.
/// Of the directories above each, those inside the root.
fn within(roots: &[PinnedPath], protected: Vec<Protected>) -> Vec<Protected> {
    let mut kept: Vec<Protected> = Vec::new();
    let mut sorted = protected;
    sorted.sort_by(|one, other| one.path.cmp(&other.path));
    for mut path in sorted {
        let Some(root) = roots.iter().find(|root| path.path.starts_with(root.path())) else {
            continue;
        };
        if kept.iter().any(|above| path.path.starts_with(&above.path)) {
            continue;
        }
        path.above
            .retain(|above| above.is_within(root) && above.path() != root.path());
        kept.push(path);
    }
    kept
}
