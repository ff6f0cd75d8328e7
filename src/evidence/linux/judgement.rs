//! What the policy makes of one call: allowed, refused, or none of its business.
//!
//! A refusal is told from the system's own: what would have failed without confinement (nothing
//! there, something there already, mode bits, a host's read-only mount) is no denial.

mod metadata;
mod names;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::SFlag;
use nix::unistd::AccessFlags;
use ringfence_backend::Notification;
use ringfence_backend::calls::{Call, Final, From, INODE_REQUESTS, Metadata, PathArg};

use super::bounds::{Bounds, Refusal, Step, Verdict};
use super::caller::{Caller, HIDDEN};
use super::permission::{is_root, may};
use super::place::{Node, Place, Where};
use crate::facts::Operation;

/// `AT_SYMLINK_NOFOLLOW`, `AT_REMOVEDIR`, `AT_SYMLINK_FOLLOW`, `AT_EMPTY_PATH`.
const NO_FOLLOW: u64 = nix::libc::AT_SYMLINK_NOFOLLOW as u64;
const REMOVE_DIRECTORY: u64 = nix::libc::AT_REMOVEDIR as u64;
const FOLLOW: u64 = nix::libc::AT_SYMLINK_FOLLOW as u64;
const EMPTY_PATH: u64 = nix::libc::AT_EMPTY_PATH as u64;
/// `FS_IMMUTABLE_FL` and `FS_APPEND_FL`, which take a privilege (ioctl_iflags(2)).
const PRIVILEGED_FLAGS: u32 = 0x30;
/// `FS_IOC_FSSETXATTR`, and the same two flags there (linux/fs.h).
const FSSETXATTR: u64 = 0x401c_5820;
const PRIVILEGED_XFLAGS: u32 = 0x18;

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
            Call::Mount(path) => Ok(self.mount(path)),
        }
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
            SFlag::S_IFCHR | SFlag::S_IFBLK => Ok(device(self.bounds, node.path())),
            _ => Ok(Verdict::Pass),
        }
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

/// A device may be written only when it is one of the sinks, wherever its node stands, or the caller's terminal.
fn device(bounds: &Bounds, place: Where) -> Verdict {
    match place {
        Where::At(path) if SINKS.iter().any(|sink| path.starts_with(sink)) || bounds.shows(&path) => Verdict::Pass,
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
