//! The question put to the host: a confined shell tries to change what it must not, and afterwards the
//! disk is looked at. What the shell says of itself does not count.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ringfence_backend::darwin::{LaunchError, Sandbox, Start, start};
use ringfence_backend::{ChildStdio, Coverage, Effect, ExecImage, PinnedPath, Session};

use crate::profile::{self, Named, Rules};

/// How long the shell may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the shell tries. `out` must stay as it is, `in` may change, but for `in/a/locked`.
const ATTEMPTS: &str = r"
echo x >out/new
echo x >>out/content
true >out/cut
rm -f out/removed
mv out/renamed in/renamed
mv in/brought out/brought
mkdir out/directory
ln -s x out/symlink
ln in/brought out/link
mkfifo out/fifo
rm -f in/alias; ln out/linked in/alias && echo x >>in/alias
chmod 0777 out/mode
touch -t 200001010000 out/times
echo x >>in/a/locked/content
true >in/a/locked/new
chmod 0777 in/a/locked/content
ln in/a/locked/content in/alias2 && echo x >>in/alias2
mv in/a/locked in/unlocked && echo x >>in/unlocked/content
mv in/a in/b && echo x >>in/b/locked/content
echo x >in/written
mkdir in/made
mv in/moved in/made/moved
ln in/made/moved in/linked
";

/// Files outside, each for one attempt.
const FILES: [&str; 6] = ["content", "cut", "removed", "renamed", "linked", "mode"];
/// What every file holds at first.
const TEXT: &str = "as it was\n";

/// Tries the boundary, and tells what it governs.
///
/// `program` is the program that calls [`enter`](ringfence_backend::darwin::enter); this one, when it is not
/// said.
///
/// # Errors
/// Why it cannot be used, in a sentence.
pub fn trial(sandbox_exec: &Path, program: Option<&Path>) -> Result<Coverage, String> {
    let world = World::make().map_err(|error| format!("no place for a trial could be made: {error}"))?;
    world.run(sandbox_exec, program)?;
    if !world.inside_changed() {
        return Err("under a profile of its own, a trial could not change what it may change".to_owned());
    }
    let open = world
        .open()
        .map_err(|error| format!("a trial could not be looked at: {error}"))?;
    if open.contains(&Effect::Content) || open.contains(&Effect::Tree) {
        return Err("a trial changed files that its profile keeps as they are".to_owned());
    }
    // Devices, requests to them and other processes are not tried: nothing harmless would prove them.
    let tried = [
        Effect::Content,
        Effect::Tree,
        Effect::Truncate,
        Effect::Metadata,
        Effect::ProtectedPaths,
    ];
    let coverage = tried.into_iter().fold(Coverage::none(), |sum, effect| {
        sum.with(effect, !open.contains(&effect))
    });
    // The launcher closes them, and nothing starts when it cannot.
    Ok(coverage.with(Effect::InheritedDescriptors, true))
}

/// A directory for one trial.
struct World {
    _made: tempfile::TempDir,
    top: PinnedPath,
    before: Vec<(PathBuf, Metadata)>,
}

