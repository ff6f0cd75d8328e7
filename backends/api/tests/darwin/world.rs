//! A directory of one test's own, with a stand-in, and what runs in it.

use std::ffi::{CString, OsString};
use std::fs;
use std::io::{PipeReader, Read, pipe};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ringfence_backend::darwin::{LaunchError, Launched, Sandbox, Start, start};
use ringfence_backend::descriptor::End;
use ringfence_backend::{ChildLimit, ChildStdio, ExecImage, FileId, PinnedPath, Session};

/// The program that stands between the runner and the command.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_stand-in");
/// What the stand-in is given.
pub(crate) const PROFILE: &str = "(version 1)\n(allow default) ; \"quoted\" $HOME 'x' \\\n";

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct World(PathBuf);

impl Drop for World {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// How a command is started, but for what is the same everywhere.
pub(crate) struct Asked<'a> {
    pub(crate) argv: Vec<&'a str>,
    pub(crate) env: Vec<(&'a str, &'a str)>,
    pub(crate) session: Session,
    pub(crate) stdin: Option<ChildStdio<'a>>,
    pub(crate) workdir_id: Option<FileId>,
    pub(crate) extra: Option<BorrowedFd<'a>>,
    pub(crate) limits: &'a [ChildLimit],
    pub(crate) confined: bool,
    pub(crate) program: &'a Path,
}

/// A shell script in a session of its own.
pub(crate) fn script(text: &str) -> Asked<'_> {
    Asked {
        argv: vec!["sh", "-c", text],
        env: vec![("PATH", "/usr/local/bin:/usr/bin:/bin")],
        session: Session::Own,
        stdin: None,
        workdir_id: None,
        extra: None,
        limits: &[],
        confined: true,
        program: Path::new(PROGRAM),
    }
}

/// A command that was started, and the other ends of its output.
pub(crate) struct Running {
    pub(crate) launched: Launched,
    stdout: PipeReader,
    stderr: PipeReader,
}

/// What came of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) end: Option<End>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) survivors: Option<u32>,
}

impl World {
    pub(crate) fn new() -> Self {
        let name = format!("rf-darwin-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        let world = Self(PinnedPath::open(&path).unwrap().path().to_owned());
        world.stand_in("printf '%s' \"$2\" >\"${0%/*}/profile\"; tr '\\0' '\\n' </proc/$$/environ >\"${0%/*}/environment\"; printf '%s\\n' \"$@\" >\"${0%/*}/words\"; shift 2; exec \"$@\"");
        world
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    /// Puts another script in place of the stand-in.
    pub(crate) fn stand_in(&self, text: &str) {
        let path = self.0.join("sandbox-exec");
        let checked = format!("#!/bin/sh\n[ \"$1\" = -p ] || exit 64\n{text}\n");
        fs::write(&path, checked).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Starts a command in this world.
    pub(crate) fn start(&self, asked: Asked<'_>) -> Result<Running, LaunchError> {
        let words: Vec<OsString> = asked.argv.iter().map(OsString::from).collect();
        let env: Vec<(OsString, OsString)> = asked
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let program = asked.argv[0];
        let candidates = if program.contains('/') {
            vec![program.into()]
        } else {
            vec![format!("/none/{program}").into(), format!("/bin/{program}").into()]
        };
        let image = ExecImage::new(candidates, &words, &env).unwrap();
        let (stdout, out) = pipe().unwrap();
        let (stderr, err) = pipe().unwrap();
        let (out, err): (OwnedFd, OwnedFd) = (out.into(), err.into());
        let null: OwnedFd = fs::File::open("/dev/null").unwrap().into();
        let workdir = CString::new(self.0.as_os_str().as_bytes()).unwrap();
        let pinned = PinnedPath::open(&self.0).unwrap();
        let stdin = asked.stdin.unwrap_or(ChildStdio::Fd(null.as_fd()));
        let sandbox_exec = self.0.join("sandbox-exec");
        let how = Start {
            sandbox: asked.confined.then_some(Sandbox {
                program: &sandbox_exec,
                profile: PROFILE,
            }),
            program: Some(asked.program),
            session: asked.session,
            stdio: &[stdin, ChildStdio::Fd(out.as_fd()), ChildStdio::Fd(err.as_fd())],
            workdir: (&workdir, asked.workdir_id.unwrap_or(pinned.id())),
            extra: asked.extra,
            limits: asked.limits,
        };
        let launched = start(&how, &image)?;
        Ok(Running {
            launched,
            stdout,
            stderr,
        })
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, asked: Asked<'_>) -> Done {
        self.start(asked).unwrap().finish()
    }
}

impl Running {
    /// Waits until no process of the run is left.
    pub(crate) fn finish(self) -> Done {
        let Self {
            mut launched,
            mut stdout,
            mut stderr,
        } = self;
        let texts = [&mut stdout, &mut stderr].map(|stream| {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        });
        await_fd(launched.fd());
        let done = (launched.ended(), launched.survivors());
        assert!(launched.reap(PATIENCE));
        let [stdout, stderr] = texts;
        Done {
            end: done.0,
            stdout,
            stderr,
            survivors: done.1,
        }
    }

    /// The next line of standard output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while self.stdout.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }
}

/// Waits until a descriptor has something, or its other end is gone.
pub(crate) fn await_fd(fd: BorrowedFd<'_>) {
    let timeout = PollTimeout::try_from(PATIENCE).unwrap();
    let ready = poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], timeout).unwrap();
    assert_eq!(ready, 1, "nothing happened for a minute");
}
