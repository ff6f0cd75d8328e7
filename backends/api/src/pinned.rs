//! Paths that are settled once: canonicalised, opened, and known by what they are.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::OFlag;
use nix::sys::stat::{FileStat, SFlag, fstat};

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
        clippy::cast_sign_loss,
        reason = "the types of st_dev and st_ino differ between systems, and only sameness matters"
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
    pub fn open(path: &Path) -> io::Result<Self> {
        let (path, fd) = settle(path)?;
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

/// How often a path that changes while it is looked at is looked at again.
#[cfg(target_os = "linux")]
const PATIENCE: usize = 8;

/// A path in its canonical form, and what it names: opened without following a link, so that the
/// path leads to the descriptor and to nothing else. Most paths are canonical and take one call.
#[cfg(target_os = "linux")]
#[allow(
    clippy::disallowed_methods,
    reason = "this is the one room where paths are canonicalised"
)]
fn settle(path: &Path) -> io::Result<(PathBuf, OwnedFd)> {
    use nix::errno::Errno;
    use nix::fcntl::{AT_FDCWD, OpenHow, ResolveFlag, openat2};
    use std::os::unix::ffi::OsStrExt;
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    let plain: PathBuf = path.components().collect();
    let no_dots = !path.components().any(|part| part == std::path::Component::ParentDir);
    let canonical = path.is_absolute() && no_dots && plain.as_os_str().as_bytes() == path.as_os_str().as_bytes();
    if canonical && let Ok(fd) = openat2(AT_FDCWD, path, how) {
        return Ok((plain, fd));
    }
    for _ in 0..PATIENCE {
        let real = std::fs::canonicalize(path)?;
        match openat2(AT_FDCWD, &real, how) {
            Ok(fd) => return Ok((real, fd)),
            // A directory on the way was exchanged for a link since.
            Err(Errno::ELOOP | Errno::ENOENT | Errno::ENOTDIR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(Errno::ELOOP.into())
}

/// A path in its canonical form, and what it names. The kernel tells the name of what was opened: with
/// the letters that stand on the disk, and without links of any kind, firmlinks included.
#[cfg(target_os = "macos")]
fn settle(path: &Path) -> io::Result<(PathBuf, OwnedFd)> {
    use nix::fcntl::{FcntlArg, fcntl};
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let fd = nix::fcntl::open(path, flags, nix::sys::stat::Mode::empty())?;
    let mut real = PathBuf::new();
    fcntl(&fd, FcntlArg::F_GETPATH(&mut real))?;
    Ok((real, fd))
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
