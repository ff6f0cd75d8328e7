//! What has to be done to confine one run, as data.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::{BackendId, Door, Enforcement, FileId, PinnedPath};

/// What one of the command's standard streams is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StdioKind {
    /// A pipe or socket without a name: no way to anything else.
    Stream,
    /// A character device (a terminal, `/dev/null`) that the child opens again by its name, inside the boundary.
    Device(PathBuf),
    /// A file that the caller opened and hands on: its content is meant, its metadata is open.
    Handed,
}

/// Whether the calls that change files are made to wait for the runner, so that it knows each denial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Observe {
    /// They are not.
    #[default]
    No,
    /// They are, unless somebody else already watches this process: only one can.
    IfFree,
    /// They are, or the command does not run.
    Required,
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
    /// Whether denials are to be observed.
    pub observe: Observe,
    /// Whether the kernel is to log what is refused, where it can and the machine has auditing on.
    pub log: bool,
    /// What makes observing cheap, when there is such a thing for this run.
    pub accelerator: Option<Accelerator>,
}

/// A copy of the host's C library whose calls carry a cookie, so that only the refused ones wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accelerator {
    /// The copy.
    pub copy: PinnedPath,
    /// The library in whose place it is shown.
    pub library: PathBuf,
    /// What its calls carry in the sixth argument.
    pub cookie: u64,
}

/// One grant of a Landlock ruleset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LandlockRule {
    /// Every file effect at and beneath a path.
    Everything(PinnedPath),
    /// Writing to a device node that changes no file of the host.
    Device(PathBuf),
    /// Writing to and controlling terminals.
    Terminal(PathBuf),
}

