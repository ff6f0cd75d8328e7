//! The question a backend answers, and what it prepares.

#[cfg(target_os = "linux")]
use std::ffi::CString;
use std::fmt;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{OwnedFd, RawFd};
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
use crate::status::Failure;
use crate::{CommandSpec, Coverage, LaunchPlan, SandboxExecutionPolicy};

/// The name of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendId {
    /// Landlock with the mount and seccomp layers that complete it.
    Landlock,
    /// bubblewrap.
    Bwrap,
    /// macOS's `sandbox-exec`.
    Seatbelt,
    /// No confinement, for `danger-full-access` alone.
    None,
}

impl BackendId {
    /// Every backend.
    pub const ALL: [Self; 4] = [Self::Landlock, Self::Bwrap, Self::Seatbelt, Self::None];

    /// The backend's name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Bwrap => "bwrap",
            Self::Seatbelt => "seatbelt",
            Self::None => "none",
        }
    }
}

impl fmt::Display for BackendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no backend's.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a backend; the backends are landlock, bwrap, seatbelt and none")]
pub struct UnknownBackend(pub String);

impl FromStr for BackendId {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<Self, UnknownBackend> {
        Self::ALL
            .into_iter()
            .find(|id| id.name() == text)
            .ok_or_else(|| UnknownBackend(text.to_owned()))
    }
}

/// A layer this host does not give, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The layer's name, as `doctor` shows it.
    pub layer: String,
    /// Why, in a sentence.
    pub reason: String,
}

/// What a host was seen to give a backend: functional facts, each tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own about the host")]
pub struct HostSupport {
    /// The layers that were proved together, in the backend's own word; what [`Backend::recall`] takes.
    pub layers: String,
    /// The program that makes a part of the boundary.
    pub program: Option<PathBuf>,
    /// The Landlock ABI the kernel answers; 0 when Landlock is not there.
    pub landlock_abi: u8,
    /// Whether a read-only mount layer can be built.
    pub mounts: bool,
    /// Whether that takes a user namespace.
    pub user_namespace: bool,
    /// Whether a run can have a PID namespace, and a /proc that shows it.
    pub pid_namespace: bool,
    /// Whether the runner has no capability, so that it can change metadata for a confined process
    /// with exactly that process's rights.
    pub unprivileged: bool,
    /// Whether what the host mounts later stays out of a run, and the device nodes in a /dev of its own keep
    /// their modes.
    pub sealed: bool,
    /// Whether the host has `/dev/shm`.
    pub shared_memory: bool,
    /// What is not there, and why.
    pub missing: Vec<Missing>,
    /// What a `workspace-write` run on captured streams has governed.
    pub coverage: Coverage,
}

/// A backend's answer: can this host do it, and how completely?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It can, with this support.
    Usable(HostSupport),
    /// It cannot.
    Unusable {
        /// Why, in a sentence.
        reason: String,
    },
}

/// A policy that this backend cannot carry out.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    /// The backend serves other modes only.
    #[error("the backend `{backend}` does not confine, and the mode {mode} must be confined")]
    ModeNotServed {
        /// The backend.
        backend: BackendId,
        /// The mode.
        mode: crate::SandboxMode,
    },
    /// The program that is to make the boundary lies where a run may have written it.
    #[error("{} lies where runs can write, so it is not started; install it outside of the workspace and the temp area", program.display())]
    ProgramInReach {
        /// The program.
        program: PathBuf,
    },
    /// The mode confines nothing, so this backend has nothing to do.
    #[error("the mode {mode} confines nothing, and the backend `{backend}` only confines")]
    NothingToConfine {
        /// The backend.
        backend: BackendId,
        /// The mode.
        mode: crate::SandboxMode,
    },
    /// The run asks for denials that are seen in the calls themselves, and nobody can watch those here.
    #[error("the backend `{backend}` cannot watch calls, and the run asks for nothing less; ask for evidence `auto`")]
    CannotWatch {
        /// The backend.
        backend: BackendId,
    },
    /// A path that the backend's rules cannot name. No rule is ever left out instead.
    #[error(
        "the backend `{backend}` cannot name the {field} {path:?}: {reason}; rename it, or take it out of the policy"
    )]
    Unnameable {
        /// The backend.
        backend: BackendId,
        /// What the path is in the policy, in words.
        field: &'static str,
        /// The path.
        path: PathBuf,
        /// Why, in words.
        reason: &'static str,
    },
}

