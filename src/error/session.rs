//! Why a session cannot be made, found or used.

use std::io;
use std::path::PathBuf;

use super::ErrorCode;

/// Why a session cannot be made, found or used. No run takes place then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No session has that id.
    #[error("there is no session {id:?}")]
    Unknown {
        /// The id as it was given.
        id: String,
    },
    /// No session can have that id.
    #[error("no session can be called {id:?}: {reason}")]
    Name {
        /// The id as it was given.
        id: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is a session of that id.
    #[error("there is a session {id:?} already")]
    Taken {
        /// The id as it was given.
        id: String,
    },
    /// Sessions cannot be kept.
    #[error("sessions cannot be kept: {reason}")]
    State {
        /// Why, in a sentence.
        reason: String,
    },
    /// A run in the session could write the sessions.
    #[error("a run in a session must not be able to write the sessions: {reason}")]
    WithinReach {
        /// Why it could, in a sentence.
        reason: String,
    },
    /// The session's log says something it cannot mean.
    #[error("the session's log {}, line {line}, cannot be read: {reason}", file.display())]
    Corrupt {
        /// The log.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The session was switched to a mode that there is not.
    #[error("the session's log {}, line {line}: `{mode}` is not a mode", file.display())]
    UnknownMode {
        /// The log.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The word that stands there.
        mode: String,
    },
    /// The session's directory is not there, or cannot be reached.
    #[error("the directory {} of the session {id} cannot be used: {source}", cwd.display())]
    Gone {
        /// The session.
        id: String,
        /// Its directory.
        cwd: PathBuf,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// Another directory stands where the session's was.
    #[error("{} is not the directory that the session {id} was made in: another one has taken its place", cwd.display())]
    Replaced {
        /// The session.
        id: String,
        /// Its directory.
        cwd: PathBuf,
    },
}

impl SessionError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown { .. } | Self::Name { .. } | Self::Taken { .. } => ErrorCode::InputInvalid,
            Self::State { .. } => ErrorCode::Internal,
            Self::WithinReach { .. } | Self::Corrupt { .. } | Self::UnknownMode { .. } => ErrorCode::PolicyInvalid,
            Self::Gone { .. } | Self::Replaced { .. } => ErrorCode::WorkdirUnusable,
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "`ringfence session list` shows the sessions, `ringfence session new` makes one",
            Self::Name { .. } => "use up to 64 letters, digits, `.`, `_` and `-`, and begin with a letter or a digit",
            Self::Taken { .. } => "choose another name, or go on with that session",
            Self::State { .. } => {
                "make the state directory writable for you and for no run, or name another with RINGFENCE_STATE_DIR"
            }
            Self::WithinReach { .. } => {
                "leave the state directory out of what the run may write, or name another with RINGFENCE_STATE_DIR"
            }
            Self::Corrupt { .. } | Self::UnknownMode { .. } => {
                "the log is only written by Ringfence, so find out who changed it; make a new session to go on"
            }
            Self::Gone { .. } => "bring the directory back, or make a session in another one",
            Self::Replaced { .. } => {
                "a session never moves to another directory; if this one is meant, make a new session in it"
            }
        }
    }
}
