//! Calls that make, remove and rename names in directories.

use nix::errno::Errno;
use nix::sys::stat::SFlag;
use nix::unistd::AccessFlags;
use ringfence_backend::calls::{Final, From, PathArg};

use super::{Attempt, EMPTY_PATH, FOLLOW, demand, seen, slashed, unresolved};
use crate::evidence::linux::bounds::{Refusal, Step, Verdict};
use crate::evidence::linux::permission::{
    is_dots, is_empty, may, may_change, may_remove, may_replace, owns, same_device,
};
use crate::evidence::linux::place::{Place, Where};
use crate::facts::Operation;

/// `RENAME_NOREPLACE` and `RENAME_EXCHANGE` (rename(2)).
const NO_REPLACE: u64 = nix::libc::RENAME_NOREPLACE as u64;
const EXCHANGE: u64 = nix::libc::RENAME_EXCHANGE as u64;

impl Attempt<'_> {
    pub(super) fn make(&self, path: PathArg, op: Operation) -> Step<Verdict> {
        let place = self.place(path, Final::Stay)?;
        demand(place.node.is_none())?;
        self.create(&place, op)
    }

    /// A socket that is bound to a path makes a node there (unix(7)).
    pub(super) fn bind(&self, address: u8, length: u8) -> Step<Verdict> {
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

    pub(super) fn create(&self, place: &Place, op: Operation) -> Step<Verdict> {
        demand(may_change(place) && (op == Operation::Mkdir || !place.slash))?;
        Ok(self.bounds.refuse(op, place.path()))
    }

    pub(super) fn remove(&self, path: PathArg, directory: bool) -> Step<Verdict> {
        let place = self.place(path, Final::Stay)?;
        let node = place.node.as_ref().ok_or(Verdict::Pass)?;
        demand(!is_dots(&place) && (node.kind() == SFlag::S_IFDIR) == directory && may_remove(&place, node))?;
        demand(!directory || is_empty(node))?;
        let held = self.bounds.hold(Operation::Remove, &node.path());
        Ok(held.unwrap_or_else(|| self.bounds.refuse(Operation::Remove, node.path())))
    }

    pub(super) fn rename(&self, old: PathArg, new: PathArg, flags: u64) -> Step<Verdict> {
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
        let held = |place: &Place| self.bounds.hold(Operation::Rename, &place.path());
        Ok(held(&old)
            .or_else(|| held(&new))
            .unwrap_or_else(|| self.either(Operation::Rename, &old, &new)))
    }

    pub(super) fn link(&self, old: PathArg, new: PathArg, flags: u64) -> Step<Verdict> {
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
}
