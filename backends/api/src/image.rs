//! A program ready to be executed.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;

use serde::{Deserialize, Serialize};

/// A program with its arguments and environment, ready for execve(2).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExecImage {
    /// The file that has to be executed, as it was when it was approved; without one, whatever is there.
    pub(crate) pinned: Option<PinnedProgram>,
    pub(crate) candidates: Vec<CString>,
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
}

/// A program file and its state, as fstat(2) tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedProgram {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
    /// `st_size`, in bytes.
    pub size: u64,
    /// `st_mtim`, in nanoseconds since the epoch.
    pub mtime_ns: i128,
    /// `st_ctim`, which whoever writes to the file cannot set back.
    pub ctime_ns: i128,
}

/// A string that no system call can carry.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{field} has a NUL byte at offset {offset}")]
pub struct ImageError {
    /// Which string, in words.
    pub field: String,
    /// The offset of the first NUL byte.
    pub offset: usize,
}

impl ExecImage {
    /// Prepares a program.
    ///
    /// `candidates` are the paths to try, in order, as execvp(3) would.
    ///
    /// # Errors
    /// [`ImageError`] for a NUL byte in any of the strings.
    pub fn new(candidates: Vec<OsString>, argv: &[OsString], env: &[(OsString, OsString)]) -> Result<Self, ImageError> {
        let owned = |field: String, bytes: Vec<u8>| {
            CString::new(bytes).map_err(|e| ImageError {
                field,
                offset: e.nul_position(),
            })
        };
        let argv = argv.iter().enumerate().map(|(i, arg)| {
            let field = if i == 0 {
                "the program's name".to_owned()
            } else {
                format!("argument {i}")
            };
            owned(field, arg.clone().into_vec())
        });
        let env = env.iter().map(|(name, value)| {
            let mut entry = name.clone().into_vec();
            entry.push(b'=');
            entry.extend_from_slice(value.as_encoded_bytes());
            owned(format!("the environment variable {}", name.display()), entry)
        });
        let candidates = candidates
            .into_iter()
            .map(|path| owned("the program's path".to_owned(), path.into_vec()));
        Ok(Self {
            argv: argv.collect::<Result<_, _>>()?,
            env: env.collect::<Result<_, _>>()?,
            candidates: candidates.collect::<Result<_, _>>()?,
            pinned: None,
        })
    }

    /// The same, and nothing is executed but this very file.
    ///
    /// A program in the machine's own format is executed from the descriptor that was looked at. A script
    /// has to be executed by its name, which is looked at directly before.
    #[must_use]
    pub fn pinned_to(self, program: PinnedProgram) -> Self {
        Self {
            pinned: Some(program),
            ..self
        }
    }
}
