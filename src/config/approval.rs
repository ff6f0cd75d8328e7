//! What is deployed of approvals: whether anybody is asked, who, for how long, and what is never asked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_backend::SandboxMode;
use serde::{Deserialize, Serialize};

use super::said::Standing;
use crate::paths::settled;
use crate::tables::Place;

/// Whether anybody is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApprovalPolicy {
    /// Yes.
    #[default]
    Ask,
    /// No: every request is rejected.
    Never,
}

/// Who can answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Answerer {
    /// Whoever sits at the terminal.
    Tty,
    /// Whoever answers from another terminal.
    Queue,
    /// A program.
    Hook,
}

impl Answerer {
    /// The word for it in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tty => "tty",
            Self::Queue => "queue",
            Self::Hook => "hook",
        }
    }
}

/// How much looser an approved run may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Looseness {
    /// By writable roots, in its own mode.
    ExtraRoots,
    /// By these, and by another confining mode.
    #[default]
    Mode,
    /// Up to no confinement at all.
    FullAccess,
}

/// What a rule rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// A root at this path, beneath it or above it.
    Write(PathBuf),
    /// This mode, and looser ones.
    Mode(SandboxMode),
}

/// A rule that rejects requests before anybody is asked. There are none that allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Its name, for whoever is told of it.
    pub name: String,
    /// What it rejects.
    pub what: Rejected,
    /// Why, for whoever is told of it.
    pub reason: String,
    /// Where it stands.
    pub said_in: Place,
}

impl Reject {
    /// Whether a request for a writable root is rejected: the canonical path of one. Links on the way to what the
    /// rule names are followed, as they were on the way to the root.
    #[must_use]
    pub fn rejects_write(&self, root: &Path) -> bool {
        let Rejected::Write(named) = &self.what else {
            return false;
        };
        let meets = |path: &Path| root.starts_with(path) || path.starts_with(root);
        meets(named) || meets(&settled(named))
    }

    /// Whether a request for a mode is rejected.
    #[must_use]
    pub fn rejects_mode(&self, mode: SandboxMode) -> bool {
        matches!(self.what, Rejected::Mode(from) if mode >= from)
    }
}

/// What holds for approvals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub(super) policy: Standing<ApprovalPolicy>,
    pub(super) answerers: Standing<Vec<Answerer>>,
    pub(super) hook: Standing<Vec<String>>,
    pub(super) notify: Standing<Vec<String>>,
    pub(super) hook_timeout: Standing<Duration>,
    pub(super) request_ttl: Standing<Duration>,
    pub(super) grant_ttl: Standing<Duration>,
    pub(super) max_looseness: Standing<Looseness>,
    pub(super) reject: Vec<Reject>,
}

impl Default for Approval {
    fn default() -> Self {
        Self {
            policy: Standing::default_of(ApprovalPolicy::Ask),
            answerers: Standing::default_of(vec![Answerer::Tty, Answerer::Queue]),
            hook: Standing::default_of(Vec::new()),
            notify: Standing::default_of(Vec::new()),
            hook_timeout: Standing::default_of(Duration::from_mins(1)),
            request_ttl: Standing::default_of(Duration::from_mins(15)),
            grant_ttl: Standing::default_of(Duration::from_mins(2)),
            max_looseness: Standing::default_of(Looseness::Mode),
            reject: Vec::new(),
        }
    }
}

impl Approval {
    /// Whether anybody is asked.
    #[must_use]
    pub const fn policy(&self) -> ApprovalPolicy {
        self.policy.value
    }

    /// Who may answer, in the order in which they are asked.
    #[must_use]
    pub fn answerers(&self) -> &[Answerer] {
        &self.answerers.value
    }

    /// The program that answers, by its absolute path, and its arguments.
    #[must_use]
    pub fn hook(&self) -> Option<&[String]> {
        Some(self.hook.value.as_slice()).filter(|words| !words.is_empty())
    }

    /// The program that is told of a request in the queue, and its arguments.
    #[must_use]
    pub fn notify(&self) -> Option<&[String]> {
        Some(self.notify.value.as_slice()).filter(|words| !words.is_empty())
    }

    /// How long the hook may take.
    #[must_use]
    pub const fn hook_timeout(&self) -> Duration {
        self.hook_timeout.value
    }

    /// How long a request can be answered.
    #[must_use]
    pub const fn request_ttl(&self) -> Duration {
        self.request_ttl.value
    }

    /// How long after the answer its run can begin.
    #[must_use]
    pub const fn grant_ttl(&self) -> Duration {
        self.grant_ttl.value
    }

    /// How much looser an approved run may be.
    #[must_use]
    pub const fn max_looseness(&self) -> Looseness {
        self.max_looseness.value
    }

    /// The rules that reject requests before anybody is asked.
    #[must_use]
    pub fn reject(&self) -> &[Reject] {
        &self.reject
    }
}