/// One step of a plan, in the order in which the child takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanStep {
    /// bubblewrap makes the namespaces and mounts that follow.
    Bubblewrap {
        /// Its path.
        program: PathBuf,
        /// Whether the launcher seals what it makes: the host's later mounts stay out, and device nodes, /dev and
        /// /proc become read-only.
        sealed: bool,
    },
    /// A user namespace that maps the caller's user and group to themselves, and nobody else.
    UserNamespace,
    /// A PID namespace, and a /proc that shows it: no process of the run outlives it, or sees others.
    PidNamespace,
    /// A mount namespace without propagation, in which everything becomes read-only.
    ReadOnlyMounts,
    /// A path that stays writable there.
    Writable(PinnedPath),
    /// A directory inside a writable root that cannot be exchanged for another.
    Held(PinnedPath),
    /// A path inside a writable root that becomes read-only.
    Protected(PinnedPath),
    /// A directory shown at a second place.
    Shown {
        /// What is shown.
        from: PinnedPath,
        /// Where.
        at: PathBuf,
    },
    /// A device node shown in a /dev of the run's own.
    ShownDevice {
        /// The host's node.
        device: PathBuf,
        /// Where.
        at: PathBuf,
    },
    /// Every capability dropped from every set, and no new privileges.
    DropCapabilities,
    /// A Landlock domain over the write accesses of this ABI.
    Landlock {
        /// The ABI whose accesses are handled.
        abi: u8,
        /// The grants.
        rules: Vec<LandlockRule>,
        /// Whether sockets of the `AF_UNIX` family outside are closed, where this ABI knows them (abstract ones
        /// from 6, those with a path from 9). The filter closes them in any case.
        sockets: bool,
        /// Whether other runs can have the same grants: no directory of the run's own is among them.
        lasting: bool,
        /// Whether refusals are logged beyond exec (ABI 7).
        log: bool,
    },
    /// A file shown in place of another, which stays as it is.
    Replaced {
        /// What is shown, read-only.
        by: PinnedPath,
        /// In whose place.
        at: PathBuf,
    },
    /// The short system call filter that every confined run has.
    Seccomp {
        /// Whether it makes the calls that change files wait for the runner.
        observe: Observe,
        /// What a call carries in its sixth argument that need not wait.
        cookie: Option<u64>,
        /// Whether changes of metadata are made by the runner, because nothing else governs them.
        metadata: bool,
        /// The doors whose sockets nobody can make.
        closed: BTreeSet<Door>,
    },
    /// `EROFS` for every call that changes metadata; where the runner watches those calls and makes
    /// the changes itself, only if it turns out that it cannot watch.
    SeccompMetadata,
    /// `EROFS` for the ioctl(2) requests that change inodes.
    SeccompInodeRequests,
    /// The text of a profile, in the language of sandbox-exec(1), that holds for the command and for
    /// everybody it starts.
    SeatbeltProfile(String),
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
    /// The paths beneath which the run may change everything.
    pub fn writable(&self) -> impl Iterator<Item = &Path> {
        self.steps.iter().flat_map(|step| match step {
            PlanStep::Shown { at, .. } => vec![at.as_path()],
            PlanStep::Landlock { rules, .. } => rules
                .iter()
                .filter_map(|rule| match rule {
                    LandlockRule::Everything(root) => Some(root.path()),
                    LandlockRule::Device(_) | LandlockRule::Terminal(_) => None,
                })
                .collect(),
            _ => Vec::new(),
        })
    }

    /// What the child sees at each path beneath which everything may change.
    #[must_use]
    pub fn roots(&self) -> Vec<(PathBuf, FileId)> {
        let of = |step: &PlanStep| match step {
            PlanStep::Writable(root) | PlanStep::Held(root) => Some((root.path().to_owned(), root.id())),
            PlanStep::Shown { from, at } => Some((at.clone(), from.id())),
            _ => None,
        };
        self.steps.iter().filter_map(of).collect()
    }

    /// The paths inside the writable ones that stay as they are.
    pub fn protected(&self) -> impl Iterator<Item = &Path> {
        self.steps.iter().filter_map(|step| match step {
            PlanStep::Protected(path) => Some(path.path()),
            _ => None,
        })
    }

    /// The paths whose names cannot change: the protected ones and the directories above them.
    pub fn held(&self) -> impl Iterator<Item = &Path> {
        self.steps.iter().filter_map(|step| match step {
            PlanStep::Protected(path) | PlanStep::Held(path) => Some(path.path()),
            _ => None,
        })
    }

    /// Where the command finds one of its streams' devices, when that is elsewhere than on the host.
    #[must_use]
    pub fn shown_device(&self, device: &Path) -> Option<&Path> {
        self.steps.iter().find_map(|step| match step {
            PlanStep::ShownDevice { device: shown, at } if shown == device => Some(at.as_path()),
            _ => None,
        })
    }

    /// The devices that are shown, by their names inside.
    pub fn devices(&self) -> impl Iterator<Item = &Path> {
        self.steps.iter().filter_map(|step| match step {
            PlanStep::ShownDevice { at, .. } => Some(at.as_path()),
            _ => None,
        })
    }

    /// The file in whose place another is shown.
    #[must_use]
    pub fn replaced(&self) -> Option<&Path> {
        self.steps.iter().find_map(|step| match step {
            PlanStep::Replaced { at, .. } => Some(at.as_path()),
            _ => None,
        })
    }

    /// Whether only refused calls wait, those of programs that use the accelerator.
    #[must_use]
    pub fn is_accelerated(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step, PlanStep::Seccomp { cookie: Some(_), .. }))
    }

    /// Whether the kernel is asked to log what it refuses.
    #[must_use]
    pub fn is_logged(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step, PlanStep::Landlock { log: true, .. }))
    }

    /// Whether metadata is governed only as long as the runner watches.
    #[must_use]
    pub fn emulates_metadata(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step, PlanStep::Seccomp { metadata: true, .. }))
    }

    /// Whether everything else is on read-only mounts, so that a refusal reads `EROFS`.
    #[must_use]
    pub fn has_mounts(&self) -> bool {
        self.steps.contains(&PlanStep::ReadOnlyMounts)
    }
}
