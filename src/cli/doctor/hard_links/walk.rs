//! A walk through a tree that counts the names of each file.
//!
//! Every directory is opened beneath the root so that no link is followed and no mount crossed: nothing
//! that changes meanwhile leads out.

#[cfg(target_os = "linux")]
#[path = "walk/linux.rs"]
mod beneath;
#[cfg(not(target_os = "linux"))]
#[path = "walk/portable.rs"]
mod beneath;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{FileStat, SFlag, fstat, fstatat};
use ringfence::WorkspaceRoot;
use ringfence_backend::FileId;

/// How far a walk goes.
pub(super) struct Bounds {
    /// How many names are looked at.
    pub(super) names: usize,
    /// How long it may take.
    pub(super) time: Duration,
}

/// Which bound ended a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Names,
    Time,
}

/// What was found. Paths are from the root of the walk.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Regular files with more names than were found.
    pub(super) linked: Vec<Linked>,
    /// What could not be looked at.
    pub(super) unread: Vec<Unread>,
    /// What ended the walk before its end.
    pub(super) cut: Option<Cut>,
}

/// A file of which some names were not found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Linked {
    /// The first of its names that was found.
    pub(super) path: PathBuf,
    /// How many names it has.
    pub(super) links: u64,
    /// How many were found.
    pub(super) inside: u64,
    /// Its size.
    pub(super) bytes: u64,
}

/// A place that could not be looked at.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unread {
    pub(super) path: PathBuf,
    pub(super) reason: String,
}

/// A walk under way.
struct Walker<'a> {
    root: &'a WorkspaceRoot,
    names: usize,
    bounds: &'a Bounds,
    end: Instant,
    directories: Vec<PathBuf>,
    files: HashMap<FileId, Linked>,
    unread: Vec<Unread>,
}

/// Looks at every name beneath a directory, as far as the bounds allow.
pub(super) fn walk(root: &WorkspaceRoot, bounds: &Bounds) -> Walk {
    let mut walker = Walker {
        root,
        names: 0,
        bounds,
        end: Instant::now() + bounds.time,
        directories: vec![PathBuf::new()],
        files: HashMap::new(),
        unread: Vec::new(),
    };
    let mut cut = None;
    while cut.is_none()
        && let Some(directory) = walker.directories.pop()
    {
        cut = walker.directory(&directory);
    }
    let linked = walker.files.into_values().filter(|file| file.links > file.inside);
    Walk {
        linked: linked.collect(),
        unread: walker.unread,
        cut,
    }
}

impl Walker<'_> {
    fn directory(&mut self, path: &Path) -> Option<Cut> {
        let opened = self
            .open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)
            .and_then(Dir::from_fd);
        let mut directory = match opened {
            Ok(directory) => directory,
            Err(errno) => {
                self.leave(path, errno);
                return None;
            }
        };
        // A copy, because the iterator holds the directory itself.
        let fd = match directory.as_fd().try_clone_to_owned() {
            Ok(fd) => fd,
            Err(error) => {
                self.unread.push(Unread {
                    path: path.to_owned(),
                    reason: error.to_string(),
                });
                return None;
            }
        };
        for entry in directory.iter() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(errno) => {
                    self.leave(path, errno);
                    return None;
                }
            };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if self.names == self.bounds.names {
                return Some(Cut::Names);
            }
            if Instant::now() >= self.end {
                return Some(Cut::Time);
            }
            self.names += 1;
            match entry.file_type() {
                Some(Type::Directory) => self.directories.push(path.join(name)),
                Some(Type::File) | None => self.look(path, name, &fd),
                Some(_) => {}
            }
        }
        None
    }

    /// Looks at a name that may be that of a file.
    fn look(&mut self, directory: &Path, name: &OsStr, fd: &OwnedFd) {
        let stat = match fstatat(fd, name, beneath::AS_IT_IS) {
            Ok(stat) => stat,
            Err(errno) => return self.leave(&directory.join(name), errno),
        };
        match kind(&stat) {
            SFlag::S_IFDIR => self.directories.push(directory.join(name)),
            SFlag::S_IFREG if stat.st_nlink > 1 => self.count(directory.join(name)),
            _ => {}
        }
    }

    /// Counts a name of a file that has several. A file that is mounted here has its name elsewhere.
    fn count(&mut self, path: PathBuf) {
        let stat = match self.open(&path, beneath::LOOKED_AT).and_then(fstat) {
            Ok(stat) => stat,
            Err(errno) => return self.leave(&path, errno),
        };
        if kind(&stat) == SFlag::S_IFREG {
            let file = self.files.entry(FileId::of(&stat)).or_insert_with(|| Linked {
                path,
                links: 0,
                inside: 0,
                bytes: u64::try_from(stat.st_size).unwrap_or_default(),
            });
            // The newest count is the one to compare with.
            file.links = links(&stat);
            file.inside += 1;
        }
    }

    /// Opens what stands under the root by this path, and on its own mount.
    fn open(&self, path: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        beneath::open(self.root.pinned(), path, flags)
    }

    fn leave(&mut self, path: &Path, errno: Errno) {
        let reason = match errno {
            // Removed since its name was read.
            Errno::ENOENT => return,
            Errno::EXDEV => "another file system is mounted here".to_owned(),
            other => other.desc().to_owned(),
        };
        self.unread.push(Unread {
            path: path.to_owned(),
            reason,
        });
    }
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_lossless,
    reason = "the type of st_nlink differs between systems"
)]
const fn links(stat: &FileStat) -> u64 {
    stat.st_nlink as u64
}

#[cfg(test)]
mod tests;
