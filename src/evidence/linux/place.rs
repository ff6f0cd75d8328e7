//! What was found at the end of a path, or would be.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlink};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, stat};

/// Where a path leads: a name in a directory, and what stands there, if anything does.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) parent: OwnedFd,
    pub(super) name: Vec<u8>,
    pub(super) node: Option<Node>,
    /// Whether the path ended in a slash.
    pub(super) slash: bool,
}

/// A file that was found.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) fd: OwnedFd,
    pub(super) stat: FileStat,
}

impl Node {
    pub(super) fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let stat = fstat(&fd)?;
        Ok(Self { fd, stat })
    }

    /// The kind of file, one of the `S_IF*` constants.
    pub(super) fn kind(&self) -> SFlag {
        SFlag::from_bits_truncate(self.stat.st_mode) & SFlag::S_IFMT
    }

    /// Where it stands.
    pub(super) fn path(&self) -> Where {
        const GONE: &[u8] = b" (deleted)";
        let Some(path) = path_of(&self.fd) else {
            return Where::Unknown;
        };
        let text = path.as_os_str().as_bytes();
        if !path.is_absolute() || NAMELESS.iter().any(|kind| text.starts_with(kind)) {
            return Where::Nowhere;
        }
        match text.strip_suffix(GONE) {
            Some(before) if stat(&path).map_or(true, |there| there.st_ino != self.stat.st_ino) => {
                Where::At(PathBuf::from(OsStr::from_bytes(before)))
            }
            _ => Where::At(path),
        }
    }
}

/// How the kernel writes files that no directory ever held.
const NAMELESS: [&[u8]; 2] = [b"/memfd:", b"/SYSV"];

/// Where a file stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// At this absolute path; if it was removed, there it stood.
    At(PathBuf),
    /// In no directory: a pipe, a socket, memory.
    Nowhere,
    /// The kernel does not tell: the path is longer than a path can be.
    Unknown,
}

impl Place {
    /// Where it is, whether or not anything stands there.
    pub(super) fn path(&self) -> Where {
        match &self.node {
            Some(node) => node.path(),
            None => path_of(&self.parent).map_or(Where::Unknown, |parent| {
                Where::At(parent.join(OsStr::from_bytes(&self.name)))
            }),
        }
    }
}

fn path_of(fd: &OwnedFd) -> Option<PathBuf> {
    readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()).as_str())
        .ok()
        .map(PathBuf::from)
}

/// What stands under a name; a link itself, if it is one.
pub(super) fn look(parent: &OwnedFd, name: &[u8]) -> Result<Option<Node>, Errno> {
    match openat(
        parent,
        OsStr::from_bytes(name),
        OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
        Mode::empty(),
    ) {
        Ok(fd) => Node::new(fd).map(Some),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}
