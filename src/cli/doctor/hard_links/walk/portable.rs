//! Opening beneath a directory where one call cannot do it: name by name, following no link.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstat};

/// What a name means for fstatat(2) here.
pub(super) const AS_IT_IS: AtFlags = AtFlags::AT_SYMLINK_NOFOLLOW;

/// For a file that is only looked at; one that is a pipe by now is not waited for.
pub(super) const LOOKED_AT: OFlag = OFlag::O_NONBLOCK;

/// Opens what stands under a directory by this path, and on its own file system.
///
/// # Errors
/// The operating system's; `EXDEV` for another file system.
pub(super) fn open(root: impl AsFd, path: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
    let device = fstat(&root)?.st_dev;
    let step = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut at = openat(&root, ".", step | OFlag::O_DIRECTORY, Mode::empty())?;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_some() {
            OFlag::O_DIRECTORY
        } else {
            flags
        };
        at = openat(&at, part.as_os_str(), step | flags, Mode::empty())?;
    }
    if fstat(&at)?.st_dev == device {
        Ok(at)
    } else {
        Err(Errno::EXDEV)
    }
}
