//! What has to be done to confine one run, as data.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::{BackendId, Door, Enforcement, PinnedPath};

/// What one of the command's standard streams is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StdioKind {
    /// A pipe or socket, or a file the caller opened for writing: meant to be written, no way to anything else.
    Stream,
    /// A character device (a terminal, `/dev/null`) that the child opens again by its name, inside the boundary.
    Device(PathBuf),
    /// A file or directory that the caller opened for reading and hands on.
    Handed,
}

/// What a backend has to know of the command itself.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    /// The program and its arguments, byte for byte.
    pub argv: Vec<OsString>,
    /// The complete environment of the command.
    pub env: Vec<(OsString, OsString)>,
    /// The directory the command starts in.
    pub workdir: PinnedPath,
    /// The run's private temp directory, when the policy gives one.
    pub scratch: Option<PinnedPath>,
    /// Standard input, output and error.
    pub stdio: [StdioKind; 3],
}

/// One grant of a Landlock ruleset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LandlockRule {
    /// Every file effect at and beneath a path.
    Everything(PinnedPath),
    /// Writing to a device node that changes no file of the host.
    Device(&'static str),
    /// Writing to and controlling terminals.
    Terminal(&'static str),
}

/// One step of a plan, in the order in which the child takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanStep {
    /// A user namespace that maps the caller's user and group to themselves, and nobody else.
    UserNamespace,
    /// A mount namespace without propagation, in which everything becomes read-only.
    ReadOnlyMounts,
    /// A path that stays writable there.
    Writable(PinnedPath),
    /// A directory shown at a second place.
    Shown {
        /// What is shown.
        from: PinnedPath,
        /// Where.
        at: PathBuf,
    },
    /// Every capability dropped from every set, and no new privileges.
    DropCapabilities,
    /// A Landlock domain over every write access of this ABI.
    Landlock {
        /// The ABI whose accesses are handled.
        abi: u8,
        /// The grants.
        rules: Vec<LandlockRule>,
    },
    /// The short system call filter that every confined run has.
    Seccomp,
    /// `EROFS` for every call that changes metadata.
    SeccompMetadata,
}

/// What a backend will do for one policy and one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchPlan {
    /// The backend.
    pub backend: BackendId,
    /// How completely it will enforce the mode; `None` when nothing is confined.
    pub enforcement: Option<Enforcement>,
    /// Doors that stay open and that the mode does not speak of.
    pub not_confined: Vec<Door>,
    /// The steps.
    pub steps: Vec<PlanStep>,
    /// How the refusals of this plan read in the words of the C library, for want of better evidence.
    pub dialect: &'static [&'static str],
}

impl LaunchPlan {
    /// The writable roots of the plan, when it has a mount layer.
    pub fn writable(&self) -> impl Iterator<Item = &Path> {
        self.steps.iter().filter_map(|step| match step {
            PlanStep::Writable(root) => Some(root.path()),
            _ => None,
        })
    }
}
