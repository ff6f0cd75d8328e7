//! The resolver: which policy a run has. An approved grant stands above the session, and the
//! session above the deployment.
//!
//! [`resolve`] is pure: it reads no environment and no disk and prints nothing. The paths it is
//! given were settled beforehand, by [`open_root`], [`open_writable`] and [`host_temp`].

mod broad;
mod difference;
mod error;
mod git;
mod open;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;

use ringfence_backend::{
    Door, PinnedPath, PolicyParts, Protected, Require, SandboxExecutionPolicy, SandboxMode, Temp, WorkspaceRoot,
};

pub use crate::paths::settled;
pub(crate) use broad::refuse as refuse_broad;
pub use difference::{Difference, NotLooser};
pub use error::{Breadth, Field, PolicyError};
pub use git::{GitWorktree, git_worktree};
pub use open::{host_temp, open_protected, open_root, open_writable};

/// What holds for every run: options of the program, a profile, or a library user's own choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// The mode of runs whose session has none of its own.
    pub mode: SandboxMode,
    /// The workspace root of runs without a session; the caller's directory when absent.
    pub root: Option<WorkspaceRoot>,
    /// Roots that may be written besides the workspace. Only `workspace-write` has any; beside
    /// another mode they are refused.
    pub writable: Vec<PinnedPath>,
    /// What stays as it is inside the writable roots.
    pub protected: Vec<Protected>,
    /// The temp area; when absent, the one that belongs to the mode.
    pub temp: Option<Temp>,
    /// Doors that are closed beside what the mode confines: [`Door::Network`], [`Door::UnixSockets`].
    pub closed: BTreeSet<Door>,
    /// How complete the enforcement must be.
    pub require: Require,
    /// The loosest mode that a run may have, an approved one included.
    pub ceiling: SandboxMode,
}

impl Default for Deployment {
    /// Read-only and nothing else: what holds when nothing is configured.
    fn default() -> Self {
        Self {
            mode: SandboxMode::ReadOnly,
            root: None,
            writable: Vec::new(),
            protected: Vec::new(),
            temp: None,
            closed: BTreeSet::new(),
            require: Require::Partial,
            ceiling: SandboxMode::DangerFullAccess,
        }
    }
}

/// What a session keeps from one run to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPolicy {
    /// The session's id.
    pub id: String,
    /// The mode of its runs, once it was switched to one.
    pub mode: Option<SandboxMode>,
    /// The directory it was made in. It never changes.
    pub root: WorkspaceRoot,
}

/// What an approved grant changes: exactly one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovedChange {
    /// The mode, and with it what the mode itself means. A temp area that was chosen stays chosen
    /// between confining modes.
    Mode(SandboxMode),
    /// One writable root more, in `workspace-write` alone: beside the other modes a root would
    /// mean nothing, and the grant is refused.
    Write(PinnedPath),
}

/// The caller's circumstances that bear on a policy. All paths are absolute and canonical as far
/// as they exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// The directory the caller is in.
    pub caller_dir: WorkspaceRoot,
    /// The host's temp directories, as [`host_temp`] finds them.
    pub host_temp: Vec<PinnedPath>,
    /// The user's home, when it has one. It need not exist.
    pub home: Option<PathBuf>,
    /// The directory of Ringfence's own records. It need not exist.
    pub state_dir: Option<PathBuf>,
    /// Whether the user insists on a root as broad as the home.
    pub allow_broad_root: bool,
}

impl Surroundings {
    /// A caller in this directory, of whom nothing else is known.
    #[must_use]
    pub const fn of(caller_dir: WorkspaceRoot) -> Self {
        Self {
            caller_dir,
            host_temp: Vec::new(),
            home: None,
            state_dir: None,
            allow_broad_root: false,
        }
    }
}

/// Resolves the policy of one run.
///
/// The mode is the grant's, else the session's, else the deployment's. The root is the session's,
/// else the deployment's, else the caller's directory. A grant builds on a policy that stands by
/// itself: what is refused without the grant stays refused with it.
///
/// # Errors
/// [`PolicyError`] when the parts contradict one another or a writable root is too broad.
pub fn resolve(
    deployment: &Deployment,
    session: Option<&SessionPolicy>,
    approved: Option<&ApprovedChange>,
    surroundings: &Surroundings,
) -> Result<SandboxExecutionPolicy, PolicyError> {
    let layers = Layers {
        deployment,
        session,
        surroundings,
    };
    let mode = session.and_then(|session| session.mode).unwrap_or(deployment.mode);
    if let Some(root) = deployment.writable.first() {
        roots_exist_in(mode, Field::WritableRoot, root)?;
    }
    let temp = temp_area(mode, deployment.temp)?;
    doors(mode, &deployment.closed)?;
    let standing = layers.seal(mode, temp, None)?;
    match approved {
        None => Ok(standing),
        Some(ApprovedChange::Mode(granted)) => {
            // Nothing is kept apart under full access, the temp area included: that is what was
            // granted, so a choice made for a confining mode does not contradict it.
            let chosen = deployment.temp.filter(|_| granted.confines());
            layers.seal(*granted, temp_area(*granted, chosen)?, None)
        }
        Some(ApprovedChange::Write(root)) => {
            roots_exist_in(mode, Field::ApprovedRoot, root)?;
            layers.seal(mode, temp, Some(root))
        }
    }
}

