//! Why a command could not run: a stable code, a sentence, a way out.

mod approval;
mod managed;
mod session;
pub mod trail;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use ringfence_backend::BackendId;
use serde::{Deserialize, Serialize};

use crate::config::ConfigError;
use crate::policy::PolicyError;

pub use approval::{Bound, Expiry, NotApproved, Rejecter};
pub use managed::{Fault, ManagedEnvError};
pub use session::SessionError;
pub use trail::AuditError;

/// The stable code of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// No backend can confine the run as the policy demands.
    SandboxUnavailable,
    /// The policy contradicts itself or names what is not there.
    PolicyInvalid,
    /// The working directory is missing, deleted, or cannot be entered.
    WorkdirUnusable,
    /// No such program.
    CommandNotFound,
    /// The program is there and cannot be executed.
    CommandNotExecutable,
    /// Arguments and environment exceed what the kernel takes.
    CommandTooLarge,
    /// An input that makes no sense.
    InputInvalid,
    /// What was asked for is not looser than what it is to loosen, in exactly what was named.
    NotStrictlyLooser,
    /// It takes an approval that nobody was asked for.
    ApprovalRequired,
    /// Whoever was asked said no, or the policy did.
    ApprovalRejected,
    /// Nobody answered in time, or the answer was too old.
    ApprovalExpired,
    /// The request was withdrawn.
    ApprovalCancelled,
    /// There was nobody to ask, or the answer was none.
    ApprovalUnavailable,
    /// The approval is for something else than what is there now.
    ApprovalChanged,
    /// The approval has been used.
    ApprovalUsed,
    /// The run has to be recorded, and cannot be.
    AuditUnwritable,
    /// A fault of Ringfence or of the host underneath.
    Internal,
}

/// One backend that was asked, and why it could not serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// The backend.
    pub backend: BackendId,
    /// Why, in a sentence.
    pub reason: String,
}

