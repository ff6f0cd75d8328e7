//! Most watched calls change something inside. Where the run has mounts of its own, one question to
//! the kernel tells: is what the path leads to on a mount that stayed writable?
//!
//! Mount ids are never the same in two namespaces at a time, so a path that leads astray because
//! this process and not the caller follows it (a link to an absolute path, /proc/self) ends on
//! another mount, and is looked at closely instead. Only "inside" is ever answered here.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::sys::stat::SFlag;
use ringfence_backend::calls::{Call, From, PathArg};
use ringfence_backend::{FileId, Notification, descriptor};

use super::resolve::Caller;

/// The mounts of one run that stayed writable.
#[derive(Debug, Default)]
pub(super) struct Shortcut {
    roots: Vec<(PathBuf, FileId)>,
    mounts: Option<Vec<u64>>,
}

impl Shortcut {
    /// The shortcut for a run with these writable roots on mounts of its own; with none, no call
    /// takes it.
    pub(super) const fn new(roots: Vec<(PathBuf, FileId)>) -> Self {
        Self { roots, mounts: None }
    }

    /// Whether a call surely changes only what lies inside.
    pub(super) fn is_inside(&mut self, call: Call, notification: &Notification, caller: &Caller) -> bool {
        if self.roots.is_empty() {
            return false;
        }
        let roots = &self.roots;
        let mounts = self.mounts.get_or_insert_with(|| {
            // A caller can have a root of its own making, so what is found there must be the very thing.
            let on = |(path, id): &(PathBuf, FileId)| {
                let root = format!("/proc/{}/root", caller.thread());
                let inner = CString::new([root.as_bytes(), path.as_os_str().as_bytes()].concat()).ok()?;
                let found = descriptor::mount_of(&inner, false).ok()?;
                (found.id == *id).then_some(found.mount)
            };
            roots.iter().filter_map(on).collect()
        });
        let lookup = Lookup {
            call: notification,
            caller,
            mounts,
        };
        lookup.is_inside(call).unwrap_or(false)
    }
}

struct Lookup<'a> {
    call: &'a Notification,
    caller: &'a Caller,
    mounts: &'a [u64],
}

impl Lookup<'_> {
    /// Nothing when the question cannot be put this way.
    fn is_inside(&self, call: Call) -> Option<bool> {
        match call {
            Call::Open(path, _) | Call::OpenHow(path, _) | Call::Creat(path) => self.opened(path),
            Call::MakeDirectory(path)
            | Call::MakeNode(path, _)
            | Call::MakeLink(path)
            | Call::Unlink(path, _)
            | Call::RemoveDirectory(path) => self.holds(&self.parent(path)?),
            Call::Rename(old, new, _) => Some(self.holds(&self.parent(old)?)? && self.holds(&self.parent(new)?)?),
            Call::Truncate(path) | Call::PathMetadata(_, path, ..) => self.holds(&self.whole(path)?),
            Call::FdMetadata(_, fd) => self.holds(&self.descriptor(fd)),
            // A link follows its flags; the rest is rare.
            Call::Link(..) | Call::Bind(..) | Call::Ioctl | Call::Mount(_) | Call::NewMount(_) => None,
        }
    }

    /// An opened path is what stands there, or what would be made there. A link is looked at closely.
    fn opened(&self, path: PathArg) -> Option<bool> {
        let whole = CString::new(self.whole(path)?).ok()?;
        match descriptor::mount_of(&whole, false) {
            Ok(found) if found.kind == SFlag::S_IFLNK.bits() => None,
            Ok(found) => Some(self.mounts.contains(&found.mount)),
            Err(_) => self.holds(&self.parent(path)?),
        }
    }

    fn holds(&self, path: &[u8]) -> Option<bool> {
        let found = descriptor::mount_of(&CString::new(path).ok()?, true).ok()?;
        Some(self.mounts.contains(&found.mount))
    }

    fn descriptor(&self, argument: u8) -> Vec<u8> {
        format!("/proc/{}/fd/{}", self.caller.thread(), self.argument(argument)).into_bytes()
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
        let thread = self.caller.thread();
        let begins = match (text.first()?, path.from) {
            (b'/', _) => format!("/proc/{thread}/root"),
            (_, From::Arg(argument)) if self.argument(argument) != u64::from(nix::libc::AT_FDCWD.cast_unsigned()) => {
                format!("/proc/{thread}/fd/{}/", self.argument(argument))
            }
            _ => format!("/proc/{thread}/cwd/"),
        };
        Some([begins.as_bytes(), &text].concat())
    }

    /// The directory in which a path's last name stands, when the path ends in a plain name.
    fn parent(&self, path: PathArg) -> Option<Vec<u8>> {
        let mut whole = self.whole(path)?;
        let slash = whole.iter().rposition(|byte| *byte == b'/')?;
        let plain = !matches!(&whole[slash + 1..], b"" | b"." | b"..");
        whole.truncate(slash + 1);
        plain.then_some(whole)
    }
}
