//! Why a run that needed an approval did not happen. Each outcome is told apart, in a code, a word and a
//! sentence: who asked has to know whether somebody said no or nobody was there.

use std::fmt;
use std::time::Duration;

use super::ErrorCode;

/// A run that needed an approval and did not get one, or could not use it. It did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotApproved {
    /// Nobody was asked yet.
    #[error("this needs an approval, and nobody was asked: {what}")]
    Required {
        /// What needs it, in a sentence.
        what: String,
    },
    /// Somebody, a rule or the policy said no.
    #[error("the request {request} was rejected by {by}{}", because(.reason.as_deref()))]
    Rejected {
        /// The request.
        request: String,
        /// Of what kind that was.
        kind: Rejecter,
        /// Who or what said no.
        by: String,
        /// What was said beside it.
        reason: Option<String>,
    },
    /// Nobody answered in time, or the grant was not used in time.
    #[error("{expiry}. This is not a refusal")]
    Expired {
        /// The request.
        request: String,
        /// What ran out.
        expiry: Expiry,
    },
    /// The request was withdrawn before it was answered.
    #[error("the request {request} was cancelled before it was answered: {reason}")]
    Cancelled {
        /// The request.
        request: String,
        /// How, in a sentence.
        reason: String,
    },
    /// There was nobody to ask, or what answered gave no answer.
    #[error("nobody could be asked: {reason}. This is not a refusal")]
    Unavailable {
        /// Why, in a sentence.
        reason: String,
    },
    /// The grant was for something else than what is there now.
    #[error("the approval {request} is not for this: {changed} since it was asked for")]
    Changed {
        /// The request.
        request: String,
        /// What has changed since.
        changed: Bound,
    },
    /// The grant was used before.
    #[error("the approval {request} has been used, and each is for one run")]
    Used {
        /// The request.
        request: String,
    },
    /// The ticket of the grant is not there any more, or is another.
    #[error("the ticket of the approval {request} cannot be used: {reason}")]
    Ticket {
        /// The request.
        request: String,
        /// What is wrong with it, in a sentence.
        reason: String,
    },
}

/// What kind of decider said no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejecter {
    /// The approval policy, before anybody was asked.
    Policy,
    /// A rule, before anybody was asked.
    Rule,
    /// A person.
    Person,
    /// A program that was asked.
    Program,
}

/// What ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Nobody answered within this time.
    Request(Duration),
    /// The grant was not used within this time of the decision.
    Grant(Duration),
    /// The host was started anew in between.
    Rebooted,
    /// The host's clock was set forward past the end, so that nobody knows.
    ClockJumped,
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(time) => write!(f, "nobody answered within {}", Length(*time)),
            Self::Grant(time) => write!(f, "the approval was not used within {} of the decision", Length(*time)),
            Self::Rebooted => f.write_str("the host was restarted since, and approvals end with that"),
            Self::ClockJumped => f.write_str("the host's clock was set forward past the end of the approval"),
        }
    }
}

/// A length of time, in the unit that suits it.
struct Length(Duration);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            ms if ms >= 60_000 && ms % 60_000 == 0 => write!(f, "{} min", ms / 60_000),
            ms if ms % 1000 == 0 => write!(f, "{} s", ms / 1000),
            ms => write!(f, "{ms} ms"),
        }
    }
}

/// One of the things that a grant is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The version of the binding.
    Schema,
    /// The program and its arguments.
    Argv,
    /// The working directory: its path, or what the path names.
    WorkingDirectory,
    /// The variables the command gets.
    Environment,
    /// The program's file.
    Executable,
    /// Standard input.
    Stdin,
    /// The policy of the finished run.
    Policy,
    /// What is to be looser.
    Difference,
    /// The boot of the host.
    Boot,
    /// Who asks.
    User,
    /// The finished run.
    Run,
    /// The request's own number.
    Nonce,
}

impl Bound {
    /// The stable word for a change of it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Schema => "schema-changed",
            Self::Argv => "argv-changed",
            Self::WorkingDirectory => "working-directory-changed",
            Self::Environment => "environment-changed",
            Self::Executable => "executable-changed",
            Self::Stdin => "stdin-changed",
            Self::Policy => "policy-changed",
            Self::Difference => "difference-changed",
            Self::Boot => "rebooted",
            Self::User => "user-changed",
            Self::Run => "run-changed",
            Self::Nonce => "request-changed",
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Schema => "the form of approvals has changed",
            Self::Argv => "the command or its arguments are others",
            Self::WorkingDirectory => "the working directory is another",
            Self::Environment => "the command's environment has changed",
            Self::Executable => "the program's file has changed",
            Self::Stdin => "the standard input is another",
            Self::Policy => "the policy is another",
            Self::Difference => "what is to be looser is something else",
            Self::Boot => "the host was restarted",
            Self::User => "the user is another",
            Self::Run => "the run is another",
            Self::Nonce => "the request is another",
        })
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}

impl NotApproved {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Required { .. } => ErrorCode::ApprovalRequired,
            Self::Rejected { .. } => ErrorCode::ApprovalRejected,
            Self::Expired { .. } => ErrorCode::ApprovalExpired,
            Self::Cancelled { .. } => ErrorCode::ApprovalCancelled,
            Self::Unavailable { .. } => ErrorCode::ApprovalUnavailable,
            Self::Changed { .. } | Self::Ticket { .. } => ErrorCode::ApprovalChanged,
            Self::Used { .. } => ErrorCode::ApprovalUsed,
        }
    }

    /// The stable word that tells apart what shares a code.
    #[must_use]
    pub const fn detail(&self) -> &'static str {
        match self {
            Self::Required { .. } => "nobody-asked",
            Self::Rejected { kind, .. } => match kind {
                Rejecter::Policy => "rejected-by-policy",
                Rejecter::Rule => "rejected-by-rule",
                Rejecter::Person => "rejected-by-person",
                Rejecter::Program => "rejected-by-program",
            },
            Self::Expired { expiry, .. } => match expiry {
                Expiry::Request(_) => "request-expired",
                Expiry::Grant(_) => "grant-expired",
                Expiry::Rebooted => "rebooted",
                Expiry::ClockJumped => "clock-jumped",
            },
            Self::Cancelled { .. } => "cancelled",
            Self::Unavailable { .. } => "nobody-there",
            Self::Changed { changed, .. } => changed.word(),
            Self::Used { .. } => "used",
            Self::Ticket { .. } => "ticket-changed",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Required { .. } => {
                "run it in the session's mode; if something is refused, `ringfence retry` asks for one looser run. A person can \
                 switch the session with `ringfence session mode`"
            }
            Self::Rejected { .. } => "do not ask again for the same; go on without it, or stop",
            Self::Expired { .. } => "go on without it, or ask again when somebody is there",
            Self::Cancelled { .. } => "ask again if it is still needed",
            Self::Unavailable { .. } => "go on without it, or name another way to ask with --answer",
            Self::Changed { .. } | Self::Used { .. } | Self::Ticket { .. } => "ask again, for what is there now",
        }
        .to_owned()
    }
}
