//! Where bubblewrap is looked for.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Directories of the system's, in which nobody but its administrator puts programs. The caller's PATH is
/// not asked: a program of that name in a workspace must not be started unconfined.
const DIRECTORIES: [&str; 5] = [
    "/usr/bin",
    "/bin",
    "/usr/local/bin",
    "/run/wrappers/bin",
    "/run/current-system/sw/bin",
];

/// The program.
///
/// # Errors
/// Where it was looked for, in a sentence.
pub(crate) fn find() -> Result<PathBuf, String> {
    let mut doubtful = None;
    for path in DIRECTORIES.map(|directory| Path::new(directory).join("bwrap")) {
        let Ok(about) = std::fs::metadata(&path) else { continue };
        if about.is_file() && about.uid() == 0 && about.mode() & 0o022 == 0 {
            return Ok(path);
        }
        doubtful.get_or_insert(path);
    }
    Err(match doubtful {
        Some(path) => format!("{} does not belong to root alone, so it is not started", path.display()),
        None => format!(
            "bubblewrap is not installed; it was looked for as bwrap in {}",
            DIRECTORIES.join(", ")
        ),
    })
}

/// What tells this program from one that is put in its place later.
pub(crate) fn identity(program: &Path) -> Option<String> {
    let about = std::fs::metadata(program).ok()?;
    let (size, changed) = (about.size(), (about.ctime(), about.ctime_nsec()));
    Some(format!(
        "{}:{}:{size}:{}.{}",
        about.dev(),
        about.ino(),
        changed.0,
        changed.1
    ))
}
