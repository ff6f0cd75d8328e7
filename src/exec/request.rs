//! A run as the caller asks for it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use ringfence_backend::{BackendId, SandboxExecutionPolicy};

use super::limits::Resource;
use crate::ids::new_run_id;

/// How many bytes of each captured stream are kept, unless asked otherwise.
pub const DEFAULT_MAX_OUTPUT: usize = 64_000;
/// How many bytes the spill file of each captured stream may have, unless asked otherwise.
pub const DEFAULT_MAX_SPILL: u64 = 64 << 20;
/// The deadline of a captured run, unless asked otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
/// The longest deadline of a captured run.
pub const MAX_TIMEOUT: Duration = Duration::from_mins(10);
/// From the request to end until the kill, unless asked otherwise.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(3);
/// The longest text that `bash -c` is given, in bytes.
pub const MAX_COMMAND: usize = 64 * 1024 * 1024;

/// What becomes of the command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// It is read; the command has a session of its own and no terminal.
    Captured {
        /// How many bytes of the end of standard output are kept.
        max_stdout: usize,
        /// The same for standard error.
        max_stderr: usize,
        /// How many bytes a file may have that a stream is written to once more has come than is
        /// kept; 0 for no such file.
        max_spill: u64,
        /// Whether both streams are read as one, in the order in which they are written, and
        /// reported as standard output.
        merge: bool,
    },
    /// It goes where the caller's goes; the command shares the caller's session and terminal.
    Passthrough,
}

impl Capture {
    /// Both streams apart, with [`DEFAULT_MAX_OUTPUT`] and [`DEFAULT_MAX_SPILL`].
    #[must_use]
    pub const fn captured() -> Self {
        Self::Captured {
            max_stdout: DEFAULT_MAX_OUTPUT,
            max_stderr: DEFAULT_MAX_OUTPUT,
            max_spill: DEFAULT_MAX_SPILL,
            merge: false,
        }
    }

    /// Whether both streams are read as one.
    pub(super) const fn merges(self) -> bool {
        matches!(self, Self::Captured { merge: true, .. })
    }
}

/// What the command reads on standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Nothing when captured, the caller's own otherwise.
    Default,
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file's content.
    File(PathBuf),
    /// What the caller's standard input has, through a pipe.
    Callers,
}

/// A run as the caller asks for it.
#[derive(Clone, Debug)]
pub struct ExecRequest {
    /// The run's name: a UUID of version 7.
    pub run_id: String,
    /// The program and its arguments, byte for byte. With `bash`, `-c` and a text over 120 KiB, which
    /// as an argument the kernel would refuse, bash reads the text from a descriptor instead, and it
    /// may have [`MAX_COMMAND`] bytes.
    pub argv: Vec<OsString>,
    /// What may change.
    pub policy: SandboxExecutionPolicy,
    /// The directory to start in; relative to the workspace root, which is the default.
    pub workdir: Option<PathBuf>,
    /// The command's environment; see [`command_environment`](super::env::command_environment).
    /// `RINGFENCE_*` and what the runner's contributors declare is replaced.
    pub env: Vec<(OsString, OsString)>,
    /// What becomes of the output.
    pub capture: Capture,
    /// What is read on standard input.
    pub input: Input,
    /// The deadline. A captured run has one in any case, at most [`MAX_TIMEOUT`].
    pub timeout: Option<Duration>,
    /// From TERM to KILL.
    pub grace: Option<Duration>,
    /// Exactly this backend.
    pub backend: Option<BackendId>,
    /// How denials are to be known.
    pub evidence: Evidence,
    /// Limits of the command's processes, in each resource's own unit, no higher than the hard limits of
    /// this process. What is not named stays as this process has it, but for core dumps, of which
    /// there are none.
    pub limits: BTreeMap<Resource, u64>,
}

/// How denials are to be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evidence {
    /// By watching the calls, if nobody else does; in `workspace-write` with the accelerator, which
    /// is exact for every program that does not set out to hide its own refused attempts.
    #[default]
    Auto,
    /// By watching every call, without the accelerator, or the command does not run.
    Strict,
    /// By the command's own words alone.
    Off,
}

impl ExecRequest {
    /// A captured run of `argv` in the workspace root with an empty environment.
    #[must_use]
    pub fn new(argv: Vec<OsString>, policy: SandboxExecutionPolicy) -> Self {
        Self {
            run_id: new_run_id(),
            argv,
            policy,
            workdir: None,
            env: Vec::new(),
            capture: Capture::captured(),
            input: Input::Default,
            timeout: None,
            grace: None,
            backend: None,
            evidence: Evidence::Auto,
            limits: BTreeMap::new(),
        }
    }
}
