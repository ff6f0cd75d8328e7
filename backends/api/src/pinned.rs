//! Paths that are settled once: canonicalised, opened, and known by what they are.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};

/// A file's identity on this host while it exists: device and inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// `st_dev` of stat(2).
    pub device: u64,
    /// `st_ino` of stat(2).
    pub inode: u64,
}

impl FileId {
    /// The identity in a stat(2) record.
    #[must_use]
    #[allow(
        clippy::unnecessary_cast,
        reason = "the types of st_dev and st_ino differ between systems"
    )]
    pub const fn of(stat: &FileStat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
        }
    }
}

/// A path that was canonicalised once and opened once.
///
/// The operating system's realpath decides what the path means (so `link/..` is the parent of the
/// link's target), the descriptor keeps that object, and [`FileId`] tells it from whatever may
/// stand under the same name later.
#[derive(Clone)]
pub struct PinnedPath {
    path: PathBuf,
    id: FileId,
    directory: bool,
    fd: Arc<OwnedFd>,
}

impl PinnedPath {
    /// Canonicalises `path` and opens what it names, without reading it.
    ///
    /// # Errors
    /// The operating system's: the path is missing, loops, or cannot be reached.
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the one room where paths are canonicalised"
    )]
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if is_canonical(path) {
            path.to_owned()
        } else {
            std::fs::canonicalize(path)?
        };
        #[cfg(target_os = "linux")]
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        #[cfg(not(target_os = "linux"))]
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let fd = open(&path, flags, Mode::empty())?;
        let stat = fstat(&fd)?;
        let directory = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
        Ok(Self {
            path,
            id: FileId::of(&stat),
            directory,
            fd: Arc::new(fd),
        })
    }

    /// The canonical, absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the path named when it was opened.
    #[must_use]
    pub const fn id(&self) -> FileId {
        self.id
    }

    /// Whether it is a directory.
    #[must_use]
    pub const fn is_directory(&self) -> bool {
        self.directory
    }

    /// Whether this path is `other` or lies beneath it.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.path.starts_with(&other.path)
    }
}

/// Whether a path is its own realpath: absolute, in its plainest form, and without a link. One call
/// to the kernel answers that for most paths; where it cannot, realpath does.
#[cfg(target_os = "linux")]
fn is_canonical(path: &Path) -> bool {
    use nix::fcntl::{AT_FDCWD, OpenHow, ResolveFlag, openat2};
    use std::os::unix::ffi::OsStrExt;
    let plain: PathBuf = path.components().collect();
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    path.is_absolute()
        && plain.as_os_str().as_bytes() == path.as_os_str().as_bytes()
        && !path.components().any(|part| part == std::path::Component::ParentDir)
        && openat2(AT_FDCWD, path, how).is_ok()
}

#[cfg(not(target_os = "linux"))]
const fn is_canonical(_: &Path) -> bool {
    false
}

impl AsFd for PinnedPath {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl PartialEq for PinnedPath {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path && self.id == other.id
    }
}

impl Eq for PinnedPath {}

impl fmt::Debug for PinnedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

/// The directory that a run belongs to: confined, entered, and never exchanged for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceRoot(PinnedPath);

impl WorkspaceRoot {
    /// Canonicalises and opens a directory.
    ///
    /// # Errors
    /// The operating system's, or `ENOTDIR` for anything but a directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let pinned = PinnedPath::open(path)?;
        if pinned.is_directory() {
            Ok(Self(pinned))
        } else {
            Err(nix::errno::Errno::ENOTDIR.into())
        }
    }

    /// The pinned directory.
    #[must_use]
    pub const fn pinned(&self) -> &PinnedPath {
        &self.0
    }

    /// The canonical, absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