/// What a plan named could not be opened or built.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct PrepareError {
    /// The step.
    pub what: String,
    /// The operating system's reason.
    #[source]
    pub source: io::Error,
}

/// One way of confining a run.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Its name.
    fn id(&self) -> BackendId;

    /// The only question put to the host. Functional: a confined child tries to break out.
    fn probe(&self) -> Probe;

    /// Whether the calls of a confined process can be watched from here, by trying it.
    ///
    /// # Errors
    /// Why not, in a sentence.
    fn watch(&self) -> Result<(), String> {
        Err("this backend cannot watch calls".to_owned())
    }

    /// What this host gives when `layers` was proved before on the same boot, kernel and program.
    ///
    /// Everything that can weaken a boundary is asked again; a word that is not true makes the
    /// launch fail, never the boundary weaker. `None` when the word is unknown.
    fn recall(&self, layers: &str) -> Option<HostSupport> {
        let _ = layers;
        None
    }

    /// Pure: what to do for this policy and command on a host with this support.
    ///
    /// # Errors
    /// [`PlanError`] when the backend cannot carry out the policy at all.
    fn plan(
        &self,
        host: &HostSupport,
        policy: &SandboxExecutionPolicy,
        command: &CommandSpec,
    ) -> Result<LaunchPlan, PlanError>;

    /// How this backend writes its part of a plan down in the words of what carries it out, a line each;
    /// nothing where the steps themselves say it all.
    fn rendered(&self, plan: &LaunchPlan) -> Vec<String> {
        let _ = plan;
        Vec::new()
    }

    /// Opens and builds what the plan names, in the runner, before anything is started.
    ///
    /// # Errors
    /// [`PrepareError`] when something named is not there; nothing is left out in silence.
    fn prepare(&self, plan: &LaunchPlan) -> Result<Prepared, PrepareError>;
}

/// A prepared way into a boundary.
#[derive(Debug)]
pub enum Prepared {
    /// The run makes its boundary by itself.
    Direct(Box<dyn Boundary>),
    /// Another program makes a part of it, and starts the launcher inside.
    #[cfg(target_os = "linux")]
    Through(Through),
}

/// A program that makes a part of the boundary and then executes what it is told to.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct Through {
    /// The program's path.
    pub program: CString,
    /// Its words, without the descriptors and the launcher that come last.
    pub arguments: Vec<CString>,
    /// How it is told of a file with more words, each ended by a NUL byte; the file's descriptor is the next word.
    pub more: (CString, Vec<u8>),
    /// What the launcher needs to complete the boundary from within, in the backend's own words.
    pub boundary: Vec<u8>,
    /// Descriptors that those words speak of.
    pub kept: Vec<OwnedFd>,
}

/// A prepared boundary, which the run enters by itself.
///
/// Both steps run in processes that share the runner's memory: only raw calls on prepared data, no
/// allocation, no locks, no panic.
#[cfg(target_os = "linux")]
pub trait Boundary: fmt::Debug + Send + Sync {
    /// Namespaces for clone(2), as `CLONE_*` flags.
    fn clone_flags(&self) -> i32;

    /// First step, of the command's parent: identity and mounts, while it still may mount.
    ///
    /// # Errors
    /// The stage and errno at which it stopped; the command then never runs.
    fn isolate(&self) -> Result<(), Failure>;

    /// Last step, of the command itself: capabilities, Landlock, seccomp. Only the limits and exec follow.
    ///
    /// Returns the number of the filter's listener when the boundary is observed.
    ///
    /// # Errors
    /// The stage and errno at which it stopped; the command then never runs.
    fn confine(&self) -> Result<Option<RawFd>, Failure>;
}

/// A prepared boundary: what is executed in place of the command, so that it confines itself.
#[cfg(not(target_os = "linux"))]
pub trait Boundary: fmt::Debug + Send + Sync {
    /// The profile that holds for the command; nothing when nothing is confined.
    fn profile(&self) -> Option<&str>;
}