impl World {
    fn make() -> io::Result<Self> {
        let made = tempfile::Builder::new().prefix("rf-trial-").tempdir()?;
        let top = PinnedPath::open(made.path())?;
        for directory in ["out", "in", "in/a", "in/a/locked"] {
            fs::create_dir(top.path().join(directory))?;
        }
        let outside = FILES.iter().chain(&["times"]).map(|name| format!("out/{name}"));
        for name in outside.chain(["in/brought", "in/moved", "in/a/locked/content"].map(str::to_owned)) {
            let path = top.path().join(name);
            fs::write(&path, TEXT)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        }
        let mut world = Self {
            _made: made,
            top,
            before: Vec::new(),
        };
        world.before = world.kept()?;
        Ok(world)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// The profile of the trial.
    fn profile(&self) -> Result<String, String> {
        let (inside, above, locked) = (self.path("in"), self.path("in/a"), self.path("in/a/locked"));
        let named = |path| Named { field: "trial", path };
        let rules = Rules {
            trees: vec![named(&inside)],
            protected: vec![named(&locked)],
            held: vec![named(&above)],
            ..Rules::default()
        };
        profile::text(&rules).map_err(|named| format!("{} has a name for no profile", named.path.display()))
    }

    /// Runs the shell to its end.
    fn run(&self, sandbox_exec: &Path, program: Option<&Path>) -> Result<(), String> {
        let unprepared = |error: &dyn std::error::Error| format!("a trial could not be prepared: {error}");
        let profile = self.profile()?;
        let words: Vec<OsString> = ["sh", "-c", ATTEMPTS].map(OsString::from).into();
        let path = (OsString::from("PATH"), OsString::from("/usr/bin:/bin:/usr/sbin:/sbin"));
        let image = ExecImage::new(vec!["/bin/sh".into()], &words, &[path]).map_err(|error| unprepared(&error))?;
        let null = File::options().read(true).write(true).open("/dev/null");
        let null: OwnedFd = null.map_err(|error| unprepared(&error))?.into();
        let stream = || ChildStdio::Fd(null.as_fd());
        let workdir = CString::new(OsStr::as_bytes(self.top.path().as_os_str())).map_err(|error| unprepared(&error))?;
        let mut launched = start(
            &Start {
                sandbox: Some(Sandbox {
                    program: sandbox_exec,
                    profile: &profile,
                }),
                program,
                session: Session::Own,
                stdio: &[stream(), stream(), stream()],
                workdir: (&workdir, self.top.id()),
                extra: None,
                limits: &[],
            },
            &image,
        )
        .map_err(|error| match error {
            LaunchError::Vanished { words } => format!("sandbox-exec refused a trial: {}", words.trim()),
            other => other.to_string(),
        })?;
        let timeout = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::MAX);
        loop {
            match poll(&mut [PollFd::new(launched.fd(), PollFlags::POLLIN)], timeout) {
                Ok(1..) => break,
                Err(Errno::EINTR) => {}
                _ => return Err("a trial did not end".to_owned()),
            }
        }
        launched.reap(PATIENCE);
        Ok(())
    }

    /// Whether everything that may change did.
    fn inside_changed(&self) -> bool {
        let there = |name| self.path(name).exists();
        there("in/written") && there("in/made/moved") && there("in/linked") && !there("in/moved")
    }

    /// What stands outside and under protection, and what is known of it.
    fn kept(&self) -> io::Result<Vec<(PathBuf, Metadata)>> {
        let mut all = Vec::new();
        for directory in ["out", "in/a/locked"] {
            // A directory that was carried away has nothing in it.
            let entries = match fs::read_dir(self.path(directory)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            for entry in entries {
                let path = entry?.path();
                all.push((path.clone(), fs::symlink_metadata(&path)?));
            }
        }
        all.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(all)
    }

    /// What was not governed.
    fn open(&self) -> io::Result<BTreeSet<Effect>> {
        let mut open = BTreeSet::new();
        let protected = |path: &Path| path.starts_with(self.path("in"));
        let now = self.kept()?;
        let names = |all: &[(PathBuf, Metadata)]| -> BTreeSet<PathBuf> { all.iter().map(|it| it.0.clone()).collect() };
        for path in names(&now).symmetric_difference(&names(&self.before)) {
            let effect = match path.file_name().and_then(OsStr::to_str) {
                _ if protected(path) => Effect::ProtectedPaths,
                Some("new") => Effect::Content,
                _ => Effect::Tree,
            };
            open.insert(effect);
        }
        for (path, before) in &self.before {
            let Some((_, after)) = now.iter().find(|it| it.0 == *path) else {
                continue;
            };
            let cut = path.ends_with("cut");
            let written = !cut && fs::read(path)? != TEXT.as_bytes();
            let metadata = before.mode() != after.mode()
                || before.nlink() != after.nlink()
                || !written && !cut && before.mtime() != after.mtime();
            let changes = [
                (cut && after.size() != before.size(), Effect::Truncate),
                (written, Effect::Content),
                (metadata, Effect::Metadata),
            ];
            for (_, effect) in changes.into_iter().filter(|(changed, _)| *changed) {
                open.insert(if protected(path) {
                    Effect::ProtectedPaths
                } else {
                    effect
                });
            }
        }
        Ok(open)
    }
}
