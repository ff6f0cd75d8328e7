//! How much a record asks to be looked at, and whether what it tells of went well.

use ringfence_backend::SandboxMode;

use super::super::record::Event;
use crate::error::ErrorCode;

/// How much a record asks to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// What is done every day.
    Informational,
    /// Worth a look when something else happened.
    Low,
    /// A refusal, an exception, or less protection than the mode promises.
    Medium,
    /// What was to be confined or recorded could not be.
    High,
}

impl Level {
    /// The level of an event.
    pub(super) fn of(event: &Event) -> Self {
        match event {
            Event::RunStart {
                enforcement, approval, ..
            } => match enforcement.as_deref() {
                Some("full") if approval.is_none() => Self::Informational,
                Some("full") => Self::Low,
                _ => Self::Medium,
            },
            Event::RunEnd {
                timed_out, survivors, ..
            } if *timed_out || survivors.is_some_and(|left| left.found > left.killed) => Self::Low,
            Event::RunEnd { .. } | Event::SessionCreated { .. } | Event::PolicyLoaded { .. } => Self::Informational,
            Event::ModeChanged { to, .. } if *to != SandboxMode::DangerFullAccess => Self::Informational,
            Event::ApprovalDecided { outcome, .. } if outcome != "allowed-once" => Self::Low,
            Event::ApprovalAsked { .. } => Self::Low,
            Event::Denial { .. }
            | Event::ModeChanged { .. }
            | Event::ApprovalDecided { .. }
            | Event::ApprovalConsumed { .. }
            | Event::Gap { .. }
            | Event::Pruned { .. } => Self::Medium,
            Event::RunnerFailed { code, .. } => match code {
                ErrorCode::SandboxUnavailable
                | ErrorCode::AuditUnwritable
                | ErrorCode::Internal
                | ErrorCode::ApprovalUsed
                | ErrorCode::ApprovalChanged => Self::High,
                _ => Self::Low,
            },
            Event::SandboxUnavailable { .. } | Event::Torn { .. } => Self::High,
        }
    }

    /// The number that syslog and the journal have for it.
    pub(super) const fn syslog(self) -> u8 {
        match self {
            Self::Informational => 6,
            Self::Low => 5,
            Self::Medium => 4,
            Self::High => 3,
        }
    }
}

/// Whether what a record tells of went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It did.
    Success,
    /// It did not.
    Failure,
    /// It is not said, or not decided.
    Open,
}

impl Outcome {
    /// The outcome of an event.
    pub(super) fn of(event: &Event) -> Self {
        match event {
            Event::RunEnd { exit_code: Some(0), .. }
            | Event::RunStart { .. }
            | Event::SessionCreated { .. }
            | Event::ModeChanged { .. }
            | Event::ApprovalConsumed { .. }
            | Event::PolicyLoaded { .. }
            | Event::Pruned { .. } => Self::Success,
            Event::ApprovalDecided { outcome, .. } if outcome == "allowed-once" => Self::Success,
            Event::ApprovalAsked { .. } => Self::Open,
            Event::Denial { .. }
            | Event::RunEnd { .. }
            | Event::SandboxUnavailable { .. }
            | Event::RunnerFailed { .. }
            | Event::ApprovalDecided { .. }
            | Event::Gap { .. }
            | Event::Torn { .. } => Self::Failure,
        }
    }

    /// The word for it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Open => "unknown",
        }
    }
}
