//! A run in which nothing is left open.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use ringfence_backend::{
    BackendId, ChildLimit, CommandSpec, FileId, LaunchPlan, Observe, PinnedPath, PinnedProgram, SandboxExecutionPolicy,
    SandboxMode, Temp,
};

use super::limits::Resource;
use super::long::{self, Carried};
use super::managed::ManagedEnv;
use super::request::{Capture, DEFAULT_GRACE, DEFAULT_TIMEOUT, Evidence, ExecRequest, Input, MAX_TIMEOUT};
use super::scratch::Scratch;
use super::{limits, lookup, stdio, too_large};
use crate::error::Error;
use crate::evidence::accelerator;
use crate::facts::LongCommand;
use crate::selection::Selection;

/// The longest time a timer of poll(2) can be set to.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// What a run was approved for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The request that was approved.
    pub(crate) approval: String,
    /// The run of which this is the looser retry.
    pub(crate) retry_of: String,
    /// The program that was approved.
    pub(crate) program: PinnedProgram,
    /// What the file on standard input had when it was looked at; it is read in place of the file.
    pub(crate) input: Option<Vec<u8>>,
}

/// A run in which nothing is left open: what will be done, and by which backend.
#[derive(Debug)]
pub struct ExecSpec {
    run_id: String,
    policy: SandboxExecutionPolicy,
    command: CommandSpec,
    capture: Capture,
    input: Input,
    timeout: Option<Duration>,
    grace: Duration,
    backend: Option<BackendId>,
    evidence: Evidence,
    origin: Option<Origin>,
    asked_env: Vec<(OsString, OsString)>,
    candidates: Vec<OsString>,
    streams: [stdio::Stream; 3],
    plan: LaunchPlan,
    carried: Option<Carried>,
    limits: BTreeMap<Resource, u64>,
    child_limits: Vec<ChildLimit>,
    // Removed with this value.
    _scratch: Option<Scratch>,
}

impl ExecSpec {
    /// The run's name.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The program and its arguments, as they were asked for; of a long shell text the beginning.
    #[must_use]
    pub fn argv(&self) -> &[OsString] {
        self.carried
            .as_ref()
            .map_or(&self.command.argv, |carried| &carried.shown)
    }

    /// The length of the shell text, when [`argv`](Self::argv) has only its beginning.
    #[must_use]
    pub fn long_command(&self) -> Option<&LongCommand> {
        self.carried.as_ref().map(|carried| &carried.length)
    }

    /// The directory the command starts in.
    #[must_use]
    pub fn workdir(&self) -> &Path {
        self.command.workdir.path()
    }

    /// What may change.
    #[must_use]
    pub const fn policy(&self) -> &SandboxExecutionPolicy {
        &self.policy
    }

    /// What the backend will do.
    #[must_use]
    pub const fn plan(&self) -> &LaunchPlan {
        &self.plan
    }

    /// The deadline in force.
    #[must_use]
    pub const fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// From TERM to KILL.
    #[must_use]
    pub const fn grace(&self) -> Duration {
        self.grace
    }

    /// The limits that were asked for.
    #[must_use]
    pub const fn limits(&self) -> &BTreeMap<Resource, u64> {
        &self.limits
    }

    /// What a backend has to know of the command.
    pub(super) const fn command(&self) -> &CommandSpec {
        &self.command
    }

    pub(super) const fn asked_backend(&self) -> Option<BackendId> {
        self.backend
    }

    pub(super) const fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// The environment as it was asked for, before Ringfence and its host set theirs.
    pub(super) fn asked_env(&self) -> &[(OsString, OsString)] {
        &self.asked_env
    }

    /// What the run was approved for, if it was.
    pub(super) const fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// Marks the run as an approved one.
    pub(crate) fn approved(&mut self, origin: Origin) {
        self.origin = Some(origin);
    }

    pub(crate) const fn workdir_id(&self) -> FileId {
        self.command.workdir.id()
    }

    pub(super) fn env(&self) -> &[(OsString, OsString)] {
        &self.command.env
    }

    /// The program and its arguments, as they are executed.
    pub(super) fn executed(&self) -> &[OsString] {
        &self.command.argv
    }

    /// What the command gets beside its standard streams.
    pub(super) fn extra(&self) -> Option<BorrowedFd<'_>> {
        self.carried.as_ref().map(|carried| carried.fd.as_fd())
    }

    pub(super) fn child_limits(&self) -> &[ChildLimit] {
        &self.child_limits
    }

    /// Whether the kernel's log may have to serve.
    pub(super) const fn wants_log(&self) -> bool {
        self.command.log
    }

    pub(super) const fn capture(&self) -> Capture {
        self.capture
    }

    pub(super) const fn input(&self) -> &Input {
        &self.input
    }

    pub(super) fn candidates(&self) -> &[OsString] {
        &self.candidates
    }

    pub(super) const fn streams(&self) -> &[stdio::Stream; 3] {
        &self.streams
    }

    /// The lengths of every string that execve(2) is given.
    pub(super) fn strings(&self) -> impl Iterator<Item = usize> + Clone {
        let env = self
            .command
            .env
            .iter()
            .map(|(name, value)| name.len() + 1 + value.len());
        self.command.argv.iter().map(|arg| arg.len()).chain(env)
    }

    /// Chooses a backend once more, after the first choice has proved wrong.
    pub(super) fn plan_again(&mut self, selection: &Selection) -> Result<(), Error> {
        self.command.accelerator = None;
        self.plan = selection.choose(&self.policy, &self.command, self.backend)?.plan;
        Ok(())
    }
}

