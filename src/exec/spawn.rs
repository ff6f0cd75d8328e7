//! Starting the command: the one place where a process begins.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use ringfence_backend::{ChildStdio, ExecImage, Launch, LaunchError, Launched, PrepareError, Session, launch};

use super::input::{Pump, Source as InputSource};
use super::output::{SharedStream, Stream};
use super::request::{Capture, Input};
use super::spec::ExecSpec;
use super::spill::{Place, SpillFile};
use super::stdio::Source;
use crate::error::Error;
use crate::evidence::{KernelLog, Supervisor};
use crate::selection::Selection;

/// A command that runs, and the runner's ends of its streams.
#[derive(Debug)]
pub(super) struct Spawned {
    pub(super) process: Launched,
    pub(super) stdin: Option<Pump>,
    pub(super) stdout: Option<SharedStream>,
    pub(super) stderr: Option<SharedStream>,
    pub(super) supervisor: Option<Supervisor>,
    /// What serves when somebody else watches the command, or why it cannot.
    pub(super) log: Option<Result<KernelLog, String>>,
    /// Whether processes are left that the supervisor could hear of.
    pub(super) watching: bool,
}

impl Spawned {
    /// The streams that are captured.
    pub(super) fn streams(&self) -> impl Iterator<Item = &SharedStream> {
        [&self.stdout, &self.stderr].into_iter().flatten()
    }
}

/// Why no command was started.
#[derive(Debug)]
pub(super) enum SpawnError {
    /// The boundary could not be prepared.
    Prepare(PrepareError),
    /// The launch failed.
    Launch(LaunchError),
    /// The request cannot be carried out.
    Refused(Error),
}

impl From<io::Error> for SpawnError {
    fn from(source: io::Error) -> Self {
        Self::Refused(Error::Host {
            doing: "could not prepare the command's streams",
            source,
        })
    }
}

/// Prepares the boundary and starts the command inside it.
///
/// # Errors
/// [`SpawnError`]; the command has then not run.
pub(super) fn spawn(selection: &Selection, spec: &ExecSpec) -> Result<Spawned, SpawnError> {
    let backend = selection.backends().find(|backend| backend.id() == spec.plan().backend);
    let backend = backend.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let boundary = backend.prepare(spec.plan()).map_err(SpawnError::Prepare)?;
    let image = ExecImage::new(spec.candidates().to_vec(), spec.executed(), spec.env()).map_err(|e| {
        let reason = e.to_string();
        SpawnError::Refused(Error::input(e.field, "", reason, "leave the NUL byte out"))
    })?;
    let image = match spec.origin() {
        Some(origin) => image.pinned_to(origin.program),
        None => image,
    };
    let workdir = CString::new(spec.workdir().as_os_str().as_bytes()).map_err(io::Error::from)?;
    let mut ours: [Option<OwnedFd>; 3] = [None, None, None];
    let mut theirs: [Option<OwnedFd>; 3] = [None, None, None];
    let merged = spec.capture().merges();
    for (number, (source, _)) in spec.streams().iter().enumerate() {
        if matches!(source, Source::Pipe) && !(merged && number == 2) {
            let (read, write) = io::pipe()?;
            let (read, write) = (OwnedFd::from(read), OwnedFd::from(write));
            let (mine, command) = if number == 0 { (write, read) } else { (read, write) };
            // Only our end is non-blocking: the command's may be shared with its children.
            fcntl(&mine, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(io::Error::from)?;
            ours[number] = Some(mine);
            theirs[number] = Some(command);
        }
    }
    // Where a device has another name inside, it is opened by that.
    let mut names = [None, None, None];
    for (name, (source, _)) in names.iter_mut().zip(spec.streams()) {
        if let Source::Device(device) = source {
            let path = Path::new(OsStr::from_bytes(device.path.to_bytes()));
            let inside = spec.plan().shown_device(path).unwrap_or(path);
            *name = Some(CString::new(inside.as_os_str().as_bytes()).map_err(io::Error::from)?);
        }
    }
    let pipe_of = |number: usize| &theirs[if merged && number == 2 { 1 } else { number }];
    let child_end = |number: usize| match (&spec.streams()[number].0, pipe_of(number)) {
        (Source::Device(device), _) => ChildStdio::Device {
            path: names[number].as_ref().unwrap_or(&device.path),
            flags: device.flags,
            rdev: device.rdev,
        },
        (_, Some(fd)) => ChildStdio::Fd(fd.as_fd()),
        (_, None) => ChildStdio::Inherit,
    };
    let session = match spec.capture() {
        Capture::Captured { .. } => Session::Own,
        Capture::Passthrough => Session::Callers,
    };
    let launched = Launch {
        session,
        stdio: [child_end(0), child_end(1), child_end(2)],
        workdir: (&workdir, spec.workdir_id()),
        extra: spec.extra(),
        limits: spec.child_limits(),
    };
    let input = match spec.origin().and_then(|origin| origin.input.as_ref()) {
        Some(approved) => Some(InputSource::Bytes(approved.clone())),
        None => input_source(spec.input())?,
    };
    // Before the launch, so that no record is missed.
    let log = spec.wants_log().then(|| KernelLog::open(spec.plan()));
    let mut process = launch(&boundary, &launched, &image).map_err(SpawnError::Launch)?;
    let supervisor = process
        .listener
        .take()
        .map(|listener| Supervisor::new(listener, spec.plan()));
    let mut log = log.filter(|_| supervisor.is_none());
    if let Some(Ok(log)) = &mut log
        && let Some(command) = process.command
    {
        log.follow(command);
    }
    let [stdin, stdout, stderr] = ours;
    let [stdout, stderr] = kept(selection, spec, [stdout, stderr]);
    Ok(Spawned {
        process,
        watching: supervisor.is_some(),
        supervisor,
        log,
        stdin: input.zip(stdin).map(|(source, sink)| Pump::new(source, sink)),
        stdout,
        stderr,
    })
}

/// The streams that are read, each with its limit and the file for what is beyond it.
fn kept(selection: &Selection, spec: &ExecSpec, pipes: [Option<OwnedFd>; 2]) -> [Option<SharedStream>; 2] {
    let Capture::Captured {
        max_stdout,
        max_stderr,
        max_spill,
        ..
    } = spec.capture()
    else {
        return [None, None];
    };
    let place = Arc::new(Place::new(selection.state_dir(), spec.policy(), spec.run_id()));
    let [stdout, stderr] = pipes;
    let stream = |fd: Option<OwnedFd>, name, cap| {
        let spill = SpillFile::new(Arc::clone(&place), name, max_spill);
        fd.map(|fd| SharedStream::new(Stream::new(fd, cap, spill)))
    };
    [
        stream(stdout, "stdout", max_stdout),
        stream(stderr, "stderr", max_stderr),
    ]
}

fn input_source(input: &Input) -> Result<Option<InputSource>, SpawnError> {
    Ok(match input {
        Input::Default => None,
        Input::Bytes(bytes) => Some(InputSource::Bytes(bytes.clone())),
        Input::Callers => Some(InputSource::Callers),
        Input::File(path) => Some(InputSource::File(
            std::fs::File::options()
                .read(true)
                .custom_flags(OFlag::O_NONBLOCK.bits())
                .open(path)
                .and_then(super::input::no_directory)
                .map_err(|source| {
                    SpawnError::Refused(Error::input(
                        "--stdin",
                        path.clone(),
                        format!("it cannot be read: {source}"),
                        "name a file that you may read, or - for standard input",
                    ))
                })?,
        )),
    })
}
