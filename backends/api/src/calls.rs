//! The calls that change files, and how each names what it changes.
//!
//! One table for both sides: the filter that makes these calls wait, and the supervisor that
//! looks at those that do.

use libc::c_long;

/// Call numbers that the `libc` crate does not name yet; the same on every architecture
/// (linux/unistd.h).
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const FILE_SETATTR: c_long = 469;
const OPEN_TREE_ATTR: c_long = 467;

/// Where a call's path begins: a directory descriptor in an argument, or the working directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The working directory.
    Cwd,
    /// The descriptor in this argument; `AT_FDCWD` there means the working directory.
    Arg(u8),
}

/// A path in a call: where it begins, and which argument points to its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathArg {
    /// Where it begins.
    pub from: From,
    /// The argument with the address of the text.
    pub text: u8,
}

/// Which argument holds a call's flags, if any does.
pub type FlagsArg = Option<u8>;

/// Whether a final link is followed when no flag says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Final {
    /// The link's target is meant.
    Follow,
    /// The link itself is meant.
    Stay,
}

/// What kind of metadata a call changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metadata {
    /// Mode bits.
    Mode,
    /// Owner and group, in this argument and the next.
    Owner(u8),
    /// Times: the argument that points to them, null for "now".
    Times(u8),
    /// The extended attribute whose name this argument points to.
    Attribute(u8),
    /// Inode flags.
    Flags,
}

/// What a call does, and to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Opens a path with the flags in an argument (open(2)).
    Open(PathArg, u8),
    /// Opens with `struct open_how` behind an argument (openat2(2)).
    OpenHow(PathArg, u8),
    /// creat(2).
    Creat(PathArg),
    /// Makes a directory.
    MakeDirectory(PathArg),
    /// Makes a node of the mode in an argument.
    MakeNode(PathArg, u8),
    /// Makes a symbolic link at the path.
    MakeLink(PathArg),
    /// Makes a second name for a file.
    Link(PathArg, PathArg, FlagsArg),
    /// Removes a name; with `AT_REMOVEDIR` in the flags, a directory.
    Unlink(PathArg, FlagsArg),
    /// Removes a directory.
    RemoveDirectory(PathArg),
    /// Renames.
    Rename(PathArg, PathArg, FlagsArg),
    /// Cuts or extends a file.
    Truncate(PathArg),
    /// Changes metadata of what a path names.
    PathMetadata(Metadata, PathArg, Final, FlagsArg),
    /// Changes metadata of what a descriptor refers to.
    FdMetadata(Metadata, u8),
    /// bind(2): a socket of the `AF_UNIX` family makes a node. The arguments with the address and
    /// its length.
    Bind(u8, u8),
    /// ioctl(2): only some requests change an inode.
    Ioctl,
    /// Mounts, unmounts, or changes mounts, which nobody may; the path named is where.
    Mount(Option<PathArg>),
}

const fn cwd(text: u8) -> PathArg {
    PathArg { from: From::Cwd, text }
}

const fn at(directory: u8, text: u8) -> PathArg {
    PathArg {
        from: From::Arg(directory),
        text,
    }
}

/// ioctl(2) requests that change an inode: `FS_IOC_SETFLAGS`, its 32-bit form,
/// `FS_IOC_SETVERSION`, `FS_IOC_FSSETXATTR` (linux/fs.h).
pub const INODE_REQUESTS: [u32; 4] = [0x4008_6602, 0x4004_6602, 0x4008_7602, 0x401c_5820];

