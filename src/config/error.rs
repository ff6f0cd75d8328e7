//! Why what is deployed is refused, or refuses.

use std::fmt;
use std::io;
use std::path::PathBuf;

use ringfence_backend::SandboxMode;

use super::Recording;
use crate::tables::{Place, TableError};

/// A key of a deployment file, as it is written from the top of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A key at the top.
    pub(super) fn top(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// A key of the table of approvals.
    pub(super) fn approval(name: &str) -> Self {
        Self(format!("approval.{name}"))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A deployment file that cannot be read or says what it must not, or a run that it does not allow.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file says something it cannot mean.
    #[error(transparent)]
    Content(#[from] TableError),
    /// The file is there and cannot be read.
    #[error("the deployment file {} cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// The file may have been written by somebody whose it is not.
    #[error("the deployment file {} cannot be believed: {reason}", file.display())]
    Doubtful {
        /// The file.
        file: PathBuf,
        /// Why not, in a sentence.
        reason: &'static str,
    },
    /// A value that is looser than what stands above it.
    #[error("deployment file {place}: {key} = {value} would loosen {fixed}, {}", fixed_by(said_in.as_ref()))]
    Looser {
        /// Where.
        place: Place,
        /// The key.
        key: Key,
        /// Its value.
        value: String,
        /// The value that stands.
        fixed: String,
        /// Which file says so; absent for a default.
        said_in: Option<Place>,
    },
    /// A key that the file of a workspace cannot have.
    #[error("deployment file {place}: {key} is not for a workspace to say")]
    NotOfWorkspaces {
        /// Where.
        place: Place,
        /// The key.
        key: Key,
    },
    /// The hook is to answer, and there is none.
    #[error("deployment file {place}: the hook is to answer, and there is no approval.hook")]
    NoHook {
        /// Where.
        place: Place,
    },
    /// A `~`, and no home.
    #[error("deployment file {place}: `~` means nothing, because no home is known")]
    NoHome {
        /// Where.
        place: Place,
    },
    /// A mode that is looser than the ceiling.
    #[error("{asked_by} asks for {mode}, which is looser than {ceiling}, {}", fixed_by(said_in.as_ref()))]
    AboveCeiling {
        /// Who asks, in words.
        asked_by: String,
        /// The mode.
        mode: SandboxMode,
        /// The loosest that is allowed.
        ceiling: SandboxMode,
        /// Which file says so.
        said_in: Option<Place>,
    },
    /// A run that asks to be recorded less than it has to be.
    #[error("--audit {} is less than {}, {}", asked.name(), fixed.name(), fixed_by(Some(said_in)))]
    LessRecorded {
        /// What was asked for.
        asked: Recording,
        /// What has to be.
        fixed: Recording,
        /// Which file says so.
        said_in: Place,
    },
}

fn fixed_by(place: Option<&Place>) -> String {
    place.map_or_else(
        || "which holds where no file says otherwise".to_owned(),
        |place| format!("which {place} sets"),
    )
}

impl ConfigError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Content(error) => return error.hint(),
            Self::Unreadable { .. } => "make it a text file that you can read, or have it removed by whoever owns it",
            Self::Doubtful { .. } => {
                "look at what it says, then give it to its owner alone: `chmod go-w`, and for the system's `chown root`"
            }
            Self::Looser { .. } => {
                "leave the key out, or give it a value that is as strict; only the file above can be looser"
            }
            Self::NotOfWorkspaces { .. } => {
                "a workspace may tighten with mode, ceiling, require, audit, approval.policy = \"never\", \
                 fewer approval.answerers, and [[approval.reject]]"
            }
            Self::NoHook { .. } => {
                "add `hook = [\"/path/to/program\"]` to [approval], or leave \"hook\" out of the answerers"
            }
            Self::NoHome { .. } => "set HOME, or write the path from the root on",
            Self::AboveCeiling { ceiling, .. } => {
                return format!("ask for {ceiling} or a stricter mode; whoever owns that file can raise the ceiling");
            }
            Self::LessRecorded { fixed, .. } => return format!("leave --audit out, or ask for `{}`", fixed.name()),
        }
        .to_owned()
    }
}
