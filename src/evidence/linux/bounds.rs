//! Where a run may change files, and what is made of a call that would change others.

use std::path::{Path, PathBuf};

use nix::errno::Errno;
use ringfence_backend::LaunchPlan;

use super::permission::{host_is_read_only, is_root};
use super::place::Where;
use crate::facts::Operation;

/// Where a run may change files, and how it is told where it may not.
#[derive(Debug)]
pub(super) struct Bounds {
    writable: Vec<PathBuf>,
    protected: Vec<PathBuf>,
    /// Names that cannot change, because something is mounted on them.
    held: Vec<PathBuf>,
    /// Devices of the caller's that are shown to the run.
    devices: Vec<PathBuf>,
    refusal: Errno,
    /// The library that another is shown in place of.
    replaced: Option<PathBuf>,
    /// Whether changes of metadata are made here rather than by the caller.
    emulates: bool,
}

/// What the policy makes of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing: the kernel decides, as it does for everybody.
    Pass,
    /// The change was made for the caller, or failed like this.
    Made(Result<(), Errno>),
    /// It is refused.
    Refuse(Refusal),
    /// The caller's memory or descriptors cannot be seen.
    Unseen,
}

/// A refused call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) op: Operation,
    pub(super) path: PathBuf,
    pub(super) errno: Errno,
}

/// The way out of a judgement as soon as it is clear that the policy has no say.
pub(super) type Step<T> = Result<T, Verdict>;

impl Bounds {
    pub(super) fn new(plan: &LaunchPlan) -> Self {
        let refusal = if plan.has_mounts() { Errno::EROFS } else { Errno::EACCES };
        Self {
            writable: plan.writable().map(Path::to_owned).collect(),
            protected: plan.protected().map(Path::to_owned).collect(),
            held: plan.held().map(Path::to_owned).collect(),
            devices: plan.devices().map(Path::to_owned).collect(),
            refusal,
            replaced: plan.replaced().map(Path::to_owned),
            emulates: plan.emulates_metadata(),
        }
    }

    /// Whether changes of metadata are made here.
    pub(super) const fn emulates(&self) -> bool {
        self.emulates
    }

    /// Whether a device is the caller's own, shown to the run.
    pub(super) fn shows(&self, device: &Path) -> bool {
        self.devices.iter().any(|shown| shown == device)
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        let beneath = |roots: &[PathBuf]| roots.iter().any(|root| path.starts_with(root));
        beneath(&self.writable) && !beneath(&self.protected)
    }

    /// The refusal of a change of a name that is held in its place.
    pub(super) fn hold(&self, op: Operation, place: &Where) -> Option<Verdict> {
        match place {
            Where::At(path) if self.held.contains(path) => Some(Verdict::Refuse(Refusal {
                op,
                path: path.clone(),
                errno: Errno::EBUSY,
            })),
            _ => None,
        }
    }

    /// Whether what stands there may change. What stands nowhere is nobody's but the run's.
    pub(super) fn holds(&self, place: &Where) -> bool {
        match place {
            Where::At(path) => self.contains(path),
            Where::Nowhere => true,
            Where::Unknown => false,
        }
    }

    /// The refusal of an operation, unless the place may change, or it is the host's own read-only
    /// file system's or its owner's affair.
    pub(super) fn refuse(&self, op: Operation, place: Where) -> Verdict {
        match place {
            Where::At(path) if self.contains(&path) || host_is_read_only(&path) => Verdict::Pass,
            // What is shown there belongs to this user; what it stands for may not.
            Where::At(path) if self.replaced.as_ref() == Some(&path) && !is_root() => Verdict::Pass,
            Where::At(path) => Verdict::Refuse(Refusal {
                op,
                path,
                errno: self.refusal,
            }),
            Where::Nowhere => Verdict::Pass,
            Where::Unknown => Verdict::Unseen,
        }
    }
}
