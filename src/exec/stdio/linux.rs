//! What a descriptor leads to, as /proc shows it.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Whether a pipe has no name in any directory.
pub(super) fn is_anonymous(fd: BorrowedFd<'_>) -> bool {
    link(fd).is_some_and(|text| text.as_bytes().starts_with(b"pipe:"))
}

/// The name that something was opened by.
pub(super) fn name(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    link(fd).map(PathBuf::from)
}

fn link(fd: BorrowedFd<'_>) -> Option<OsString> {
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    nix::fcntl::readlink(link.as_str()).ok()
}
