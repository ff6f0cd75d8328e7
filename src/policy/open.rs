//! Settling the paths that a policy is made from. The one part of it that looks at the disk.

use std::io;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::sys::stat::{SFlag, fstat};
use ringfence_backend::{HOST_TEMP, PinnedPath, Protected, WorkspaceRoot, user_temp};

use super::{Field, PolicyError};

/// Opens a workspace root. A relative path is taken from the directory of this process.
///
/// # Errors
/// [`PolicyError::Unusable`] when it is missing, loops, cannot be reached, or is no directory.
pub fn open_root(path: &Path) -> Result<WorkspaceRoot, PolicyError> {
    WorkspaceRoot::open(path).map_err(|source| unusable(Field::WorkspaceRoot, path, path, source))
}

/// Opens a file or directory that is to be writable. A relative path is taken from `base`, the
/// workspace root.
///
/// # Errors
/// [`PolicyError::Unusable`] when it is missing, loops or cannot be reached;
/// [`PolicyError::Device`] when it is a device; [`PolicyError::LeadsOut`] when a link in the workspace
/// leads out of it.
pub fn open_writable(base: &Path, path: &Path) -> Result<PinnedPath, PolicyError> {
    let full = base.join(path);
    let failed = |source| unusable(Field::WritableRoot, path, &full, source);
    // Joined to the base, an empty path (often an unset variable) would quietly mean the base itself.
    if path.as_os_str().is_empty() {
        return Err(failed(Errno::ENOENT.into()));
    }
    let root = PinnedPath::open(&full).map_err(failed)?;
    let stat = fstat(&root).map_err(|errno| failed(errno.into()))?;
    let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
    if kind == SFlag::S_IFBLK || kind == SFlag::S_IFCHR {
        return Err(PolicyError::Device { path: path.to_owned() });
    }
    stays_in(base, &full, root, Field::WritableRoot)
}

/// Settles a path that is to stay as it is. A relative path is taken from `base`, the workspace root.
/// A link is followed: what it leads to is protected. What does not exist is known by its name.
///
/// # Errors
/// [`PolicyError::Unusable`] when it is empty, loops or cannot be reached.
pub fn open_protected(base: &Path, path: &Path) -> Result<Protected, PolicyError> {
    let full = base.join(path);
    let failed = |source| unusable(Field::ProtectedPath, path, &full, source);
    if path.as_os_str().is_empty() {
        return Err(failed(Errno::ENOENT.into()));
    }
    let (settled, target) = match PinnedPath::open(&full) {
        Ok(target) => (target.path().to_owned(), Some(target)),
        Err(error) if is_absent(&error) => (missing(&full).map_err(failed)?, None),
        Err(error) => return Err(failed(error)),
    };
    let mut above = Vec::new();
    for directory in settled.ancestors().skip(1) {
        match PinnedPath::open(directory) {
            Ok(pinned) => above.push(pinned),
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    above.reverse();
    Ok(Protected {
        linked: full.components().collect::<PathBuf>() != settled,
        path: settled,
        target,
        above,
    })
}

/// Where something that does not exist would stand: beneath the canonical form of what does.
fn missing(full: &Path) -> io::Result<PathBuf> {
    for existing in full.ancestors().skip(1) {
        match PinnedPath::open(existing) {
            Ok(pinned) => {
                let rest = full.strip_prefix(existing).map_err(io::Error::other)?;
                return Ok(pinned.path().join(rest));
            }
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Whether nothing stands at a path. Beneath a file nothing can.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Refuses a path inside the workspace that leads out of it. The link could be the work of a command
/// of an earlier run, which must not choose what a later one may write.
fn stays_in(workspace: &Path, named: &Path, found: PinnedPath, field: Field) -> Result<PinnedPath, PolicyError> {
    let mut plain = PathBuf::new();
    for part in named.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    if plain.starts_with(workspace) && !found.path().starts_with(workspace) {
        let leads = found.path().to_owned();
        return Err(PolicyError::LeadsOut {
            field,
            path: named.to_owned(),
            leads,
        });
    }
    Ok(found)
}

/// The host's temp area: those of `/tmp`, `/var/tmp`, `/dev/shm` (on macOS the user's own directory) and
/// `$TMPDIR` that the caller can reach.
///
/// They are an area and not grants, so one that does not exist, or that the caller may not reach
/// anyhow, is left out. So is a relative `$TMPDIR`: it means another directory in each directory.
///
/// # Errors
/// [`PolicyError::Unusable`] for one that loops or is no directory; [`PolicyError::LeadsOut`] when a
/// link in the workspace `root` leads out of it.
pub fn host_temp(tmpdir: Option<&Path>, root: &Path) -> Result<Vec<PinnedPath>, PolicyError> {
    let named = tmpdir.filter(|path| path.is_absolute());
    let mut area = Vec::new();
    let own = user_temp();
    let known = HOST_TEMP.into_iter().map(Path::new).chain(own.as_deref());
    for path in known.chain(named) {
        match WorkspaceRoot::open(path) {
            Ok(directory) => area.push(stays_in(root, path, directory.pinned().clone(), Field::TempDirectory)?),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
            Err(error) => return Err(unusable(Field::TempDirectory, path, path, error)),
        }
    }
    Ok(area)
}

fn unusable(field: Field, path: &Path, full: &Path, source: io::Error) -> PolicyError {
    PolicyError::Unusable {
        field,
        path: path.to_owned(),
        full: full.to_owned(),
        source,
    }
}
