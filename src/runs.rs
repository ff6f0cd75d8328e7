//! What is kept of a finished run, so that exactly the same can be run once more.
//!
//! One private file for each run. The environment is kept as names and salted digests: whoever wants the
//! run again has to bring the values, and can be told which of them differ.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use ringfence_backend::{BackendId, Door, FileId, PinnedPath, Require, SandboxMode, Temp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;

use crate::bytes::Word;
use crate::facts::Operation;
use crate::state::StateDir;

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

/// The environment, without its values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeptEnv {
    salt: String,
    vars: Vec<(Word, String)>,
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

impl KeptEnv {
    /// Keeps an environment.
    pub(crate) fn of(vars: &[(OsString, OsString)]) -> io::Result<Self> {
        let salt = hex(&ringfence_backend::descriptor::random::<16>()?);
        let vars = vars
            .iter()
            .map(|(name, value)| (Word(name.clone()), digest(&salt, name, value)))
            .collect();
        Ok(Self { salt, vars })
    }

    /// The same environment, each value taken from the first of `sources` that has the one that it was.
    ///
    /// # Errors
    /// The names of the variables that no source has as they were.
    pub(crate) fn restore(
        &self,
        sources: &[&[(OsString, OsString)]],
    ) -> Result<Vec<(OsString, OsString)>, Vec<OsString>> {
        let mut missing = Vec::new();
        let mut vars = Vec::new();
        for (Word(name), meant) in &self.vars {
            let known = sources
                .iter()
                .flat_map(|source| source.iter())
                .filter(|(it, _)| it == name);
            match known
                .map(|(_, value)| value)
                .find(|value| digest(&self.salt, name, value) == *meant)
            {
                Some(value) => vars.push((name.clone(), value.clone())),
                None => missing.push(name.clone()),
            }
        }
        if missing.is_empty() { Ok(vars) } else { Err(missing) }
    }
}

fn digest(salt: &str, name: &OsStr, value: &OsStr) -> String {
    let mut hash = Sha256::new();
    for part in [salt.as_bytes(), name.as_bytes(), value.as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    // Half of it is as good against a slip, and the record is half as long.
    hex(&hash.finalize()[..16])
}

/// The SHA-256 digest of some bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
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

    fn vars(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn an_environment_is_kept_without_its_values_and_restored_from_those_who_have_them() {
        let kept = KeptEnv::of(&vars(&[("A", "first"), ("TOKEN", "hunter2")])).unwrap();
        assert!(!serde_json::to_string(&kept).unwrap().contains("hunter2"));
        let (given, callers) = (
            vars(&[("TOKEN", "hunter2")]),
            vars(&[("A", "first"), ("TOKEN", "other")]),
        );
        assert_eq!(
            kept.restore(&[&given, &callers]).unwrap(),
            vars(&[("A", "first"), ("TOKEN", "hunter2")])
        );
        assert_eq!(kept.restore(&[&callers]).unwrap_err(), ["TOKEN"]);
    }

    #[test]
    fn a_name_that_is_no_run_is_no_file() {
        for name in ["", ".", "../audit/x", "a/b", "a.json"] {
            assert_eq!(file_name(name), None, "{name:?}");
        }
        assert_eq!(file_name("019a-b_c").as_deref(), Some("019a-b_c.json"));
    }
}
