//! The directory of one run's spill files, made when the first of them is.

use std::fs::{File, TryLockError};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use ringfence_backend::SandboxExecutionPolicy;

use super::budget;
use crate::facts::Spill;
use crate::state::StateDir;

/// Where the directories of all runs are, in the state directory.
const OUTPUT: &str = "output";

/// A run's place for spill files.
#[derive(Debug)]
pub(in crate::exec) struct Place {
    state_dir: Option<PathBuf>,
    policy: SandboxExecutionPolicy,
    run_id: String,
    made: OnceLock<Result<Made, Spill>>,
}

/// The run's directory, open and locked: nobody removes it while this is held.
#[derive(Debug)]
struct Made {
    directory: File,
    path: PathBuf,
}

impl Place {
    /// A place in this state directory, for a run of this name and policy. Nothing is made yet.
    pub(in crate::exec) fn new(state_dir: Option<&Path>, policy: &SandboxExecutionPolicy, run_id: &str) -> Self {
        Self {
            state_dir: state_dir.map(Path::to_owned),
            policy: policy.clone(),
            run_id: run_id.to_owned(),
            made: OnceLock::new(),
        }
    }

    /// Makes a new file, for its owner alone.
    ///
    /// Its name is new in a directory that nobody else may enter, so it is made under that name at
    /// once: a file without a name, linked later, would hide nothing from anybody.
    ///
    /// # Errors
    /// What the report is to say.
    pub(super) fn create(&self, name: &str) -> Result<File, Spill> {
        let made = self.made.get_or_init(|| self.make()).as_ref().map_err(Clone::clone)?;
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        openat(&made.directory, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)
            .map(File::from)
            .map_err(|errno| Spill::failed(0, errno))
    }

    /// Where a file that was made is.
    pub(super) fn path_of(&self, name: &str) -> Option<PathBuf> {
        let made = self.made.get()?.as_ref().ok()?;
        Some(made.path.join(name))
    }

    fn make(&self) -> Result<Made, Spill> {
        let absent = |reason: &str| Spill::Absent {
            reason: reason.to_owned(),
        };
        let state_dir = self.state_dir.as_deref();
        let state_dir = state_dir.ok_or_else(|| absent("no state directory is known"))?;
        let output = state_dir.join(OUTPUT);
        let within = |root: &Path| root.starts_with(&output) || output.starts_with(root);
        if self.policy.writable().iter().any(|root| within(root.path())) {
            return Err(absent("the state directory lies where this run works"));
        }
        let mut parts = Path::new(&self.run_id).components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
            return Err(absent("the run's name is no file name"));
        }
        let state = StateDir::open(state_dir, Some(&self.policy)).map_err(|reason| absent(&reason))?;
        let all = enter(&state, OUTPUT, true)?;
        budget::sweep(&all);
        let directory = enter(&all, &self.run_id, false)?;
        // Taken before there is a file in it, and an empty directory is not swept so soon.
        match directory.try_lock() {
            // Whoever holds it already keeps it from being removed as well.
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(Spill::of(&error)),
        }
        Ok(Made {
            directory,
            path: output.join(&self.run_id),
        })
    }
}

/// Makes a directory of the owner's alone, which may be there already if `shared`, and opens it.
fn enter(parent: impl AsFd, name: &str, shared: bool) -> Result<File, Spill> {
    match mkdirat(&parent, name, Mode::S_IRWXU) {
        Err(Errno::EEXIST) if shared => {}
        other => other.map_err(|errno| Spill::failed(0, errno))?,
    }
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = openat(parent, name, flags, Mode::empty()).map_err(|errno| Spill::failed(0, errno))?;
    let directory = File::from(directory);
    let about = directory.metadata().map_err(|error| Spill::of(&error))?;
    if about.uid() != nix::unistd::geteuid().as_raw() || about.mode() & 0o022 != 0 {
        let reason = "the directory for spill files belongs to, or may be written by, somebody else".to_owned();
        return Err(Spill::Absent { reason });
    }
    Ok(directory)
}