#[allow(clippy::too_many_lines, reason = "one row a call")]
/// Every call that changes files, by number.
#[must_use]
pub fn table() -> Vec<(c_long, Call)> {
    use Final::{Follow, Stay};
    let mut table = vec![
        (libc::SYS_openat, Call::Open(at(0, 1), 2)),
        (libc::SYS_openat2, Call::OpenHow(at(0, 1), 2)),
        (libc::SYS_mkdirat, Call::MakeDirectory(at(0, 1))),
        (libc::SYS_mknodat, Call::MakeNode(at(0, 1), 2)),
        (libc::SYS_symlinkat, Call::MakeLink(at(1, 2))),
        (libc::SYS_linkat, Call::Link(at(0, 1), at(2, 3), Some(4))),
        (libc::SYS_unlinkat, Call::Unlink(at(0, 1), Some(2))),
        (libc::SYS_renameat2, Call::Rename(at(0, 1), at(2, 3), Some(4))),
        (libc::SYS_renameat, Call::Rename(at(0, 1), at(2, 3), None)),
        (libc::SYS_truncate, Call::Truncate(cwd(0))),
        (libc::SYS_fchmod, Call::FdMetadata(Metadata::Mode, 0)),
        (
            libc::SYS_fchmodat,
            Call::PathMetadata(Metadata::Mode, at(0, 1), Follow, None),
        ),
        (FCHMODAT2, Call::PathMetadata(Metadata::Mode, at(0, 1), Follow, Some(3))),
        (libc::SYS_fchown, Call::FdMetadata(Metadata::Owner(1), 0)),
        (
            libc::SYS_fchownat,
            Call::PathMetadata(Metadata::Owner(2), at(0, 1), Follow, Some(4)),
        ),
        (
            libc::SYS_utimensat,
            Call::PathMetadata(Metadata::Times(2), at(0, 1), Follow, Some(3)),
        ),
        (
            libc::SYS_setxattr,
            Call::PathMetadata(Metadata::Attribute(1), cwd(0), Follow, None),
        ),
        (
            libc::SYS_lsetxattr,
            Call::PathMetadata(Metadata::Attribute(1), cwd(0), Stay, None),
        ),
        (libc::SYS_fsetxattr, Call::FdMetadata(Metadata::Attribute(1), 0)),
        (
            SETXATTRAT,
            Call::PathMetadata(Metadata::Attribute(3), at(0, 1), Follow, Some(2)),
        ),
        (
            libc::SYS_removexattr,
            Call::PathMetadata(Metadata::Attribute(1), cwd(0), Follow, None),
        ),
        (
            libc::SYS_lremovexattr,
            Call::PathMetadata(Metadata::Attribute(1), cwd(0), Stay, None),
        ),
        (libc::SYS_fremovexattr, Call::FdMetadata(Metadata::Attribute(1), 0)),
        (
            REMOVEXATTRAT,
            Call::PathMetadata(Metadata::Attribute(3), at(0, 1), Follow, Some(2)),
        ),
        (
            FILE_SETATTR,
            Call::PathMetadata(Metadata::Flags, at(0, 1), Follow, Some(4)),
        ),
        (libc::SYS_bind, Call::Bind(1, 2)),
        (libc::SYS_ioctl, Call::Ioctl),
        (libc::SYS_mount, Call::Mount(Some(cwd(1)))),
        (libc::SYS_umount2, Call::Mount(Some(cwd(0)))),
        (libc::SYS_fsopen, Call::Mount(None)),
        (libc::SYS_fsconfig, Call::Mount(None)),
        (libc::SYS_fspick, Call::Mount(Some(at(0, 1)))),
        (libc::SYS_fsmount, Call::Mount(None)),
        (libc::SYS_open_tree, Call::Mount(Some(at(0, 1)))),
        (OPEN_TREE_ATTR, Call::Mount(Some(at(0, 1)))),
        (libc::SYS_move_mount, Call::Mount(Some(at(2, 3)))),
        (libc::SYS_mount_setattr, Call::Mount(Some(at(0, 1)))),
        (libc::SYS_pivot_root, Call::Mount(Some(cwd(0)))),
    ];
    #[cfg(target_arch = "x86_64")]
    table.extend([
        (libc::SYS_open, Call::Open(cwd(0), 1)),
        (libc::SYS_creat, Call::Creat(cwd(0))),
        (libc::SYS_mkdir, Call::MakeDirectory(cwd(0))),
        (libc::SYS_mknod, Call::MakeNode(cwd(0), 1)),
        (libc::SYS_symlink, Call::MakeLink(cwd(1))),
        (libc::SYS_link, Call::Link(cwd(0), cwd(1), None)),
        (libc::SYS_unlink, Call::Unlink(cwd(0), None)),
        (libc::SYS_rmdir, Call::RemoveDirectory(cwd(0))),
        (libc::SYS_rename, Call::Rename(cwd(0), cwd(1), None)),
        (
            libc::SYS_chmod,
            Call::PathMetadata(Metadata::Mode, cwd(0), Follow, None),
        ),
        (
            libc::SYS_chown,
            Call::PathMetadata(Metadata::Owner(1), cwd(0), Follow, None),
        ),
        (
            libc::SYS_lchown,
            Call::PathMetadata(Metadata::Owner(1), cwd(0), Stay, None),
        ),
        (
            libc::SYS_utime,
            Call::PathMetadata(Metadata::Times(1), cwd(0), Follow, None),
        ),
        (
            libc::SYS_utimes,
            Call::PathMetadata(Metadata::Times(1), cwd(0), Follow, None),
        ),
        (
            libc::SYS_futimesat,
            Call::PathMetadata(Metadata::Times(2), at(0, 1), Follow, None),
        ),
    ]);
    table
}

impl Call {
    /// Whether the call changes metadata only, whatever it names.
    #[must_use]
    pub const fn is_metadata(self) -> bool {
        matches!(self, Self::PathMetadata(..) | Self::FdMetadata(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_listed_twice() {
        let mut numbers: Vec<_> = table().into_iter().map(|(number, _)| number).collect();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn all_metadata_calls_are_there() {
        assert_eq!(table().iter().filter(|(_, call)| call.is_metadata()).count(), 21);
    }
}
