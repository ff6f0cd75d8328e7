//! What one file says, before it is set against the others.

use std::fmt;
use std::time::Duration;

use ringfence_backend::{Require, SandboxMode};

use super::Recording;
use super::approval::{Answerer, ApprovalPolicy, Looseness, Reject};
use super::said::Said;

/// Whose file something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The machine's administrator's.
    System,
    /// The user's.
    User,
    /// The workspace's, which anybody may have written who worked in it.
    Workspace,
}

impl Origin {
    /// All of them, in the order in which they count.
    pub const ALL: [Self; 3] = [Self::System, Self::User, Self::Workspace];
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system",
            Self::User => "user",
            Self::Workspace => "workspace",
        })
    }
}

/// What one file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) origin: Origin,
    pub(super) mode: Option<Said<SandboxMode>>,
    pub(super) ceiling: Option<Said<SandboxMode>>,
    pub(super) require: Option<Said<Require>>,
    pub(super) audit: Option<Said<Recording>>,
    pub(super) policy: Option<Said<ApprovalPolicy>>,
    pub(super) answerers: Option<Said<Vec<Answerer>>>,
    pub(super) hook: Option<Said<Vec<String>>>,
    pub(super) notify: Option<Said<Vec<String>>>,
    pub(super) hook_timeout: Option<Said<Duration>>,
    pub(super) request_ttl: Option<Said<Duration>>,
    pub(super) grant_ttl: Option<Said<Duration>>,
    pub(super) max_looseness: Option<Said<Looseness>>,
    pub(super) reject: Vec<Reject>,
}

impl Layer {
    /// A file that says nothing.
    pub(super) const fn empty(origin: Origin) -> Self {
        Self {
            origin,
            mode: None,
            ceiling: None,
            require: None,
            audit: None,
            policy: None,
            answerers: None,
            hook: None,
            notify: None,
            hook_timeout: None,
            request_ttl: None,
            grant_ttl: None,
            max_looseness: None,
            reject: Vec::new(),
        }
    }
}
