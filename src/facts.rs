//! What a run reports. Each fact stands by itself; none is derived from another.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringfence_backend::{BackendId, Containment, Door, Effect, Enforcement, SandboxMode};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

mod denial;
mod loosening;
mod stream;

pub use denial::{Denial, Observed, Operation, Source};
pub use loosening::{Loosen, Loosening};
pub use stream::{CapturedStream, Spill};

/// The version of every document Ringfence prints.
pub const SCHEMA: u32 = 1;

/// The report of a run whose command was executed.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// A UUID of version 7.
    pub run_id: String,
    /// The program and its arguments, as they were asked for; of a long shell text the beginning.
    pub argv: Vec<OsString>,
    /// The length of the shell text, when `argv` has only its beginning.
    pub command: Option<LongCommand>,
    /// The directory the command started in.
    pub workdir: PathBuf,
    /// The session the run belongs to.
    pub session: Option<String>,
    /// How the command ended.
    pub exit: Exit,
    /// Whether the deadline passed while the command still ran.
    pub timed_out: bool,
    /// Whether the caller ended the run while the command still ran.
    pub aborted: bool,
    /// The limit by which a run in the background was ended, other than its lifetime.
    pub limit: Option<Limit>,
    /// The deadline in force, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// From the start of the command to the report, in milliseconds.
    pub duration_ms: u64,
    /// Standard output, when captured.
    pub stdout: Option<CapturedStream>,
    /// Standard error, when captured.
    pub stderr: Option<CapturedStream>,
    /// Whether `stdout` holds both streams, in the order in which they were written.
    pub merged: bool,
    /// What confinement did.
    pub sandbox: SandboxFacts,
    /// Whether the run is in the audit trail.
    pub recorded: Recorded,
}

/// Whether a run is in the audit trail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Recorded {
    /// It was not to be.
    #[default]
    NotAsked,
    /// It is.
    Yes,
    /// It was to be, and is not, or not in whole.
    No {
        /// Why.
        reason: String,
    },
}

/// A limit of a run in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// It said nothing for too long.
    Idle,
    /// It said too much.
    Output,
}

/// A shell text that a report shows in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LongCommand {
    /// The length of the text, in bytes.
    pub bytes: usize,
    /// How many of them `argv` shows: its beginning.
    pub shown: usize,
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody knows: it could not be killed in time, or its reaper was.
    Unknown,
}

impl Exit {
    /// The exit status, absent for a death by signal.
    #[must_use]
    pub const fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(_) | Self::Unknown => None,
        }
    }

    /// The signal's name, absent for an ordinary end.
    #[must_use]
    pub fn signal(self) -> Option<String> {
        match self {
            Self::Code(_) | Self::Unknown => None,
            Self::Signal(number) => Some(match nix::sys::signal::Signal::try_from(number) {
                Ok(signal) => signal.as_str().to_owned(),
                Err(_) => format!("SIG{number}"),
            }),
        }
    }

    /// The status a shell would show: 128 and the signal's number for a death by signal.
    #[must_use]
    pub fn shell_status(self) -> u8 {
        let number = match self {
            Self::Code(code) => code,
            Self::Signal(number) => 128 + number,
            Self::Unknown => 125,
        };
        u8::try_from(number & 0xff).unwrap_or(u8::MAX)
    }
}

/// A verdict on denials, with what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// Nothing was confined, so nothing was denied.
    NothingConfined,
    /// Seen in the calls themselves.
    Observed(Observed),
    /// Read from the command's own words after it failed: a last resort.
    Inferred {
        /// Whether they read like a refusal.
        denied: bool,
        /// Why there was nothing better.
        why: String,
    },
    /// No statement.
    Unavailable {
        /// Why.
        why: String,
    },
}

impl Denied {
    /// The verdict: absent when there is none.
    #[must_use]
    pub const fn verdict(&self) -> Option<bool> {
        match self {
            Self::NothingConfined => Some(false),
            Self::Observed(seen) => Some(!seen.denials.is_empty()),
            Self::Inferred { denied, .. } => Some(*denied),
            Self::Unavailable { .. } => None,
        }
    }

    /// How it is known, in the report's word.
    #[must_use]
    pub const fn evidence(&self) -> Option<&'static str> {
        match self {
            Self::NothingConfined => None,
            Self::Observed(_) => Some("observed"),
            Self::Inferred { .. } => Some("inferred"),
            Self::Unavailable { .. } => Some("unavailable"),
        }
    }
}

/// Processes of the run that were still there when its command had ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivors {
    /// How many were found.
    pub found: u32,
    /// How many were killed.
    pub killed: u32,
}

/// What confinement did in a run.
#[derive(Clone, Debug)]
pub struct SandboxFacts {
    /// The mode the run was under.
    pub mode: SandboxMode,
    /// Whether a file effect was refused.
    pub denied: Denied,
    /// How completely the host enforced the mode; absent when nothing was confined.
    pub enforcement: Option<Enforcement>,
    /// Whether confinement could not be set up, so that the command never ran.
    pub runner_failed: bool,
    /// The backend.
    pub backend: BackendId,
    /// Doors that were open.
    pub not_confined: Vec<Door>,
    /// Processes that outlived the command and were ended; absent when some would not end in time, so that nobody knows.
    pub survivors: Option<Survivors>,
    /// How the run's processes were kept together.
    pub containment: Containment,
    /// What a denial's smallest loosening depends on.
    pub loosening: Loosening,
}