/// Refuses a root beside a mode that has none: a grant that cannot be given is never dropped in silence.
fn roots_exist_in(mode: SandboxMode, field: Field, root: &PinnedPath) -> Result<(), PolicyError> {
    if mode == SandboxMode::WorkspaceWrite {
        return Ok(());
    }
    Err(PolicyError::NoWritableRoots {
        field,
        path: root.path().to_owned(),
        mode,
    })
}

/// The temp area of a run: the one that was chosen, else the one that belongs to the mode.
fn temp_area(mode: SandboxMode, chosen: Option<Temp>) -> Result<Temp, PolicyError> {
    match (mode, chosen) {
        // Read-only changes nothing on the host; full access keeps nothing of the host away.
        (SandboxMode::ReadOnly, Some(temp @ Temp::Host))
        | (SandboxMode::DangerFullAccess, Some(temp @ (Temp::Private | Temp::None))) => {
            Err(PolicyError::TempInMode { temp, mode })
        }
        (_, Some(temp)) => Ok(temp),
        (SandboxMode::ReadOnly, None) => Ok(Temp::Private),
        (SandboxMode::WorkspaceWrite | SandboxMode::DangerFullAccess, None) => Ok(Temp::Host),
    }
}

/// Refuses doors that nobody can close, in this mode or in any.
fn doors(mode: SandboxMode, closed: &BTreeSet<Door>) -> Result<(), PolicyError> {
    const CLOSABLE: [Door; 2] = [Door::Network, Door::UnixSockets];
    let cannot = closed.iter().find(|door| !mode.confines() || !CLOSABLE.contains(door));
    cannot.map_or(Ok(()), |door| Err(PolicyError::Door { door: *door, mode }))
}

/// The layers a policy is made from, beneath the grant.
struct Layers<'a> {
    deployment: &'a Deployment,
    session: Option<&'a SessionPolicy>,
    surroundings: &'a Surroundings,
}

impl Layers<'_> {
    fn root(&self) -> &WorkspaceRoot {
        let configured = self
            .session
            .map(|session| &session.root)
            .or(self.deployment.root.as_ref());
        configured.unwrap_or(&self.surroundings.caller_dir)
    }

    fn seal(
        &self,
        mode: SandboxMode,
        temp: Temp,
        approved: Option<&PinnedPath>,
    ) -> Result<SandboxExecutionPolicy, PolicyError> {
        let ceiling = self.deployment.ceiling;
        if mode > ceiling {
            return Err(PolicyError::AboveCeiling { mode, ceiling });
        }
        let writable = match mode {
            SandboxMode::WorkspaceWrite => self.writable(temp, approved)?,
            SandboxMode::ReadOnly | SandboxMode::DangerFullAccess => Vec::new(),
        };
        let parts = PolicyParts {
            mode,
            workspace_root: self.root().clone(),
            writable,
            protected: self.deployment.protected.clone(),
            temp,
            closed: if mode.confines() {
                self.deployment.closed.clone()
            } else {
                BTreeSet::new()
            },
            require: self.deployment.require,
            session: self.session.map(|session| session.id.clone()),
        };
        Ok(SandboxExecutionPolicy::seal(parts)?)
    }

    /// Every root of a `workspace-write` run, each checked for its breadth.
    fn writable(&self, temp: Temp, approved: Option<&PinnedPath>) -> Result<Vec<PinnedPath>, PolicyError> {
        let area: &[PinnedPath] = if temp == Temp::Host {
            &self.surroundings.host_temp
        } else {
            &[]
        };
        let workspace = std::iter::once((Field::WorkspaceRoot, self.root().pinned()));
        let named = workspace
            .chain(self.deployment.writable.iter().map(|root| (Field::WritableRoot, root)))
            .chain(approved.map(|root| (Field::ApprovedRoot, root)))
            .chain(area.iter().map(|root| (Field::TempDirectory, root)));
        let mut roots = Vec::new();
        for (field, root) in named {
            broad::refuse(field, root.path(), self.surroundings)?;
            roots.push(root.clone());
        }
        Ok(roots)
    }
}
