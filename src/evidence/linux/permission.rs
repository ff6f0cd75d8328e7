//! What the system itself would say to this user, were there no confinement.

use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::SFlag;
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{AccessFlags, faccessat, geteuid, getgroups};

use super::place::{Node, Place};

pub(super) fn is_root() -> bool {
    geteuid().is_root()
}

pub(super) fn owns(node: &Node) -> bool {
    is_root() || node.stat.st_uid == geteuid().as_raw()
}

/// Whether mode bits let this user at a file. A read-only mount does not count: it is looked at
/// after the mode bits, and ours is what is in question.
pub(super) fn may(node: &Node, access: AccessFlags) -> bool {
    matches!(
        faccessat(&node.fd, c"", access, AtFlags::AT_EACCESS | AtFlags::AT_EMPTY_PATH),
        Ok(()) | Err(Errno::EROFS)
    )
}

/// Whether names in the directory of a place may change. In one that was removed nothing does.
pub(super) fn may_change(place: &Place) -> bool {
    let access = AccessFlags::W_OK | AccessFlags::X_OK;
    let gone = nix::sys::stat::fstat(&place.parent).is_ok_and(|parent| parent.st_nlink == 0);
    !gone
        && matches!(
            faccessat(&place.parent, c"", access, AtFlags::AT_EACCESS | AtFlags::AT_EMPTY_PATH),
            Ok(()) | Err(Errno::EROFS)
        )
}

/// Whether this name may go: from a sticky directory only its owner takes it (inode(7)).
pub(super) fn may_remove(place: &Place, node: &Node) -> bool {
    let sticky = nix::sys::stat::fstat(&place.parent)
        .is_ok_and(|parent| parent.st_mode & nix::libc::S_ISVTX != 0 && parent.st_uid != geteuid().as_raw());
    may_change(place) && (!sticky || owns(node))
}

pub(super) fn same_device(node: &Node, new: &Place) -> bool {
    nix::sys::stat::fstat(&new.parent).is_ok_and(|parent| parent.st_dev == node.stat.st_dev)
}

/// The kernel takes the low half of an id's argument.
#[allow(clippy::cast_possible_truncation, reason = "as the kernel does")]
const fn group_id(argument: u64) -> u32 {
    argument as u32
}

/// chown(2): only root gives files away; an owner may choose among their own groups.
pub(super) fn may_give(node: &Node, user: u64, group: u64) -> bool {
    let same = |wanted: u64, now: u32| wanted & 0xffff_ffff == 0xffff_ffff || wanted & 0xffff_ffff == u64::from(now);
    let mine = || {
        let own = nix::unistd::getegid().as_raw();
        own == group_id(group) || getgroups().is_ok_and(|groups| groups.iter().any(|g| g.as_raw() == group_id(group)))
    };
    is_root() || (owns(node) && same(user, node.stat.st_uid) && (same(group, node.stat.st_gid) || mine()))
}

pub(super) fn is_empty(node: &Node) -> bool {
    let listing = nix::dir::Dir::openat(
        &node.fd,
        c".",
        OFlag::O_RDONLY | OFlag::O_DIRECTORY,
        nix::sys::stat::Mode::empty(),
    );
    listing.is_ok_and(|mut listing| listing.iter().take(3).count() <= 2)
}

/// Whether the host itself has the file system of a path read-only.
pub(super) fn host_is_read_only(path: &Path) -> bool {
    let existing = path.ancestors().find_map(|path| statvfs(path).ok());
    existing.is_some_and(|about| about.flags().contains(FsFlags::ST_RDONLY))
}

/// Whether a place's last name is `.` or `..`, which nothing removes or renames.
pub(super) fn is_dots(place: &Place) -> bool {
    matches!(place.name.as_slice(), b"." | b"..")
}

/// Whether rename(2) can put one over the other, mode bits apart.
pub(super) fn may_replace(node: &Node, there: &Node) -> bool {
    match (node.kind() == SFlag::S_IFDIR, there.kind() == SFlag::S_IFDIR) {
        (true, true) => is_empty(there),
        (directory, other) => directory == other,
    }
}

/// Whether this user may change an attribute of that name (xattr(7)).
pub(super) fn may_set(node: &Node, name: &[u8]) -> bool {
    let is = |space: &[u8]| name.starts_with(space) && name.len() > space.len();
    let plain = matches!(node.kind(), SFlag::S_IFREG | SFlag::S_IFDIR);
    (is(b"user.") && plain && may(node, AccessFlags::W_OK))
        || (is(b"system.posix_acl_") && owns(node))
        || (is_root() && (is(b"trusted.") || is(b"security.")))
}