/// Checks a request and fills in what it leaves open.
pub(super) fn resolve(
    selection: &Selection,
    managed_env: &ManagedEnv,
    mut request: ExecRequest,
) -> Result<ExecSpec, Error> {
    check_argv(&request.argv)?;
    let child_limits = limits::resolve(&request.limits)?;
    let (timeout, grace) = times(&request)?;
    if let Capture::Captured { max_stdout: 0, .. } | Capture::Captured { max_stderr: 0, .. } = request.capture {
        return Err(Error::input(
            "--max-output",
            "0",
            "it must be positive",
            "give a size such as 64000 or 1m",
        ));
    }
    let workdir = workdir(&request)?;
    let scratch = match request.policy.temp() {
        Temp::Private if request.policy.mode().confines() => Some(Scratch::make().map_err(|source| Error::Host {
            doing: "could not make a private temp directory",
            source,
        })?),
        _ => None,
    };
    let temp = scratch.as_ref().map(|scratch| scratch.pinned().path());
    let environment = managed_env.complete(&request, workdir.path(), temp)?;
    let carried = long::carry(&request.argv)?;
    if let Some(carried) = &carried {
        request.argv.clone_from(&carried.executed);
    }
    if let Some(error) = too_large(&request.argv, &environment) {
        return Err(error);
    }
    let streams = stdio::streams(request.capture, &request.input).map_err(|source| {
        if source.kind() == std::io::ErrorKind::IsADirectory {
            let reason = "it is a directory, through which everything on the host could be reached";
            return Error::input("a standard stream", "", reason, "give a file, a pipe or /dev/null");
        }
        Error::Host {
            doing: "could not look at the standard streams",
            source,
        }
    })?;
    let program = request.argv.first().map_or(OsStr::new(""), OsString::as_os_str);
    let candidates = lookup::candidates(program, &environment);
    let accelerated = request.evidence == Evidence::Auto && request.policy.mode() == SandboxMode::WorkspaceWrite;
    let own_state = if accelerated {
        selection.own_state(&request.policy).ok()
    } else {
        None
    };
    let command = CommandSpec {
        // Without one every call that changes files waits: slower, and as exact.
        accelerator: own_state
            .and_then(|state| accelerator::find(&state).ok())
            .filter(|found| {
                !request
                    .policy
                    .writable()
                    .iter()
                    .any(|root| found.library.starts_with(root.path()))
            }),
        argv: request.argv,
        env: environment,
        workdir,
        scratch: scratch.as_ref().map(|scratch| scratch.pinned().clone()),
        stdio: [streams[0].1.clone(), streams[1].1.clone(), streams[2].1.clone()],
        observe: match request.evidence {
            Evidence::Auto => Observe::IfFree,
            Evidence::Strict => Observe::Required,
            Evidence::Off => Observe::No,
        },
        // Only under somebody else's filter can somebody else be watching already.
        log: request.evidence == Evidence::Auto && ringfence_backend::descriptor::is_filtered(),
    };
    let plan = selection.choose(&request.policy, &command, request.backend)?.plan;
    Ok(ExecSpec {
        run_id: request.run_id,
        policy: request.policy,
        command,
        capture: request.capture,
        input: request.input,
        timeout,
        grace,
        backend: request.backend,
        evidence: request.evidence,
        origin: None,
        asked_env: request.env,
        candidates,
        streams,
        plan,
        carried,
        limits: request.limits,
        child_limits,
        _scratch: scratch,
    })
}

fn check_argv(argv: &[OsString]) -> Result<(), Error> {
    let Some(program) = argv.first() else {
        return Err(Error::input(
            "the command",
            "",
            "there is none",
            "name a program after --, or a shell text with -c",
        ));
    };
    if program.is_empty() {
        return Err(Error::CommandNotFound {
            program: program.clone(),
        });
    }
    for (number, arg) in argv.iter().enumerate() {
        if let Some(offset) = arg.as_encoded_bytes().iter().position(|byte| *byte == 0) {
            let reason = format!("it has a NUL byte at offset {offset}");
            return Err(Error::input(
                format!("argument {number}"),
                long::beginning(arg),
                reason,
                "leave the NUL byte out",
            ));
        }
    }
    Ok(())
}

fn times(request: &ExecRequest) -> Result<(Option<Duration>, Duration), Error> {
    for (field, value) in [("--timeout", request.timeout), ("--grace", request.grace)] {
        match value {
            Some(value) if value.is_zero() => return Err(Error::duration(field, value, "it must be positive")),
            Some(value) if value > LONGEST => {
                return Err(Error::duration(field, value, "it is longer than a timer can be"));
            }
            _ => {}
        }
    }
    let timeout = match request.capture {
        Capture::Captured { .. } => Some(request.timeout.unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT)),
        Capture::Passthrough => request.timeout,
    };
    Ok((timeout, request.grace.unwrap_or(DEFAULT_GRACE)))
}

fn workdir(request: &ExecRequest) -> Result<PinnedPath, Error> {
    let root = request.policy.workspace_root();
    let Some(asked) = &request.workdir else {
        return Ok(root.pinned().clone());
    };
    let failed = |source| Error::Workdir {
        path: asked.clone(),
        source,
    };
    let pinned = PinnedPath::open(&root.path().join(asked)).map_err(failed)?;
    if pinned.is_directory() {
        Ok(pinned)
    } else {
        Err(failed(std::io::ErrorKind::NotADirectory.into()))
    }
}
