//! A path followed by hand, where it matters who follows it.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use ringfence_backend::calls::Final;

use super::caller::{Caller, hidden};
use super::place::{Node, Place, look};

/// How many links a path may lead through (path_resolution(7)).
const MOST_LINKS: usize = 40;
/// How many names are followed in all. No path that is meant needs nearly as many.
const MOST_NAMES: usize = 2000;
/// The inode number of /proc itself (`PROC_ROOT_INO` of the kernel).
const PROC_ROOT: u64 = 1;

/// A path followed one name at a time, each link read and followed as the caller would.
pub(super) struct Walk<'a> {
    caller: &'a Caller,
    root: OwnedFd,
    links: usize,
}

impl<'a> Walk<'a> {
    /// Follows paths as `caller` would, whose root is `root`.
    pub(super) const fn new(caller: &'a Caller, root: OwnedFd) -> Self {
        Self { caller, root, links: 0 }
    }

    /// Where `path` leads from `base`.
    ///
    /// # Errors
    /// What the kernel would say of the path.
    pub(super) fn run(mut self, base: OwnedFd, path: &[u8], last: Final) -> Result<Place, Errno> {
        let mut at = if path[0] == b'/' {
            self.root.try_clone().map_err(|_| Errno::EMFILE)?
        } else {
            base
        };
        let mut rest: Vec<Vec<u8>> = names(path);
        let mut followed = 0;
        while let Some(name) = rest.pop() {
            followed += 1;
            if followed > MOST_NAMES {
                return Err(Errno::ENFILE);
            }
            let is_last = rest.is_empty();
            if name == b"." || name == b".." {
                if name == b".." && !self.is_root(&at)? {
                    at = directory(&at, b"..")?;
                }
                if is_last {
                    let node = Node::new(directory(&at, b".")?)?;
                    return Ok(Place {
                        parent: at,
                        name,
                        node: Some(node),
                        slash: false,
                    });
                }
                continue;
            }
            let node = look(&at, &name).map_err(|errno| if in_proc(&at) { hidden(errno) } else { errno })?;
            let link = node.as_ref().is_some_and(|node| node.kind() == SFlag::S_IFLNK);
            if link && (!is_last || last == Final::Follow) {
                self.links += 1;
                if self.links > MOST_LINKS {
                    return Err(Errno::ELOOP);
                }
                match self.follow(&at, &name)? {
                    Followed::Text(text) => {
                        if text.first() == Some(&b'/') {
                            at = self.root.try_clone().map_err(|_| Errno::EMFILE)?;
                        }
                        rest.extend(names(&text));
                        if rest.is_empty() {
                            rest.push(b".".to_vec());
                        }
                    }
                    Followed::Jump(fd) if is_last => {
                        let node = Node::new(fd)?;
                        return Ok(Place {
                            parent: at,
                            name,
                            node: Some(node),
                            slash: false,
                        });
                    }
                    Followed::Jump(fd) => at = fd,
                }
                continue;
            }
            if is_last {
                return Ok(Place {
                    parent: at,
                    name,
                    node,
                    slash: false,
                });
            }
            at = match node {
                Some(node) if node.kind() == SFlag::S_IFDIR => node.fd,
                Some(_) => return Err(Errno::ENOTDIR),
                None => return Err(Errno::ENOENT),
            };
        }
        let node = Node::new(directory(&at, b".")?)?;
        Ok(Place {
            parent: at,
            name: b".".to_vec(),
            node: Some(node),
            slash: false,
        })
    }

    fn is_root(&self, at: &OwnedFd) -> Result<bool, Errno> {
        let (here, root) = (fstat(at)?, fstat(&self.root)?);
        Ok((here.st_dev, here.st_ino) == (root.st_dev, root.st_ino))
    }

    /// Reads a link. Those of /proc mean something else to each process that follows them.
    fn follow(&self, parent: &OwnedFd, name: &[u8]) -> Result<Followed, Errno> {
        let in_proc = in_proc(parent);
        if in_proc && fstat(parent)?.st_ino == PROC_ROOT {
            if matches!(name, b"self" | b"thread-self") {
                let (process, thread) = self.caller.numbers_in(parent);
                return Ok(Followed::Text(match name {
                    b"self" => process.into_bytes(),
                    _ => format!("{process}/task/{thread}").into_bytes(),
                }));
            }
        } else if in_proc {
            // A magic link leads to the very object, whatever its text says.
            let fd = openat(
                parent,
                OsStr::from_bytes(name),
                OFlag::O_PATH | OFlag::O_CLOEXEC,
                Mode::empty(),
            )
            .map_err(hidden)?;
            return Ok(Followed::Jump(fd));
        }
        Ok(Followed::Text(readlinkat(parent, OsStr::from_bytes(name))?.into_vec()))
    }
}

enum Followed {
    Text(Vec<u8>),
    Jump(OwnedFd),
}

/// The names of a path, the last one first.
fn names(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|byte| *byte == b'/')
        .rev()
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

fn in_proc(directory: &OwnedFd) -> bool {
    fstatfs(directory).is_ok_and(|about| about.filesystem_type() == PROC_SUPER_MAGIC)
}

fn directory(at: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    openat(
        at,
        OsStr::from_bytes(name),
        OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
        Mode::empty(),
    )
}
