//! Most watched calls change something inside. Where the run has mounts of its own, one question to
//! the kernel tells: is what the path leads to on a mount that stayed writable?
//!
//! Mount ids are never the same in two namespaces at a time, so a path that leads astray because
//! this process and not the caller follows it (a link to an absolute path, /proc/self) ends on
//! another mount, and is looked at closely instead. Only "inside" is ever answered here.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, SFlag};
use ringfence_backend::calls::{Call, From, PathArg};
use ringfence_backend::descriptor::{self, Mounted};
use ringfence_backend::{FileId, Notification};

use super::caller::Caller;

/// What stands in a directory and does not belong to it.
const LOOKED_AT: [SFlag; 3] = [SFlag::S_IFLNK, SFlag::S_IFCHR, SFlag::S_IFBLK];

/// The mounts of one run that stayed writable.
#[derive(Debug, Default)]
pub(super) struct Shortcut {
    roots: Vec<(PathBuf, FileId)>,
    /// Whether some names inside are held in their places.
    holds: bool,
    mounts: Option<Vec<u64>>,
    /// The last caller's directory in /proc. It stands for that thread alone, even when its number
    /// serves again.
    last: Option<(i32, OwnedFd)>,
}

impl Shortcut {
    /// The shortcut for a run with these writable roots on mounts of its own; with none, no call
    /// takes it.
    pub(super) const fn new(roots: Vec<(PathBuf, FileId)>, holds: bool) -> Self {
        Self {
            roots,
            holds,
            mounts: None,
            last: None,
        }
    }

    /// Whether a call surely changes only what lies inside.
    pub(super) fn is_inside(&mut self, call: Call, notification: &Notification, caller: &Caller) -> bool {
        if self.roots.is_empty() {
            return false;
        }
        let thread = caller.thread();
        let known = self.last.take().filter(|(last, _)| *last == thread);
        let Some((_, process)) = known.or_else(|| Some((thread, directory_of(thread)?))) else {
            return false;
        };
        let roots = &self.roots;
        let mounts = self.mounts.get_or_insert_with(|| {
            // A caller can have a root of its own making, so what is found there must be the very thing.
            let on = |(path, id): &(PathBuf, FileId)| {
                let inner = CString::new([b"root", path.as_os_str().as_bytes()].concat()).ok()?;
                let found = descriptor::mount_of(process.as_fd(), &inner, false).ok()?;
                (found.id == *id).then_some(found.mount)
            };
            roots.iter().filter_map(on).collect()
        });
        let lookup = Lookup {
            call: notification,
            caller,
            process: process.as_fd(),
            mounts,
            holds: self.holds,
        };
        let inside = lookup.is_inside(call);
        // Nothing is found through the directory of a thread that has ended.
        self.last = inside.is_some().then_some((thread, process));
        inside.unwrap_or(false)
    }
}

fn directory_of(thread: i32) -> Option<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    open(format!("/proc/{thread}").as_str(), flags, Mode::empty()).ok()
}

struct Lookup<'a> {
    call: &'a Notification,
    caller: &'a Caller,
    process: BorrowedFd<'a>,
    mounts: &'a [u64],
    holds: bool,
}

impl Lookup<'_> {
    /// Nothing when the question cannot be put this way.
    fn is_inside(&self, call: Call) -> Option<bool> {
        match call {
            Call::Unlink(..) | Call::RemoveDirectory(_) | Call::Rename(..) if self.holds => None,
            Call::Open(path, flags) => self.opened(path, self.argument(flags)),
            Call::OpenHow(path, _) | Call::Creat(path) => self.opened(path, 0),
            Call::MakeDirectory(path)
            | Call::MakeNode(path, _)
            | Call::MakeLink(path)
            | Call::Unlink(path, _)
            | Call::RemoveDirectory(path) => self.holds(self.parent(path)?),
            Call::Rename(old, new, _) => Some(self.holds(self.parent(old)?)? && self.holds(self.parent(new)?)?),
            Call::PathMetadata(_, path, ..) if self.named_by_descriptor(path) => match path.from {
                From::Arg(argument) => self.holds(self.descriptor(argument)),
                From::Cwd => None,
            },
            Call::Truncate(path) | Call::PathMetadata(_, path, ..) => self.holds(self.whole(path)?),
            Call::FdMetadata(_, fd) => self.holds(self.descriptor(fd)),
            // A link follows its flags; the rest is rare.
            Call::Link(..) | Call::Bind(..) | Call::Ioctl | Call::Mount(_) => None,
        }
    }

    /// An opened path is what stands there, or what would be made there. A link is looked at closely.
    fn opened(&self, path: PathArg, flags: u64) -> Option<bool> {
        const MADE_ANEW: u64 = (nix::libc::O_CREAT | nix::libc::O_EXCL) as u64;
        let whole = self.whole(path)?;
        if flags & MADE_ANEW == MADE_ANEW {
            return self.holds(parent_of(whole)?);
        }
        match self.find(whole.clone(), false) {
            // Devices are not the directory's to open or close.
            Some(found) if LOOKED_AT.iter().any(|kind| kind.bits() == found.kind) => None,
            Some(found) => Some(self.mounts.contains(&found.mount)),
            None => self.holds(parent_of(whole)?),
        }
    }

    fn holds(&self, path: Vec<u8>) -> Option<bool> {
        Some(self.mounts.contains(&self.find(path, true)?.mount))
    }

    fn find(&self, path: Vec<u8>, follow: bool) -> Option<Mounted> {
        descriptor::mount_of(self.process, &CString::new(path).ok()?, follow).ok()
    }

    /// Whether a call gives no path: futimens(3) is utimensat(2) with none.
    fn named_by_descriptor(&self, path: PathArg) -> bool {
        self.call.args.get(usize::from(path.text)) == Some(&0)
    }

    fn descriptor(&self, argument: u8) -> Vec<u8> {
        format!("fd/{}", self.argument(argument)).into_bytes()
    }

    /// The kernel takes the low half of a descriptor's argument.
    fn argument(&self, number: u8) -> u64 {
        self.call.args.get(usize::from(number)).copied().unwrap_or(0) & 0xffff_ffff
    }

    /// A path of the caller's, from where it begins for the caller.
    fn whole(&self, path: PathArg) -> Option<Vec<u8>> {
        let text = self
            .caller
            .text(self.call.args.get(usize::from(path.text)).copied().unwrap_or(0))
            .ok()?;
        if text.split(|byte| *byte == b'/').any(|part| part == b"..") {
            return None;
        }
        let begins = match (text.first()?, path.from) {
            (b'/', _) => "root".to_owned(),
            (_, From::Arg(argument)) if self.argument(argument) != u64::from(nix::libc::AT_FDCWD.cast_unsigned()) => {
                format!("fd/{}/", self.argument(argument))
            }
            _ => "cwd/".to_owned(),
        };
        Some([begins.as_bytes(), &text].concat())
    }

    fn parent(&self, path: PathArg) -> Option<Vec<u8>> {
        parent_of(self.whole(path)?)
    }
}

/// The directory in which a path's last name stands, when the path ends in a plain name.
fn parent_of(mut whole: Vec<u8>) -> Option<Vec<u8>> {
    let slash = whole.iter().rposition(|byte| *byte == b'/')?;
    let plain = !matches!(&whole[slash + 1..], b"" | b"." | b"..");
    whole.truncate(slash + 1);
    plain.then_some(whole)
}
