//! What the policy makes of one call: allowed, refused, or none of its business.
//!
//! A refusal is told from the system's own: what would have failed without confinement (nothing
//! there, something there already, mode bits, a host's read-only mount) is no denial.

use std::os::fd::AsFd;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::SFlag;
use nix::unistd::AccessFlags;
use ringfence_backend::calls::{Call, Final, From, INODE_REQUESTS, Metadata, PathArg};
use ringfence_backend::{Notification, descriptor};

use super::bounds::{Bounds, Refusal, Step, Verdict};
use super::emulate;
use super::permission::{
    is_dots, is_empty, is_root, may, may_change, may_give, may_remove, may_replace, may_set, owns, same_device,
};
use super::resolve::{Caller, HIDDEN, Node, Place, Where};
use crate::facts::Operation;

/// `AT_SYMLINK_NOFOLLOW`, `AT_REMOVEDIR`, `AT_SYMLINK_FOLLOW`, `AT_EMPTY_PATH`, `RENAME_NOREPLACE`.
const NO_FOLLOW: u64 = nix::libc::AT_SYMLINK_NOFOLLOW as u64;
const REMOVE_DIRECTORY: u64 = nix::libc::AT_REMOVEDIR as u64;
const FOLLOW: u64 = nix::libc::AT_SYMLINK_FOLLOW as u64;
const EMPTY_PATH: u64 = nix::libc::AT_EMPTY_PATH as u64;
/// `XATTR_NAME_MAX` (linux/limits.h).
const LONGEST_NAME: usize = 255;
/// `XATTR_CREATE` and `XATTR_REPLACE` (setxattr(2)).
const CREATE: u64 = 1;
const REPLACE: u64 = 2;
/// `FS_IMMUTABLE_FL` and `FS_APPEND_FL`, which take a privilege (ioctl_iflags(2)).
const PRIVILEGED_FLAGS: u32 = 0x30;
/// `FS_IOC_FSSETXATTR`, and the same two flags there (linux/fs.h).
const FSSETXATTR: u64 = 0x401c_5820;
const PRIVILEGED_XFLAGS: u32 = 0x18;
const NO_REPLACE: u64 = nix::libc::RENAME_NOREPLACE as u64;
const EXCHANGE: u64 = nix::libc::RENAME_EXCHANGE as u64;

/// Devices that change no file of the host, and the directory of terminals.
const SINKS: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Judges a waiting call.
pub(super) fn judge(bounds: &Bounds, call: Call, notification: &Notification, caller: &Caller) -> Verdict {
    let attempt = Attempt {
        bounds,
        caller,
        call: notification,
    };
    if bounds.emulates()
        && let Some(verdict) = attempt.emulate(call)
    {
        return verdict;
    }
    match attempt.judge(call) {
        Ok(verdict) | Err(verdict) => verdict,
    }
}

/// One call being judged.
struct Attempt<'a> {
    bounds: &'a Bounds,
    caller: &'a Caller,
    call: &'a Notification,
}

