//! What is kept of a finished run, so that exactly the same can be run once more.
//!
//! One private file for each run. The environment is kept as names and salted digests: whoever wants the
//! run again has to bring the values, and can be told which of them differ.

mod env;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use ringfence_backend::{BackendId, Door, FileId, PinnedPath, Require, SandboxMode, Temp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;

use crate::bytes::Word;
use crate::facts::Operation;
use crate::state::StateDir;

pub(crate) use env::KeptEnv;

/// The most that a file may have.
const MOST: u64 = 8 << 20;
/// How many runs are kept.
const KEPT: usize = 2_000;
/// One run in so many looks whether there are too many.
const SWEEP_EVERY: u8 = 64;

/// A finished run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeptRun {
    pub(crate) v: u32,
    pub(crate) run: String,
    pub(crate) argv: Vec<Word>,
    /// Whether `argv` has every byte; a very long shell text is not kept.
    pub(crate) whole: bool,
    pub(crate) workdir: Place,
    pub(crate) policy: KeptPolicy,
    pub(crate) env: KeptEnv,
    pub(crate) executable: Option<Executable>,
    pub(crate) input: KeptInput,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) grace_ms: u64,
    pub(crate) backend: Option<BackendId>,
    pub(crate) evidence: String,
    pub(crate) limits: BTreeMap<String, u64>,
    /// The approval it ran under, if it was itself a looser one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<String>,
    pub(crate) outcome: KeptOutcome,
}

/// A path and what it named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) path: Word,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// The parts from which the same policy can be resolved again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeptPolicy {
    pub(crate) mode: SandboxMode,
    pub(crate) root: Place,
    pub(crate) writable: Vec<Place>,
    pub(crate) protected: Vec<Word>,
    pub(crate) temp: Temp,
    pub(crate) closed: BTreeSet<Door>,
    pub(crate) require: Require,
    pub(crate) session: Option<String>,
}

/// A program file and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Executable {
    pub(crate) file: Place,
    pub(crate) size: u64,
    pub(crate) mtime_ns: i64,
    /// The time that whoever writes to the file cannot set back.
    pub(crate) ctime_ns: i64,
}

/// What the command read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(crate) enum KeptInput {
    /// Nothing.
    Nothing,
    /// Whatever its caller's standard input had.
    Callers,
    /// A file.
    File { state: Executable },
    /// Bytes that the caller had in memory.
    Bytes { sha256: String },
    /// Something that cannot be told from another of its name, such as a pipe.
    Unknown,
}

/// How the run ended, for whoever is asked about the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeptOutcome {
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<String>,
    pub(crate) duration_ms: u64,
    pub(crate) evidence: Option<String>,
    pub(crate) denials: Vec<KeptDenial>,
    pub(crate) omitted: u64,
}

/// One kind of denial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeptDenial {
    pub(crate) op: Operation,
    pub(crate) path: Word,
    pub(crate) program: String,
    pub(crate) pid: i32,
    pub(crate) errno: String,
    pub(crate) count: u64,
}

impl Place {
    pub(crate) fn of(pinned: &PinnedPath) -> Self {
        Self::at(pinned.path(), pinned.id())
    }

    pub(crate) fn at(path: &Path, id: FileId) -> Self {
        Self {
            path: path.into(),
            device: id.device,
            inode: id.inode,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.path.0)
    }

    pub(crate) fn is(&self, pinned: &PinnedPath) -> bool {
        self.path() == pinned.path() && (self.device, self.inode) == (pinned.id().device, pinned.id().inode)
    }
}

impl Executable {
    /// The file that a path leads to, as it is now.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let pinned = PinnedPath::open(path)?;
        let about = std::fs::metadata(path)?;
        if (about.dev(), about.ino()) != (pinned.id().device, pinned.id().inode) {
            return Err(io::Error::other("it changes while it is looked at"));
        }
        let time = |seconds: i64, nanoseconds| seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
        Ok(Self {
            file: Place::of(&pinned),
            size: about.size(),
            mtime_ns: time(about.mtime(), about.mtime_nsec()),
            ctime_ns: time(about.ctime(), about.ctime_nsec()),
        })
    }

    /// The first of these that the kernel would execute, taken from `workdir`.
    pub(crate) fn first_of(candidates: &[OsString], workdir: &Path) -> Option<Self> {
        let runs = |path: &PathBuf| {
            let about = std::fs::metadata(path);
            about.is_ok_and(|about| about.is_file() && about.mode() & 0o111 != 0)
        };
        let path = candidates.iter().map(|candidate| workdir.join(candidate)).find(runs)?;
        Self::at(&path).ok()
    }
}

/// The finished runs of a state directory.
#[derive(Debug)]
pub(crate) struct Runs {
    dir: StateDir,
}

impl Runs {
    /// Opens the place, and makes it if it is not there.
    pub(crate) fn of(state: &StateDir) -> io::Result<Self> {
        Ok(Self {
            dir: state.within("runs")?,
        })
    }

    /// Keeps a run.
    pub(crate) fn keep(&self, run: &KeptRun) -> io::Result<()> {
        let bytes = serde_json::to_vec(run)?;
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        let name = file_name(&run.run).ok_or_else(|| io::Error::other("the run's name is no file name"))?;
        // Not renamed into place: half a file is no run, and reading says so.
        self.dir.open_file(name, flags)?.write_all(&bytes)?;
        let [lot] = ringfence_backend::descriptor::random::<1>()?;
        if lot % SWEEP_EVERY == 0 {
            self.sweep();
        }
        Ok(())
    }

    /// The run of this name; nothing when there is none, or none any more.
    pub(crate) fn find(&self, run: &str) -> io::Result<Option<KeptRun>> {
        let Some(name) = file_name(run) else { return Ok(None) };
        let bytes = match self.dir.read_file(name, MOST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let kept: KeptRun = serde_json::from_slice(&bytes)?;
        if kept.v != 1 || kept.run != run {
            return Err(io::Error::other("it is the record of something else"));
        }
        Ok(Some(kept))
    }

    /// The names of runs sort by time, so the first are the oldest.
    fn sweep(&self) {
        let Ok(names) = self.dir.file_names() else { return };
        for name in names.iter().take(names.len().saturating_sub(KEPT)) {
            // Another process may have been quicker.
            let _ = self.dir.remove_file(name);
        }
    }
}

/// The name of a run's file, if the run's name can be one.
fn file_name(run: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (!run.is_empty() && run.len() <= 100 && run.bytes().all(plain)).then(|| format!("{run}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_run_is_no_file() {
        for name in ["", ".", "../audit/x", "a/b", "a.json"] {
            assert_eq!(file_name(name), None, "{name:?}");
        }
        assert_eq!(file_name("019a-b_c").as_deref(), Some("019a-b_c.json"));
    }
}
