//! Which directory a session was made in, whatever stands under its name later.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::UNIX_EPOCH;

use ringfence_backend::WorkspaceRoot;

/// What tells a directory from one that takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `st_dev` of stat(2).
    pub device: u64,
    /// `st_ino` of stat(2).
    pub inode: u64,
    /// When it was made, in nanoseconds since 1970, where the file system keeps that. A file system may give the
    /// inode number of a directory that was removed to the next one.
    pub born: Option<u64>,
}

impl Identity {
    /// The identity of a directory that is held open.
    pub(super) fn of(root: &WorkspaceRoot) -> io::Result<Self> {
        let id = root.pinned().id();
        Ok(Self {
            device: id.device,
            inode: id.inode,
            born: born(root)?,
        })
    }

    /// Whether this is the directory that was noted down as `noted`.
    pub(super) fn is_still(&self, noted: &Self) -> bool {
        let born = self.born.is_none() || noted.born.is_none() || self.born == noted.born;
        (self.device, self.inode) == (noted.device, noted.inode) && born
    }
}

fn born(root: &WorkspaceRoot) -> io::Result<Option<u64>> {
    if !is_lasting(root) {
        return Ok(None);
    }
    let held = File::from(root.pinned().as_fd().try_clone_to_owned()?);
    let since = held.metadata()?.created().ok();
    let since = since.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(since.and_then(|time| u64::try_from(time.as_nanos()).ok()))
}

/// Whether a directory's time of birth stays. On an overlay it changes when the directory is first
/// written to and copied up.
#[cfg(target_os = "linux")]
fn is_lasting(root: &WorkspaceRoot) -> bool {
    use nix::sys::statfs::{OVERLAYFS_SUPER_MAGIC, fstatfs};
    fstatfs(root.pinned()).is_ok_and(|about| about.filesystem_type() != OVERLAYFS_SUPER_MAGIC)
}

/// Whether a directory's time of birth stays.
#[cfg(not(target_os = "linux"))]
fn is_lasting(_root: &WorkspaceRoot) -> bool {
    true
}
