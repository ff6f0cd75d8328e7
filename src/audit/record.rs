//! The vocabulary of the trail: what a record says.

mod shorten;

use std::collections::BTreeSet;

use ringfence_backend::{BackendId, Effect, SandboxMode};
use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, Tried};
use crate::facts::{Operation, Survivors};

/// Something to be recorded: what happened, and to which session and run it belongs. The trail adds the
/// rest: number, time, host, user, and the hash of the record before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The session it belongs to.
    pub session: Option<String>,
    /// The run it belongs to.
    pub run: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

impl From<Event> for Entry {
    /// An entry that belongs to no session and no run.
    fn from(event: Event) -> Self {
        Self {
            session: None,
            run: None,
            event,
        }
    }
}

/// What happened. On paper `type` names the variant, and the fields stand beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Event {
    /// A command is about to start, confined as its plan says.
    #[serde(rename = "run.start")]
    RunStart {
        /// The program and its arguments, secrets replaced.
        argv: Vec<String>,
        /// The directory it starts in.
        workdir: String,
        /// The mode.
        mode: SandboxMode,
        /// The backend.
        backend: BackendId,
        /// `full` or `partial`; absent where nothing is confined.
        enforcement: Option<String>,
        /// What is left open of the mode.
        ungoverned: BTreeSet<Effect>,
        /// The request that was approved for exactly this run.
        approval: Option<String>,
        /// The run of which this is the approved retry.
        retry_of: Option<String>,
    },
    /// Something was refused, as often as `count` says.
    #[serde(rename = "denial")]
    Denial {
        /// What was attempted.
        op: Operation,
        /// On what.
        path: String,
        /// The path in base64, when it is no UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path_bytes: Option<String>,
        /// The program that tried, where it is known.
        program: Option<String>,
        /// Its process.
        pid: Option<i32>,
        /// What it was told, such as `EACCES`.
        errno: String,
        /// How often.
        count: u64,
    },
    /// A command has ended.
    #[serde(rename = "run.end")]
    RunEnd {
        /// Its exit status; absent for a death by signal.
        exit_code: Option<i32>,
        /// The signal that killed it.
        signal: Option<String>,
        /// Whether its deadline passed.
        timed_out: bool,
        /// Whether it was ended by the caller.
        aborted: bool,
        /// How long it ran, in milliseconds.
        duration_ms: u64,
        /// Whether something was denied; absent when nobody knows.
        denied: Option<bool>,
        /// How that is known.
        evidence: Option<String>,
        /// Processes that outlived it and were killed.
        survivors: Option<Survivors>,
    },
    /// No backend could confine the run, which did not start.
    #[serde(rename = "sandbox.unavailable")]
    SandboxUnavailable {
        /// Each backend that was asked, and why it could not serve.
        tried: Vec<Tried>,
    },
    /// The run could not start for another reason.
    #[serde(rename = "runner.failed")]
    RunnerFailed {
        /// The error's code.
        code: ErrorCode,
        /// The error's message.
        message: String,
    },
    /// A session was made.
    #[serde(rename = "session.created")]
    SessionCreated {
        /// Its directory, which never changes.
        cwd: String,
        /// Its mode, if it was given one.
        mode: Option<SandboxMode>,
    },
    /// A session was switched to another mode.
    #[serde(rename = "mode.changed")]
    ModeChanged {
        /// The mode before; absent when it had none of its own.
        from: Option<SandboxMode>,
        /// The mode from the next run on.
        to: SandboxMode,
    },
    /// Somebody asked for one looser run of a finished one.
    #[serde(rename = "approval.asked")]
    ApprovalAsked {
        /// The request.
        request: String,
        /// The program and its arguments, secrets replaced.
        argv: Vec<String>,
        /// The directory it would start in.
        workdir: String,
        /// What would be looser, in words.
        difference: String,
        /// Why, in the words of whoever asks.
        justification: String,
        /// The SHA-256 digest of everything the answer is bound to, in hexadecimal.
        digest: String,
        /// Until when it can be answered.
        expires_at: String,
    },
    /// A request was decided.
    #[serde(rename = "approval.decided")]
    ApprovalDecided {
        /// The request.
        request: String,
        /// `allowed-once`, `rejected`, `cancelled`, `expired` or `unavailable`.
        outcome: String,
        /// Who or what decided.
        by: Decider,
        /// The digest that the decision is bound to.
        digest: String,
    },
    /// A grant was used up; its run starts now.
    #[serde(rename = "approval.consumed")]
    ApprovalConsumed {
        /// The request.
        request: String,
        /// The digest that the decision is bound to.
        digest: String,
    },
    /// A file that bears on the policy was read.
    #[serde(rename = "policy.loaded")]
    PolicyLoaded {
        /// The file, or the name of a built-in profile.
        source: String,
        /// The SHA-256 digest of its content, in hexadecimal.
        sha256: String,
    },
    /// Something was left out of the trail.
    #[serde(rename = "audit.gap")]
    Gap {
        /// What, in words.
        what: String,
        /// How many records it would have been.
        omitted: u64,
    },
    /// The end of the trail was found torn, as a crash leaves it. The bytes stay where they are.
    #[serde(rename = "audit.torn")]
    Torn {
        /// How many bytes there are between the last whole record and this one, line ends included.
        bytes: u64,
        /// Their SHA-256 digest, in hexadecimal.
        sha256: String,
    },
    /// Old segments were removed.
    #[serde(rename = "audit.pruned")]
    Pruned {
        /// The number of the last record that was removed.
        through: u64,
        /// Its hash, which the oldest record that is left names as the one before.
        hash: String,
        /// The Merkle hashes of the complete subtrees of everything that was removed, largest first.
        frontier: Vec<String>,
    },
}

/// Who or what decided a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decider {
    /// `policy`, `rule`, `tty`, `queue`, `hook`, `mcp`, `clock`, or `asker` where whoever asked ended it.
    pub kind: String,
    /// The person or program, as far as it is known: a user's name and id, the hook's path.
    pub principal: String,
    /// `seen`: the whole card was shown and answered on a terminal. `asserted`: the answer came without.
    pub assurance: Option<String>,
    /// What was said beside the decision.
    pub reason: Option<String>,
}
