//! Opening beneath a directory on Linux: in one step that follows no link and crosses no mount.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2};

/// What a name means for fstatat(2) here.
pub(super) const AS_IT_IS: AtFlags = AtFlags::AT_SYMLINK_NOFOLLOW.union(AtFlags::AT_NO_AUTOMOUNT);

/// For a file that is only looked at.
pub(super) const LOOKED_AT: OFlag = OFlag::O_PATH;

/// Opens what stands under a directory by this path, and on its own mount (openat2(2)).
///
/// # Errors
/// The operating system's; `EXDEV` for another mount.
pub(super) fn open(root: impl AsFd, path: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_XDEV);
    openat2(root, path, how)
}