impl SandboxFacts {
    /// The file effects that were left open.
    #[must_use]
    pub fn ungoverned(&self) -> BTreeSet<Effect> {
        match &self.enforcement {
            Some(Enforcement::Partial { ungoverned }) => ungoverned.clone(),
            Some(Enforcement::Full) | None => BTreeSet::new(),
        }
    }
}

impl Serialize for SandboxFacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("mode", &self.mode)?;
        map.serialize_entry("denied", &self.denied.verdict())?;
        if let Some(enforcement) = &self.enforcement {
            let word = if *enforcement == Enforcement::Full {
                "full"
            } else {
                "partial"
            };
            map.serialize_entry("enforcement", word)?;
        }
        map.serialize_entry("runnerFailed", &self.runner_failed)?;
        map.serialize_entry("backend", &self.backend)?;
        if let Some(evidence) = self.denied.evidence() {
            map.serialize_entry("evidence", evidence)?;
        }
        if let Denied::Inferred { why, .. } | Denied::Unavailable { why } = &self.denied {
            map.serialize_entry("evidenceReason", why)?;
        }
        if let Denied::Observed(seen) = &self.denied {
            map.serialize_entry("evidenceSource", &seen.source)?;
            let listed: Vec<_> = seen
                .denials
                .iter()
                .map(|denial| DenialEntry(denial, &self.loosening))
                .collect();
            map.serialize_entry("denials", &listed)?;
            // The log loses records in a storm, and nobody counts them.
            let counted = seen.source != Source::Audit;
            map.serialize_entry("denialsOmitted", &counted.then_some(seen.omitted))?;
        }
        if self.mode.confines() {
            map.serialize_entry("ungoverned", &self.ungoverned())?;
            map.serialize_entry("notConfined", &self.not_confined)?;
        }
        map.serialize_entry("survivors", &self.survivors)?;
        map.serialize_entry("containment", &self.containment)?;
        map.end()
    }
}

impl Serialize for RunReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema", &SCHEMA)?;
        map.serialize_entry("runId", &self.run_id)?;
        let shown: Vec<_> = self.argv.iter().map(|arg| arg.to_string_lossy()).collect();
        map.serialize_entry("argv", &shown)?;
        if self.argv.iter().any(|arg| arg.to_str().is_none()) {
            let twins: Vec<_> = self.argv.iter().map(|arg| STANDARD.encode(arg.as_bytes())).collect();
            map.serialize_entry("argvBytes", &twins)?;
        }
        if let Some(command) = &self.command {
            map.serialize_entry("command", command)?;
        }
        path_entry(&mut map, "workdir", &self.workdir)?;
        map.serialize_entry("session", &self.session)?;
        map.serialize_entry("exitCode", &self.exit.code())?;
        map.serialize_entry("signal", &self.exit.signal())?;
        map.serialize_entry("timedOut", &self.timed_out)?;
        map.serialize_entry("aborted", &self.aborted)?;
        if let Some(limit) = &self.limit {
            map.serialize_entry("limit", limit)?;
        }
        map.serialize_entry("timeoutMs", &self.timeout_ms)?;
        map.serialize_entry("durationMs", &self.duration_ms)?;
        if let (Some(stdout), Some(stderr)) = (&self.stdout, &self.stderr) {
            map.serialize_entry("stdout", stdout)?;
            map.serialize_entry("stderr", stderr)?;
            map.serialize_entry("merged", &self.merged)?;
        }
        map.serialize_entry("sandbox", &self.sandbox)?;
        if let Recorded::No { reason } = &self.recorded {
            map.serialize_entry("audit", &serde_json::json!({"recorded": false, "reason": reason}))?;
        }
        map.end()
    }
}

/// One denial as a report lists it, with the smallest change that would have allowed it.
#[derive(Debug)]
pub struct DenialEntry<'a>(pub &'a Denial, pub &'a Loosening);

impl Serialize for DenialEntry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(denial, loosening) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("op", &denial.op)?;
        path_entry(&mut map, "path", &denial.path)?;
        let known = denial.pid != 0;
        map.serialize_entry("program", &known.then_some(&denial.program))?;
        map.serialize_entry("pid", &known.then_some(denial.pid))?;
        map.serialize_entry("errno", &format!("{:?}", denial.errno))?;
        map.serialize_entry("count", &denial.count)?;
        map.serialize_entry("loosen", &loosening.of(denial))?;
        map.end()
    }
}

/// A path as text, beside a base64 twin (`<name>Bytes`) when it is no UTF-8.
fn path_entry<M: SerializeMap>(map: &mut M, name: &str, path: &Path) -> Result<(), M::Error> {
    map.serialize_entry(name, &path.to_string_lossy())?;
    if path.to_str().is_none() {
        let bytes: &OsStr = path.as_os_str();
        map.serialize_entry(&format!("{name}Bytes"), &STANDARD.encode(bytes.as_bytes()))?;
    }
    Ok(())
}