/// Why a command could not run. Whatever the variant but [`Lost`](Self::Lost), it has not been executed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No backend can confine the run as the policy demands.
    #[error("this host cannot confine the run{}", list(tried))]
    SandboxUnavailable {
        /// Every backend asked, with its reason.
        tried: Vec<Tried>,
    },
    /// The policy is refused.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// What is deployed does not allow it, or says something it cannot mean.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The session cannot be made, found or used.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The working directory cannot be used.
    #[error("the working directory {} cannot be used: {source}", path.display())]
    Workdir {
        /// The directory as it was given.
        path: PathBuf,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// No such program.
    #[error("the program {program:?} was not found")]
    CommandNotFound {
        /// The program as it was given.
        program: OsString,
    },
    /// The program cannot be executed.
    #[error("the program {program:?} cannot be executed: {source}")]
    CommandNotExecutable {
        /// The program as it was given.
        program: OsString,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// The command is larger than the kernel takes.
    #[error(
        "the command is too large for the kernel: {bytes} bytes of arguments and environment, {longest} in the longest string"
    )]
    CommandTooLarge {
        /// Arguments and environment together, in bytes.
        bytes: usize,
        /// The longest single string, in bytes.
        longest: usize,
    },
    /// An input that makes no sense.
    #[error("{field} {value:?} cannot be used: {reason}")]
    Input {
        /// Which input, in words or as the option is spelt.
        field: String,
        /// Its value.
        value: OsString,
        /// What is wrong with it.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// A contributor of the host declared or returned a variable that cannot be.
    #[error(transparent)]
    Environment(#[from] ManagedEnvError),
    /// The change that was asked for is not strictly looser in exactly what was named.
    #[error("this would not be a strictly looser run: {reason}")]
    NotStrictlyLooser {
        /// Why not, in a sentence.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// The run was to happen only with an approval, and there is none.
    #[error(transparent)]
    Approval(#[from] NotApproved),
    /// The run has to be recorded, and cannot be.
    #[error("this has to be recorded, and cannot be: {source}")]
    Audit {
        /// Why.
        #[from]
        source: AuditError,
    },
    /// The end of the run was asked for before it began.
    #[error("the run was aborted before it started")]
    Aborted,
    /// The command began to run, and can no longer be watched. It was told to end.
    #[error("the command began, and was lost sight of: {source}")]
    Lost {
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// The operating system refused something that ordinarily works.
    #[error("{doing}: {source}")]
    Host {
        /// What was being done.
        doing: &'static str,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
}

fn list(tried: &[Tried]) -> String {
    let reasons: Vec<_> = tried.iter().map(|t| format!("; {}: {}", t.backend, t.reason)).collect();
    reasons.concat()
}

impl Error {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::SandboxUnavailable { .. } => ErrorCode::SandboxUnavailable,
            Self::Policy(_) | Self::Config(_) => ErrorCode::PolicyInvalid,
            Self::Session(error) => error.code(),
            Self::Workdir { .. } => ErrorCode::WorkdirUnusable,
            Self::CommandNotFound { .. } => ErrorCode::CommandNotFound,
            Self::CommandNotExecutable { .. } => ErrorCode::CommandNotExecutable,
            Self::CommandTooLarge { .. } => ErrorCode::CommandTooLarge,
            Self::Input { .. } | Self::Environment(_) => ErrorCode::InputInvalid,
            Self::NotStrictlyLooser { .. } => ErrorCode::NotStrictlyLooser,
            Self::Approval(refusal) => refusal.code(),
            Self::Audit { .. } => ErrorCode::AuditUnwritable,
            Self::Host { .. } | Self::Lost { .. } | Self::Aborted => ErrorCode::Internal,
        }
    }

    /// What to do about it, when there is something.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::SandboxUnavailable { .. } => {
                "`ringfence doctor` shows what this host gives and how to make it give more".to_owned()
            }
            Self::Policy(error) => return Some(error.hint()),
            Self::Config(error) => return Some(error.hint()),
            Self::Session(error) => error.hint().to_owned(),
            Self::Workdir { .. } => {
                "name a directory that exists and that you may enter with --workdir or -C".to_owned()
            }
            Self::CommandNotFound { program } if program.as_encoded_bytes().contains(&b' ') => {
                "this looks like a whole command line: give it with -c, or put its words after --".to_owned()
            }
            Self::CommandNotFound { .. } => "check its spelling and PATH".to_owned(),
            Self::CommandNotExecutable { .. } => {
                "it needs execute permission, and a `#!` line or a format this host can run".to_owned()
            }
            Self::CommandTooLarge { .. } => {
                format!(
                    "one string may have {MAX_STRING} bytes; a long shell text goes with --command-file, \
                     long data in a file or on standard input"
                )
            }
            Self::Input { hint, .. } | Self::NotStrictlyLooser { hint, .. } => hint.clone(),
            Self::Environment(error) => error.hint().to_owned(),
            Self::Approval(refusal) => refusal.hint(),
            Self::Audit { source } => source.hint().to_owned(),
            Self::Host { .. } | Self::Lost { .. } | Self::Aborted => return None,
        };
        Some(text)
    }

    /// The exit status of `ringfence run` for it, as env(1) and timeout(1) have it.
    #[must_use]
    pub const fn exit_status(&self) -> u8 {
        match self.code() {
            ErrorCode::CommandNotFound => 127,
            ErrorCode::CommandNotExecutable => 126,
            _ => 125,
        }
    }

    /// An [`Error::Input`].
    pub(crate) fn input(
        field: impl Into<String>,
        value: impl Into<OsString>,
        reason: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Input {
            field: field.into(),
            value: value.into(),
            reason: reason.into(),
            hint: hint.into(),
        }
    }

    /// An [`Error::Input`] for a duration that makes no sense.
    pub(crate) fn duration(field: &str, value: Duration, reason: &str) -> Self {
        Self::input(
            field,
            format!("{value:?}"),
            reason,
            "give a positive duration such as 90s or 10m",
        )
    }
}

/// The longest string execve(2) takes: 32 pages, its NUL included.
#[cfg(not(target_os = "macos"))]
pub(crate) const MAX_STRING: usize = 128 * 1024 - 1;
/// The longest string execve(2) takes: there is a limit (`ARG_MAX`) for all of them together.
#[cfg(target_os = "macos")]
pub(crate) const MAX_STRING: usize = 1024 * 1024 - 1;

/// The document that is printed instead of a report when no command ran.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorReport {
    /// The version of the document.
    pub schema: u32,
    /// The run that did not happen.
    pub run_id: String,
    /// Why.
    pub error: ErrorBody,
}

/// The body of an [`ErrorReport`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The stable code.
    pub code: ErrorCode,
    /// The stable word that tells apart what shares a code, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What happened, for people.
    pub message: String,
    /// What to do, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The backends asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
}

impl ErrorReport {
    /// The document for an error of the run `run_id`.
    #[must_use]
    pub fn new(run_id: &str, error: &Error) -> Self {
        let tried = match error {
            Error::SandboxUnavailable { tried } => tried.clone(),
            _ => Vec::new(),
        };
        let body = ErrorBody {
            code: error.code(),
            detail: match error {
                Error::Approval(refusal) => Some(refusal.detail().to_owned()),
                _ => None,
            },
            message: error.to_string(),
            hint: error.hint(),
            tried,
        };
        Self {
            schema: crate::facts::SCHEMA,
            run_id: run_id.to_owned(),
            error: body,
        }
    }
}
