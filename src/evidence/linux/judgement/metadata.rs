//! Calls that change metadata, and those that mount.

use std::os::fd::AsFd;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::stat::SFlag;
use nix::unistd::AccessFlags;
use ringfence_backend::calls::{Call, Final, Metadata, PathArg};
use ringfence_backend::descriptor;

use super::{Attempt, EMPTY_PATH, demand, seen};
use crate::evidence::linux::bounds::{Refusal, Step, Verdict};
use crate::evidence::linux::emulate;
use crate::evidence::linux::permission::{is_root, may, may_give, may_set, owns};
use crate::evidence::linux::place::{Node, Where};
use crate::facts::Operation;

/// `XATTR_NAME_MAX` (linux/limits.h).
const LONGEST_NAME: usize = 255;
/// `XATTR_CREATE` and `XATTR_REPLACE` (setxattr(2)).
const CREATE: u64 = 1;
const REPLACE: u64 = 2;

impl Attempt<'_> {
    /// Makes a change of metadata for the caller, if the call is one: judged and made on one and the
    /// same file. Such a call never goes on by itself, whatever is wrong with it.
    pub(super) fn emulate(&self, call: Call) -> Option<Verdict> {
        let (kind, argument, node) = match call {
            Call::PathMetadata(kind, path, last, flags) => {
                (kind, path.text + 1, self.named(path, last, self.flags(flags)))
            }
            Call::FdMetadata(kind, fd) => (kind, fd + 1, self.descriptor(self.arg(fd))),
            Call::Ioctl => (Metadata::Flags, 1, self.descriptor(self.arg(0))),
            _ => return None,
        };
        let node = match node {
            Ok(node) => node,
            Err(Verdict::Unseen) => return Some(Verdict::Unseen),
            // What could not be found cannot be changed; which of its errors it was is lost.
            Err(_) => return Some(Verdict::Made(Err(Errno::ENOENT))),
        };
        match self.metadata(kind, &node) {
            Ok(refused @ Verdict::Refuse(_)) => return Some(refused),
            Err(Verdict::Unseen) => return Some(Verdict::Unseen),
            _ => {}
        }
        let inside = self.bounds.holds(&node.path());
        if inside
            && kind == Metadata::Flags
            && let Where::At(path) = node.path()
        {
            // Made for nobody, wherever it is.
            return Some(Verdict::Refuse(Refusal {
                op: Operation::Flags,
                path,
                errno: Errno::EOPNOTSUPP,
            }));
        }
        if inside
            && node.kind() == SFlag::S_IFLNK
            && let Call::PathMetadata(_, path, ..) = call
        {
            return Some(Verdict::Made(self.change_link(kind, path)));
        }
        let made = if !inside || !emulate::has_our_rights(self.caller) {
            Err(Errno::EPERM)
        } else {
            emulate::change(kind, argument, self.call, self.caller, &node)
        };
        Some(Verdict::Made(made))
    }

    /// Changes a link itself: by its name, in the directory that was judged, which it cannot leave.
    fn change_link(&self, kind: Metadata, path: PathArg) -> Result<(), Errno> {
        let Ok(place) = self.place(path, Final::Stay) else {
            return Err(Errno::ENOENT);
        };
        if !self.bounds.holds(&place.path()) || !emulate::has_our_rights(self.caller) {
            return Err(Errno::EPERM);
        }
        emulate::change_link(kind, self.call, self.caller, &place)
    }

    pub(super) fn metadata(&self, kind: Metadata, node: &Node) -> Step<Verdict> {
        let op = match kind {
            Metadata::Mode => {
                demand(owns(node))?;
                Operation::Chmod
            }
            Metadata::Owner(user) => {
                demand(may_give(node, self.arg(user), self.arg(user + 1)))?;
                Operation::Chown
            }
            Metadata::Times(times) => {
                demand(emulate::sets_times(self.call.number, self.arg(times), self.caller))?;
                demand(owns(node) || (self.arg(times) == 0 && may(node, AccessFlags::W_OK)))?;
                Operation::Utime
            }
            Metadata::Attribute(argument) => {
                let name = seen(self.caller.text(self.arg(argument)))?;
                demand(name.len() <= LONGEST_NAME && may_set(node, &name))?;
                let there = descriptor::has_attribute(node.fd.as_fd(), &name);
                let flags = if emulate::removes(self.call.number) {
                    REPLACE
                } else {
                    emulate::attribute_flags(self.call, argument, self.caller).map_err(|_| Verdict::Pass)?
                };
                demand(flags & !(CREATE | REPLACE) == 0)?;
                demand(flags & REPLACE == 0 || there)?;
                demand(flags & CREATE == 0 || !there)?;
                Operation::Xattr
            }
            Metadata::Flags => {
                demand(owns(node))?;
                Operation::Flags
            }
        };
        Ok(self.bounds.refuse(op, node.path()))
    }

    /// Mounting takes privilege, so without it the refusal is the system's own.
    pub(super) fn mount(&self, path: Option<PathArg>) -> Verdict {
        if !is_root() && !self.caller.may_mount() {
            return Verdict::Made(Err(Errno::EPERM));
        }
        let place = path.and_then(|path| self.named(path, Final::Follow, EMPTY_PATH).ok());
        let path = match place.map(|node| node.path()) {
            Some(Where::At(path)) => path,
            _ => PathBuf::from("/"),
        };
        Verdict::Refuse(Refusal {
            op: Operation::Mount,
            path,
            errno: Errno::EPERM,
        })
    }
}
