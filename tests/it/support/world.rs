//! A fresh directory tree for one case, and the user who lives in it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getegid, geteuid};
use tempfile::TempDir;

use super::Outcome;

/// Where programs are looked for: what every user can run, not what lies in somebody's home.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What lets a workspace be written whatever the mode's roots are, so no world may lie there.
const TEMP_AREA: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

const NOBODY: u32 = 65_534;

/// Longer than any case needs; a run that takes it hangs.
const PATIENCE: Duration = Duration::from_mins(3);

/// As whom a case runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// The user of the harness: root, or whoever started it.
    Caller,
    /// The unprivileged user `nobody`; only root can become it.
    Nobody,
}

impl User {
    /// Every user that the harness can be.
    pub(crate) fn all() -> Vec<Self> {
        if geteuid().is_root() {
            vec![Self::Caller, Self::Nobody]
        } else {
            vec![Self::Caller]
        }
    }
}

/// Runs a test once in a fresh world of each user.
pub(crate) fn for_each_user(test: impl Fn(&World)) {
    for user in User::all() {
        let world = World::new(user);
        eprintln!("--- {user:?} (uid {}) in {}", world.uid(), world.dir.path().display());
        test(&world);
    }
}

/// A workspace, a directory beside it, a home and a state directory, all of one user.
pub(crate) struct World {
    user: User,
    dir: TempDir,
}

impl World {
    /// Makes a fresh world.
    pub(crate) fn new(user: User) -> Self {
        let dir = TempDir::with_prefix_in("ringfence-test-", base()).expect("a fresh directory for the case");
        let world = Self { user, dir };
        open_to_all(world.dir.path());
        for name in ["w", "out", "home", "state", "bin"] {
            let path = world.dir.path().join(name);
            fs::create_dir(&path).unwrap();
            world.own(&path);
        }
        provide(Path::new(env!("CARGO_BIN_EXE_ringfence")), &world.program());
        world
    }

    /// A world of root's. When the harness is not root it says on the terminal that the test was not run.
    pub(crate) fn of_root(test: &str) -> Option<Self> {
        if geteuid().is_root() {
            return Some(Self::new(User::Caller));
        }
        // Written past the capture of the test harness: nothing is left out in silence.
        let _ = writeln!(std::io::stderr(), "NOT RUN, needs root: {test}");
        None
    }

    /// A world of the least privileged user that the harness can be.
    pub(crate) fn anyone() -> Self {
        Self::new(if geteuid().is_root() {
            User::Nobody
        } else {
            User::Caller
        })
    }

    /// The user's id.
    pub(crate) fn uid(&self) -> u32 {
        if self.user == User::Nobody {
            NOBODY
        } else {
            geteuid().as_raw()
        }
    }

    /// The user's group.
    pub(crate) fn gid(&self) -> u32 {
        if self.user == User::Nobody {
            NOBODY
        } else {
            getegid().as_raw()
        }
    }

    /// The program under test, where this world's user can execute it.
    pub(crate) fn program(&self) -> PathBuf {
        self.dir.path().join("bin/ringfence")
    }

    /// This program of tests itself, where this world's user can execute it.
    pub(crate) fn harness(&self) -> PathBuf {
        let copy = self.dir.path().join("bin/it");
        if !copy.exists() {
            provide(&std::env::current_exe().unwrap(), &copy);
        }
        copy
    }

    /// A directory of the harness's own, to which the user has no right but to look: as the system's are.
    pub(crate) fn system(&self) -> PathBuf {
        self.dir.path().join("system")
    }

