//! One run: a policy and a command, all the way through the backend to the end.

use std::collections::BTreeSet;
use std::ffi::{CString, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::sys::stat::stat;

use super::ended::{Ended, Started};
use super::{Bench, said};
use crate::{
    ChildLimit, ChildStdio, CommandSpec, Door, ExecImage, HOST_TEMP, HostSupport, Launch, LaunchError, LaunchPlan,
    Observe, PinnedPath, PolicyParts, Protected, Require, SandboxExecutionPolicy, SandboxMode, Session, StdioKind,
    Temp, WorkspaceRoot, launch,
};

/// What every script begins with: attempts, and what came of each, on a line of its own.
const PRELUDE: &str = "\
import ctypes, errno, fcntl, os, socket, stat, sys
D, H = os.environ.get('D'), os.environ.get('H')
libc = ctypes.CDLL(None, use_errno=True)
def checked(result):
    if result < 0: raise OSError(ctypes.get_errno(), '')
def attempt(name, what, *words, **more):
    try:
        what(*words, **more)
        print(name, 'done', sep='=', flush=True)
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, error.errno), sep='=', flush=True)
";

/// A run that is described before it happens.
#[derive(Debug)]
pub(super) struct Run<'a> {
    bench: &'a Bench<'a>,
    pub(super) mode: SandboxMode,
    temp: Temp,
    roots: Vec<PinnedPath>,
    pub(super) protected: Vec<Protected>,
    closed: BTreeSet<Door>,
    pub(super) observe: Observe,
    pub(super) candidates: Vec<OsString>,
    pub(super) argv: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) workdir: PinnedPath,
    pub(super) limits: Vec<ChildLimit>,
    pub(super) session: Session,
    pub(super) extra: Option<OwnedFd>,
}

/// Opens a path once and for all.
pub(super) fn pin(path: &Path) -> Result<PinnedPath, String> {
    said(path.display(), PinnedPath::open(path))
}

impl<'a> Run<'a> {
    /// A run under a mode, without a temp area, in the workspace.
    pub(super) fn new(bench: &'a Bench<'a>, mode: SandboxMode) -> Result<Self, String> {
        let workspace = pin(&bench.workspace())?;
        Ok(Self {
            bench,
            mode,
            temp: Temp::None,
            roots: if mode == SandboxMode::WorkspaceWrite {
                vec![workspace.clone()]
            } else {
                Vec::new()
            },
            protected: Vec::new(),
            closed: BTreeSet::new(),
            observe: Observe::No,
            candidates: Vec::new(),
            argv: Vec::new(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            workdir: workspace,
            limits: Vec::new(),
            session: Session::Own,
            extra: None,
        })
    }

    /// One that may write the workspace.
    pub(super) fn writing(bench: &'a Bench<'a>) -> Result<Self, String> {
        Self::new(bench, SandboxMode::WorkspaceWrite)
    }

    /// The temp area.
    pub(super) fn temp(mut self, temp: Temp) -> Result<Self, String> {
        self.temp = temp;
        if temp == Temp::Host && self.mode == SandboxMode::WorkspaceWrite {
            for area in HOST_TEMP {
                self.roots.push(pin(Path::new(area))?);
            }
        }
        Ok(self)
    }

    /// One root more.
    pub(super) fn root(mut self, path: &Path) -> Result<Self, String> {
        self.roots.push(pin(path)?);
        Ok(self)
    }

    /// A path that stays as it is.
    pub(super) fn protect(mut self, path: &Path) -> Result<Self, String> {
        let mut above = path.ancestors().skip(1).map(pin).collect::<Result<Vec<_>, _>>()?;
        above.reverse();
        self.protected.push(Protected {
            path: path.to_owned(),
            target: Some(pin(path)?),
            above,
            linked: false,
        });
        Ok(self)
    }

    /// A closed door.
    pub(super) fn closed(mut self, door: Door) -> Self {
        self.closed.insert(door);
        self
    }

    /// A variable of the command's.
    pub(super) fn env(mut self, name: &str, value: &Path) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The command: words whose first is the program's path.
    pub(super) fn argv<S: Into<OsString>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.argv = words.into_iter().map(Into::into).collect();
        self.candidates = self.argv.first().cloned().into_iter().collect();
        self
    }

