//! What a descriptor leads to, as fcntl(2) tells it.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use nix::fcntl::{FcntlArg, fcntl};

/// Whether a pipe has no name in any directory.
pub(super) fn is_anonymous(fd: BorrowedFd<'_>) -> bool {
    name(fd).is_none()
}

/// The name of what is open.
pub(super) fn name(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    fcntl(fd, FcntlArg::F_GETPATH(&mut path)).ok()?;
    Some(path)
}