    /// The workspace.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("w")
    }

    /// A path in the workspace.
    pub(crate) fn inside(&self, path: &str) -> PathBuf {
        self.workspace().join(path)
    }

    /// The directory beside the workspace.
    pub(crate) fn beside(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// A path in the directory beside the workspace.
    pub(crate) fn outside(&self, path: &str) -> PathBuf {
        self.beside().join(path)
    }

    /// The user's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Where the program keeps its state.
    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Replaces `$W`, `$OUT` and `$BIN`.
    pub(crate) fn expand(&self, word: &OsStr) -> OsString {
        let places = [
            ("$W", self.workspace()),
            ("$OUT", self.beside()),
            ("$BIN", self.program()),
        ];
        let mut bytes = word.as_bytes().to_vec();
        for (name, path) in places {
            while let Some(at) = bytes.windows(name.len()).position(|window| window == name.as_bytes()) {
                bytes.splice(at..at + name.len(), path.as_os_str().as_bytes().iter().copied());
            }
        }
        OsString::from_vec(bytes)
    }

    /// A command as the user, in the workspace, in a small environment, without input.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.command_of_harness(program);
        if self.user == User::Nobody {
            // The standard library drops the supplementary groups as well.
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// The same as the user of the harness, for what must stand before the user comes.
    pub(crate) fn command_of_harness(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = process(program);
        command
            .current_dir(self.workspace())
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.home())
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("RINGFENCE_STATE_DIR", self.state())
            .envs(
                [("W", "$W"), ("OUT", "$OUT"), ("BIN", "$BIN")]
                    .map(|(name, value)| (name, self.expand(value.as_ref()))),
            )
            .stdin(Stdio::null());
        command
    }

    /// Starts a command with captured output and waits for it, but not for ever.
    pub(crate) fn outcome(&self, mut command: Command) -> Outcome {
        let shown = format!("{command:?}");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.unwrap_or_else(|error| panic!("could not start {shown}: {error}"));
        let pid = Pid::from_raw(child.id().cast_signed());
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(child.wait_with_output()));
        let Ok(output) = receiver.recv_timeout(PATIENCE) else {
            let _ = kill(pid, Signal::SIGKILL);
            panic!("no answer within {PATIENCE:?} from {shown}");
        };
        Outcome {
            user: self.user,
            output: output.unwrap(),
        }
    }

    /// Runs a bash script in the workspace, unconfined, as the user.
    pub(crate) fn bash(&self, script: &str) -> Outcome {
        let mut command = self.command("bash");
        command.args(["-euc", script]);
        self.outcome(command)
    }

    /// Runs a script that must succeed, and gives what it printed.
    pub(crate) fn prepare(&self, script: &str) -> String {
        let outcome = self.bash(script);
        assert!(
            outcome.output.status.success(),
            "the world could not be prepared by `{script}`:\n{outcome}"
        );
        outcome.stdout()
    }

    /// Starts a bash script that lives until the guard is dropped, and waits until it says `ready`.
    pub(crate) fn neighbour(&self, script: &str) -> Neighbour {
        let mut command = self.command("bash");
        command.args(["-euc", script]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("bash");
        let mut said = [0; 6];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut said)
            .expect("a neighbour that says `ready`");
        assert_eq!(&said, b"ready\n");
        Neighbour(child)
    }

    /// Gives a path to the user.
    fn own(&self, path: &Path) {
        if self.user == User::Nobody {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        open_to_all(path);
    }

    /// A directory of the Rust toolchain's programs that the user can run.
    pub(crate) fn toolchain(&self) -> PathBuf {
        let cargo = std::env::var_os("CARGO").expect("cargo sets CARGO for the tests it runs");
        let own = Path::new(&cargo).parent().unwrap().to_owned();
        if self.user == User::Caller || self.can_run(&own.join("cargo")) {
            return own;
        }
        // It lies in a home that this user cannot enter: show the same files in a place it can.
        let sysroot = own.parent().expect("a toolchain has a bin directory");
        let copy = self.dir.path().join("toolchain");
        for part in ["bin/cargo", "bin/rustc", "lib"] {
            provide(&sysroot.join(part), &copy.join(part));
        }
        copy.join("bin")
    }

    fn can_run(&self, program: &Path) -> bool {
        let mut command = self.command(program);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

/// A process beside the run, killed when the test is done with it.
pub(crate) struct Neighbour(Child);

impl Neighbour {
    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[allow(clippy::disallowed_methods, reason = "the one place where tests start processes")]
fn process(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// The text of a file.
pub(crate) fn text(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names in a directory, sorted.
pub(crate) fn names(path: impl AsRef<Path>) -> Vec<String> {
    let path = path.as_ref();
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A directory for worlds that no temp area covers and that every user can reach.
fn base() -> PathBuf {
    if geteuid().is_root() {
        return PathBuf::from("/var/lib");
    }
    let temp = std::env::temp_dir();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let candidates = [Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR"))), home];
    let fit = candidates
        .into_iter()
        .flatten()
        .find(|path| path.is_dir() && !path.starts_with(&temp) && !TEMP_AREA.iter().any(|area| path.starts_with(area)));
    fit.expect("the target directory or HOME must lie outside the temp area")
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Puts a file or tree at a second place: hard links where the file system allows, else copies.
fn provide(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        open_to_all(to);
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            // The library's source is a component of its own, and not needed.
            if name != "src" {
                provide(&from.join(&name), &to.join(&name));
            }
        }
        return;
    }
    let parent = to.parent().unwrap();
    if !parent.exists() {
        fs::create_dir_all(parent).unwrap();
        open_to_all(parent);
    }
    if fs::hard_link(from, to).is_err() {
        // Another file system, or a file of another user. The copy is made by another process: had this one
        // open for writing what it is about to execute, a child of another thread could keep it busy.
        let copied = process("cp").arg(from).arg(to).status();
        assert!(
            copied.is_ok_and(|status| status.success()),
            "{} could not be copied to {}",
            from.display(),
            to.display()
        );
    }
}