    /// The command: a script for sh(1).
    pub(super) fn shell(self, script: &str) -> Self {
        self.argv(["/bin/sh", "-c", script])
    }

    /// The command: a script of attempts.
    pub(super) fn attempts(self, script: &str) -> Self {
        let script = format!("{PRELUDE}{script}");
        self.argv(["/usr/bin/python3", "-I", "-S", "-B", "-c", &script])
    }

    /// The same, on the files of one directory and what another holds for them.
    pub(super) fn attempts_on(self, directory: &Path, home: &Path, script: &str) -> Self {
        self.env("D", directory).env("H", home).attempts(script)
    }

    /// The command as a plan has to know it.
    pub(super) fn command(&self) -> Result<CommandSpec, String> {
        let private = self.temp == Temp::Private;
        Ok(CommandSpec {
            argv: self.argv.clone(),
            env: self.env.clone(),
            workdir: self.workdir.clone(),
            scratch: if private {
                Some(pin(&self.bench.scratch())?)
            } else {
                None
            },
            stdio: [
                StdioKind::Device("/dev/null".into()),
                StdioKind::Stream,
                StdioKind::Stream,
            ],
            observe: self.observe,
            log: false,
            accelerator: None,
        })
    }

    fn policy(&self) -> Result<SandboxExecutionPolicy, String> {
        let workspace = self.bench.workspace();
        let parts = PolicyParts {
            mode: self.mode,
            workspace_root: said(workspace.display(), WorkspaceRoot::open(&workspace))?,
            writable: self.roots.clone(),
            protected: self.protected.clone(),
            temp: self.temp,
            closed: self.closed.clone(),
            require: Require::Partial,
            session: None,
        };
        SandboxExecutionPolicy::seal(parts).map_err(|error| error.to_string())
    }

    /// What the backend means to do.
    pub(super) fn plan(&self) -> Result<LaunchPlan, String> {
        self.plan_with(&self.command()?)
    }

    /// The same for a command that differs.
    pub(super) fn plan_with(&self, spec: &CommandSpec) -> Result<LaunchPlan, String> {
        let bench = self.bench;
        let plan = bench.backend.plan(&bench.host, &self.policy()?, spec);
        plan.map_err(|error| error.to_string())
    }

    /// The same for a host that gives something else.
    pub(super) fn plan_on(&self, host: &HostSupport) -> Result<LaunchPlan, String> {
        let plan = self.bench.backend.plan(host, &self.policy()?, &self.command()?);
        plan.map_err(|error| error.to_string())
    }

    /// Starts it.
    pub(super) fn start(&self) -> Result<Started, String> {
        self.try_start()?
            .map_err(|error| format!("it was not started: {error}"))
    }

    /// Starts it, or says why the launch failed.
    pub(super) fn try_start(&self) -> Result<Result<Started, LaunchError>, String> {
        let plan = self.plan()?;
        let prepared = self.bench.backend.prepare(&plan).map_err(|error| error.to_string())?;
        let image =
            ExecImage::new(self.candidates.clone(), &self.argv, &self.env).map_err(|error| error.to_string())?;
        let workdir = said(
            "the working directory",
            CString::new(self.workdir.path().as_os_str().as_bytes()),
        )?;
        let (stdout, theirs) = said("a pipe", nix::unistd::pipe2(OFlag::O_CLOEXEC))?;
        let (stderr, complaints) = said("a pipe", nix::unistd::pipe2(OFlag::O_CLOEXEC))?;
        let order = Launch {
            session: self.session,
            stdio: [
                ChildStdio::Device {
                    path: c"/dev/null",
                    flags: OFlag::O_RDONLY,
                    rdev: said("/dev/null", stat("/dev/null"))?.st_rdev,
                },
                ChildStdio::Fd(theirs.as_fd()),
                ChildStdio::Fd(complaints.as_fd()),
            ],
            workdir: (&workdir, self.workdir.id()),
            extra: self.extra.as_ref().map(AsFd::as_fd),
            limits: &self.limits,
        };
        Ok(launch(&prepared, &order, &image).map(|launched| Started::new(launched, plan, [stdout, stderr])))
    }

    /// Runs it to its end.
    pub(super) fn finish(&self) -> Result<Ended, String> {
        self.start()?.finish()
    }
}