impl Attempt<'_> {
    fn judge(&self, call: Call) -> Step<Verdict> {
        match call {
            Call::Open(path, flags) => self.open(path, self.flags(Some(flags)), None),
            Call::OpenHow(path, how) => {
                // struct open_how: flags, mode, resolve. How a path resolves there is not imitated.
                let mut words = [0; 24];
                seen(self.caller.read(self.arg(how), &mut words))?;
                let [flags, mode, resolve] =
                    [0, 8, 16].map(|at| words[at..].first_chunk().map_or(0, |word| u64::from_ne_bytes(*word)));
                demand(self.arg(how + 1) >= 24 && is_sound(flags, mode, resolve))?;
                let place = (resolve != 0).then(|| self.resolved(path, resolve)).transpose()?;
                self.open(path, flags, place)
            }
            Call::Creat(path) => {
                let flags = OFlag::O_CREAT | OFlag::O_WRONLY | OFlag::O_TRUNC;
                self.open(path, u64::from(flags.bits().cast_unsigned()), None)
            }
            Call::MakeDirectory(path) => self.make(path, Operation::Mkdir),
            Call::MakeNode(path, mode) => {
                let kind =
                    SFlag::from_bits_truncate(u32::try_from(self.arg(mode) & 0xffff).unwrap_or(0)) & SFlag::S_IFMT;
                demand(!matches!(kind, SFlag::S_IFDIR | SFlag::S_IFLNK))?;
                demand(is_root() || !matches!(kind, SFlag::S_IFCHR | SFlag::S_IFBLK))?;
                self.make(path, Operation::Mknod)
            }
            Call::Bind(address, length) => self.bind(address, length),
            Call::MakeLink(path) => {
                demand(!seen(self.caller.text(self.arg(0)))?.is_empty())?;
                self.make(path, Operation::Symlink)
            }
            Call::Link(old, new, flags) => self.link(old, new, self.flags(flags)),
            Call::Unlink(_, flags) if self.flags(flags) & !REMOVE_DIRECTORY != 0 => Ok(Verdict::Pass),
            Call::Unlink(path, flags) => self.remove(path, self.flags(flags) & REMOVE_DIRECTORY != 0),
            Call::RemoveDirectory(path) => self.remove(path, true),
            Call::Rename(old, new, flags) => self.rename(old, new, self.flags(flags)),
            Call::Truncate(path) => {
                demand(self.arg(path.text + 1).cast_signed() >= 0)?;
                let node = there(self.place(path, Final::Follow)?)?;
                demand(node.kind() == SFlag::S_IFREG && may(&node, AccessFlags::W_OK))?;
                Ok(self.bounds.refuse(Operation::Truncate, node.path()))
            }
            Call::PathMetadata(kind, path, last, flags) => {
                let flags = self.flags(flags);
                demand(flags & !(NO_FOLLOW | EMPTY_PATH) == 0)?;
                let node = self.named(path, last, flags)?;
                self.metadata(kind, &node)
            }
            Call::FdMetadata(kind, fd) => {
                demand(!self.caller.is_name_only(as_descriptor(self.arg(fd))))?;
                self.metadata(kind, &self.descriptor(self.arg(fd))?)
            }
            Call::Ioctl => {
                demand(
                    INODE_REQUESTS
                        .iter()
                        .any(|request| u64::from(*request) == self.arg(1) & 0xffff_ffff),
                )?;
                let mut flags = [0; 4];
                seen(self.caller.read(self.arg(2), &mut flags))?;
                let privileged = if self.arg(1) & 0xffff_ffff == FSSETXATTR {
                    PRIVILEGED_XFLAGS
                } else {
                    PRIVILEGED_FLAGS
                };
                demand(is_root() || u32::from_ne_bytes(flags) & privileged == 0)?;
                demand(!self.caller.is_name_only(as_descriptor(self.arg(0))))?;
                self.metadata(Metadata::Flags, &self.descriptor(self.arg(0))?)
            }
            Call::Mount(path) => Ok(self.mount(Some(path))),
            Call::NewMount(path) => Ok(self.mount(path)),
        }
    }

    /// Makes a change of metadata for the caller, if the call is one: judged and made on one and the
    /// same file. Such a call never goes on by itself, whatever is wrong with it.
    fn emulate(&self, call: Call) -> Option<Verdict> {
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

    fn arg(&self, number: u8) -> u64 {
        self.call.args.get(usize::from(number)).copied().unwrap_or(0)
    }

    fn flags(&self, argument: Option<u8>) -> u64 {
        argument.map_or(0, |argument| self.arg(argument) & 0xffff_ffff)
    }

    fn descriptor(&self, argument: u64) -> Step<Node> {
        seen(self.caller.descriptor_node(as_descriptor(argument)))
    }

    fn place(&self, path: PathArg, last: Final) -> Step<Place> {
        let text = seen(self.caller.text(self.arg(path.text)))?;
        self.lead(path, &text, last)
    }

    fn lead(&self, path: PathArg, text: &[u8], last: Final) -> Step<Place> {
        let from = match path.from {
            From::Cwd => None,
            From::Arg(argument) => Some(as_descriptor(self.arg(argument))),
        };
        // A path that does not lead anywhere fails by itself. A caller out of sight fails at the
        // very first step, its memory.
        self.caller
            .resolve(from, text, last)
            .map_err(unresolved)
            .and_then(slashed)
    }

    /// What a path names, or a descriptor alone where the path may be empty or absent.
    fn named(&self, path: PathArg, last: Final, flags: u64) -> Step<Node> {
        if let From::Arg(argument) = path.from {
            let address = self.arg(path.text);
            if address == 0 || (flags & EMPTY_PATH != 0 && seen(self.caller.text(address))?.is_empty()) {
                if as_descriptor(self.arg(argument)) == nix::libc::AT_FDCWD {
                    return seen(self.caller.directory(None).and_then(Node::new));
                }
                return self.descriptor(self.arg(argument));
            }
        }
        let last = if flags & NO_FOLLOW != 0 { Final::Stay } else { last };
        there(self.place(path, last)?)
    }

    /// A path that openat2(2) resolves in a way of its own.
    fn resolved(&self, path: PathArg, resolve: u64) -> Step<Place> {
        let From::Arg(directory) = path.from else {
            return Err(Verdict::Pass);
        };
        let text = seen(self.caller.text(self.arg(path.text)))?;
        let place = self
            .caller
            .resolve_as(Some(as_descriptor(self.arg(directory))), &text, resolve);
        place.map_err(unresolved).and_then(slashed)
    }

    /// `found` is where the path leads, if that is known already.
    fn open(&self, path: PathArg, flags: u64, found: Option<Place>) -> Step<Verdict> {
        let flags = OFlag::from_bits_truncate(i32::try_from(flags & 0x7fff_ffff).unwrap_or(0));
        demand(!flags.contains(OFlag::O_PATH) && asks_for_change(flags))?;
        let exclusive = flags.contains(OFlag::O_CREAT | OFlag::O_EXCL);
        let stays = exclusive || flags.contains(OFlag::O_NOFOLLOW);
        let text = seen(self.caller.text(self.arg(path.text)))?;
        // What every shell opens, and what the kernel decides about anyway.
        demand(!SINKS.iter().any(|sink| sink.as_bytes() == text))?;
        let place = match found {
            Some(place) => place,
            None => self.lead(path, &text, if stays { Final::Stay } else { Final::Follow })?,
        };
        let Some(node) = &place.node else {
            demand(flags.contains(OFlag::O_CREAT) && !text.ends_with(b"/"))?;
            return self.create(&place, Operation::Create);
        };
        if flags.contains(OFlag::O_TMPFILE) {
            demand(flags & OFlag::O_ACCMODE != OFlag::O_RDONLY)?;
            demand(may(node, AccessFlags::W_OK | AccessFlags::X_OK))?;
            return Ok(self.bounds.refuse(Operation::Create, node.path()));
        }
        let changes = flags & OFlag::O_ACCMODE != OFlag::O_RDONLY || flags.contains(OFlag::O_TRUNC);
        demand(changes && !exclusive && !flags.contains(OFlag::O_DIRECTORY) && may(node, AccessFlags::W_OK))?;
        // Without waiting for a reader, a pipe that has none is not opened (fifo(7)).
        let unread = node.kind() == SFlag::S_IFIFO && flags.contains(OFlag::O_NONBLOCK | OFlag::O_WRONLY);
        demand(!unread)?;
        match node.kind() {
            SFlag::S_IFREG | SFlag::S_IFIFO => Ok(self.bounds.refuse(Operation::Write, node.path())),
            SFlag::S_IFCHR | SFlag::S_IFBLK => Ok(device(node.path())),
            _ => Ok(Verdict::Pass),
        }
    }

    fn make(&self, path: PathArg, op: Operation) -> Step<Verdict> {
        let place = self.place(path, Final::Stay)?;
        demand(place.node.is_none())?;
        self.create(&place, op)
    }

    /// A socket that is bound to a path makes a node there (unix(7)).
    fn bind(&self, address: u8, length: u8) -> Step<Verdict> {
        let mut bytes = [0; 110];
        let length = usize::try_from(self.arg(length)).unwrap_or(0).min(bytes.len());
        demand(length > 2)?;
        let got = seen(self.caller.read(self.arg(address), &mut bytes[..length]))?;
        let family = u16::from_ne_bytes([bytes[0], bytes[1]]);
        let path = bytes[2..got.max(2)].split(|byte| *byte == 0).next().unwrap_or_default();
        demand(i32::from(family) == nix::libc::AF_UNIX && !path.is_empty())?;
        let place = self
            .caller
            .resolve(None, path, Final::Stay)
            .map_err(unresolved)
            .and_then(slashed)?;
        demand(place.node.is_none())?;
        self.create(&place, Operation::Mknod)
    }

    fn create(&self, place: &Place, op: Operation) -> Step<Verdict> {
        demand(may_change(place) && (op == Operation::Mkdir || !place.slash))?;
        Ok(self.bounds.refuse(op, place.path()))
    }

    fn remove(&self, path: PathArg, directory: bool) -> Step<Verdict> {
        let place = self.place(path, Final::Stay)?;
        let node = place.node.as_ref().ok_or(Verdict::Pass)?;
        demand(!is_dots(&place) && (node.kind() == SFlag::S_IFDIR) == directory && may_remove(&place, node))?;
        demand(!directory || is_empty(node))?;
        Ok(self.bounds.refuse(Operation::Remove, node.path()))
    }

    fn rename(&self, old: PathArg, new: PathArg, flags: u64) -> Step<Verdict> {
        let (old, new) = (self.place(old, Final::Stay)?, self.place(new, Final::Stay)?);
        let node = old.node.as_ref().ok_or(Verdict::Pass)?;
        demand(may_remove(&old, node) && may_change(&new) && same_device(node, &new))?;
        demand(flags & NO_REPLACE == 0 || new.node.is_none())?;
        demand(node.kind() == SFlag::S_IFDIR || !new.slash)?;
        demand(flags & EXCHANGE == 0 || new.node.is_some())?;
        demand(flags & EXCHANGE != 0 || new.node.as_ref().is_none_or(|there| may_replace(node, there)))?;
        let beneath = matches!((node.path(), new.path()), (Where::At(old), Where::At(new)) if new != old && new.starts_with(&old));
        demand(!is_dots(&old) && !is_dots(&new))?;
        demand(node.kind() != SFlag::S_IFDIR || !beneath)?;
        Ok(self.either(Operation::Rename, &old, &new))
    }

    fn link(&self, old: PathArg, new: PathArg, flags: u64) -> Step<Verdict> {
        demand(flags & !(FOLLOW | EMPTY_PATH) == 0)?;
        if flags & EMPTY_PATH != 0 && seen(self.caller.text(self.arg(old.text)))?.is_empty() {
            return self.link_descriptor(old, new);
        }
        let last = if flags & FOLLOW != 0 {
            Final::Follow
        } else {
            Final::Stay
        };
        let (old, new) = (self.place(old, last)?, self.place(new, Final::Stay)?);
        let node = old.node.as_ref().ok_or(Verdict::Pass)?;
        demand(new.node.is_none() && !new.slash && node.kind() != SFlag::S_IFDIR)?;
        demand(may_change(&new) && same_device(node, &new))?;
        // proc_sys_fs(5), protected_hardlinks: others' files only if they may be read and written.
        demand(owns(node) || may(node, AccessFlags::R_OK | AccessFlags::W_OK))?;
        Ok(self.either(Operation::Link, &old, &new))
    }

    /// A second name for what a descriptor refers to (`AT_EMPTY_PATH`).
    fn link_descriptor(&self, old: PathArg, new: PathArg) -> Step<Verdict> {
        let From::Arg(descriptor) = old.from else {
            return Err(Verdict::Pass);
        };
        let (node, new) = (self.descriptor(self.arg(descriptor))?, self.place(new, Final::Stay)?);
        demand(new.node.is_none() && may_change(&new) && same_device(&node, &new))?;
        let refused = self.bounds.refuse(Operation::Link, new.path());
        Ok(if refused == Verdict::Pass {
            self.bounds.refuse(Operation::Link, node.path())
        } else {
            refused
        })
    }

    /// The side of a rename or link that is refused. Between inside and outside it reads as if
    /// they were two file systems, so that programs copy instead where they can.
    fn either(&self, op: Operation, old: &Place, new: &Place) -> Verdict {
        // What never had a name comes from nowhere outside.
        let nameless = |place: &Place| place.node.as_ref().is_some_and(|node| node.stat.st_nlink == 0);
        let inside = |place: &Place| nameless(place) || self.bounds.holds(&place.path());
        let across = inside(old) != inside(new);
        let side = if inside(old) { new } else { old };
        match self.bounds.refuse(op, side.path()) {
            Verdict::Refuse(refusal) if across => Verdict::Refuse(Refusal {
                errno: Errno::EXDEV,
                ..refusal
            }),
            other => other,
        }
    }

    fn metadata(&self, kind: Metadata, node: &Node) -> Step<Verdict> {
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
    fn mount(&self, path: Option<PathArg>) -> Verdict {
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

/// What was read of the caller; a caller that cannot be looked at is said to be so.
fn seen<T>(read: Result<T, Errno>) -> Step<T> {
    read.map_err(|errno| match errno {
        Errno::EPERM | Errno::EACCES | Errno::EFAULT | Errno::EIO => Verdict::Unseen,
        errno => unresolved(errno),
    })
}

/// A slash at the end of a path says that a directory is meant: of anything else the call fails.
fn slashed(place: Place) -> Step<Place> {
    let other = place.node.as_ref().is_some_and(|node| node.kind() != SFlag::S_IFDIR);
    if place.slash && other {
        Err(Verdict::Pass)
    } else {
        Ok(place)
    }
}

/// A path that does not lead anywhere fails by itself; not having looked is something else.
fn unresolved(errno: Errno) -> Verdict {
    match errno {
        Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | HIDDEN => Verdict::Unseen,
        _ => Verdict::Pass,
    }
}

/// Whether openat2(2), which is strict about them, takes these numbers.
fn is_sound(flags: u64, mode: u64, resolve: u64) -> bool {
    const RESOLVES: u64 = 0x3f;
    let known = u64::from(OFlag::all().bits().cast_unsigned());
    let makes = u64::from(
        (OFlag::O_CREAT | (OFlag::O_TMPFILE & !OFlag::O_DIRECTORY))
            .bits()
            .cast_unsigned(),
    );
    let mode_is_sound = if flags & makes == 0 {
        mode == 0
    } else {
        mode & !0o7777 == 0
    };
    flags & !known == 0 && mode_is_sound && resolve & !RESOLVES == 0
}

/// Whether open(2)'s flags ask for a change.
fn asks_for_change(flags: OFlag) -> bool {
    let unnamed = OFlag::O_TMPFILE & !OFlag::O_DIRECTORY;
    flags & OFlag::O_ACCMODE != OFlag::O_RDONLY || flags.intersects(OFlag::O_CREAT | OFlag::O_TRUNC | unnamed)
}

/// A device may be written only when it is one of the sinks, wherever its node stands.
fn device(place: Where) -> Verdict {
    match place {
        Where::At(path) if SINKS.iter().any(|sink| path.starts_with(sink)) => Verdict::Pass,
        Where::At(path) => Verdict::Refuse(Refusal {
            op: Operation::Write,
            path,
            errno: Errno::EACCES,
        }),
        Where::Nowhere => Verdict::Pass,
        Where::Unknown => Verdict::Unseen,
    }
}

/// Ends the judgement when a condition does not hold that the call fails for by itself.
fn demand(holds: bool) -> Step<()> {
    if holds { Ok(()) } else { Err(Verdict::Pass) }
}

fn there(place: Place) -> Step<Node> {
    place.node.ok_or(Verdict::Pass)
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the kernel takes the low half of a descriptor argument"
)]
const fn as_descriptor(argument: u64) -> i32 {
    (argument as u32).cast_signed()
}
