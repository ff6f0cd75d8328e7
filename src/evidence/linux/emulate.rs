//! Changing metadata on behalf of a process, on the very file that was judged.
//!
//! Without a mount layer the kernel does not refuse metadata changes outside. Judging a call and
//! letting it go on would not do either: its path can lead elsewhere by the time the kernel looks.
//! So these calls never go on. The supervisor changes what its own descriptor refers to, and only
//! for a caller that has exactly its own rights: no capabilities, the same user and groups, the
//! same user namespace.

use std::ffi::CString;
use std::fs::{read_link, read_to_string};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::sys::stat::{FchmodatFlags, Mode, SFlag, UtimensatFlags, fchmodat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, fchownat};
use ringfence_backend::calls::Metadata;
use ringfence_backend::{Notification, descriptor};

use super::caller::Caller;
use super::place::{Node, Place};

/// No value of an extended attribute is larger (`XATTR_SIZE_MAX` of linux/limits.h).
const LARGEST_VALUE: usize = 64 * 1024;
/// `setxattrat`, whose value stands behind a structure of its own (linux/unistd.h).
const SETXATTRAT: i64 = 463;
/// `removexattr`, `lremovexattr`, `fremovexattr`, `removexattrat`.
const REMOVES: [i64; 4] = [
    nix::libc::SYS_removexattr,
    nix::libc::SYS_lremovexattr,
    nix::libc::SYS_fremovexattr,
    466,
];

/// Whether a caller has this process's own rights, neither more nor fewer.
pub(super) fn has_our_rights(caller: &Caller) -> bool {
    let ids = |status: &str| -> Vec<String> {
        let wanted = ["Uid:", "Gid:", "Groups:", "CapEff:", "CapPrm:"];
        status
            .lines()
            .filter(|line| wanted.iter().any(|name| line.starts_with(name)))
            .map(str::to_owned)
            .collect()
    };
    let theirs = read_to_string(format!("/proc/{}/status", caller.thread())).map(|text| ids(&text));
    let ours = read_to_string("/proc/thread-self/status").map(|text| ids(&text));
    let namespace = |of: &str| read_link(format!("/proc/{of}/ns/user"));
    let same_namespace = matches!(
        (namespace(&caller.thread().to_string()), namespace("thread-self")),
        (Ok(theirs), Ok(ours)) if theirs == ours
    );
    same_namespace && matches!((theirs, ours), (Ok(theirs), Ok(ours)) if theirs == ours)
}

/// Makes the change that a call asks for, on the file `node`.
///
/// # Errors
/// What the call would have failed with, or `EOPNOTSUPP` for changes that are not made for others:
/// inode flags, and of links (see [`change_link`]).
pub(super) fn change(
    kind: Metadata,
    argument: u8,
    call: &Notification,
    caller: &Caller,
    node: &Node,
) -> Result<(), Errno> {
    if node.kind() == SFlag::S_IFLNK {
        return Err(Errno::EOPNOTSUPP);
    }
    let path = format!("/proc/self/fd/{}", node.fd.as_raw_fd());
    let arg = |number: u8| call.args.get(usize::from(number)).copied().unwrap_or(0);
    match kind {
        Metadata::Mode => {
            let mode = Mode::from_bits_truncate(low(arg(argument)) & 0o7777);
            fchmodat(AT_FDCWD, path.as_str(), mode, FchmodatFlags::FollowSymlink)
        }
        Metadata::Owner(user) => {
            let id = |number: u8| Some(low(arg(number))).filter(|id| *id != u32::MAX);
            let (user, group) = (id(user).map(Uid::from_raw), id(user + 1).map(Gid::from_raw));
            fchownat(&node.fd, c"", user, group, AtFlags::AT_EMPTY_PATH)
        }
        Metadata::Times(times) => {
            let [accessed, modified] = read_times(call.number, arg(times), caller)?;
            utimensat(
                AT_FDCWD,
                path.as_str(),
                &accessed,
                &modified,
                UtimensatFlags::FollowSymlink,
            )
        }
        Metadata::Attribute(name) => {
            let text = |bytes| CString::new(bytes).map_err(|_| Errno::EINVAL);
            let path = text(path.into_bytes())?;
            let named = text(caller.text(arg(name))?)?;
            if removes(call.number) {
                return errno(descriptor::remove_attribute(&path, &named));
            }
            let (value, flags) = read_value(call, name, caller)?;
            errno(descriptor::set_attribute(&path, &named, &value, flags))
        }
        Metadata::Flags => Err(Errno::EOPNOTSUPP),
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the kernel takes the low half of these arguments"
)]
const fn low(argument: u64) -> u32 {
    argument as u32
}

/// The flags of a call that sets an attribute.
pub(super) fn attribute_flags(call: &Notification, name: u8, caller: &Caller) -> Result<u64, Errno> {
    let (_, flags) = read_value(call, name, caller)?;
    Ok(u64::from(flags.cast_unsigned()))
}

/// Whether a call removes an attribute.
pub(super) fn removes(number: i64) -> bool {
    REMOVES.contains(&number)
}

/// Changes owner or times of a link itself.
///
/// # Errors
/// What the call would have failed with; links have no other metadata that can be changed.
pub(super) fn change_link(kind: Metadata, call: &Notification, caller: &Caller, place: &Place) -> Result<(), Errno> {
    let name = CString::new(place.name.as_slice()).map_err(|_| Errno::EINVAL)?;
    let arg = |number: u8| call.args.get(usize::from(number)).copied().unwrap_or(0);
    match kind {
        Metadata::Owner(user) => {
            let id = |number: u8| Some(low(arg(number))).filter(|id| *id != u32::MAX);
            let (user, group) = (id(user).map(Uid::from_raw), id(user + 1).map(Gid::from_raw));
            fchownat(
                &place.parent,
                name.as_c_str(),
                user,
                group,
                AtFlags::AT_SYMLINK_NOFOLLOW,
            )
        }
        Metadata::Times(times) => {
            let [accessed, modified] = read_times(call.number, arg(times), caller)?;
            utimensat(
                &place.parent,
                name.as_c_str(),
                &accessed,
                &modified,
                UtimensatFlags::NoFollowSymlink,
            )
        }
        Metadata::Mode | Metadata::Flags => Err(Errno::EOPNOTSUPP),
        Metadata::Attribute(_) => Err(Errno::EPERM),
    }
}

fn errno(done: std::io::Result<()>) -> Result<(), Errno> {
    done.map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
}

/// The value and flags that a call sets an attribute to.
fn read_value(call: &Notification, name: u8, caller: &Caller) -> Result<(Vec<u8>, i32), Errno> {
    let after = |number: u8| call.args.get(usize::from(name + number)).copied().unwrap_or(0);
    let (address, size, flags) = if call.number == SETXATTRAT {
        // struct xattr_args: the value's address, its size, the flags.
        let words = words::<2>(caller, after(1))?;
        (
            words[0].cast_unsigned(),
            u64::from(low(words[1].cast_unsigned())),
            words[1] >> 32,
        )
    } else {
        (after(1), after(2), i64::from(low(after(3))))
    };
    let size = usize::try_from(size)
        .ok()
        .filter(|size| *size <= LARGEST_VALUE)
        .ok_or(Errno::E2BIG)?;
    let mut value = vec![0; size];
    if size > 0 && caller.read(address, &mut value)? != size {
        return Err(Errno::EFAULT);
    }
    Ok((value, i32::try_from(flags).map_err(|_| Errno::EINVAL)?))
}

/// The times that a call sets: a null pointer is "now".
fn read_times(number: i64, address: u64, caller: &Caller) -> Result<[TimeSpec; 2], Errno> {
    if address == 0 {
        let now = TimeSpec::new(0, nix::libc::UTIME_NOW);
        return Ok([now, now]);
    }
    #[cfg(target_arch = "x86_64")]
    if number == nix::libc::SYS_utime {
        let [accessed, modified] = words::<2>(caller, address)?;
        return Ok([TimeSpec::new(accessed, 0), TimeSpec::new(modified, 0)]);
    }
    let [s0, f0, s1, f1] = words::<4>(caller, address)?;
    #[cfg(target_arch = "x86_64")]
    if number == nix::libc::SYS_utimes || number == nix::libc::SYS_futimesat {
        if !(0..1_000_000).contains(&f0) || !(0..1_000_000).contains(&f1) {
            return Err(Errno::EINVAL);
        }
        return Ok([TimeSpec::new(s0, f0 * 1000), TimeSpec::new(s1, f1 * 1000)]);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = number;
    let sound = |nanos: i64| {
        (0..1_000_000_000).contains(&nanos) || nanos == nix::libc::UTIME_NOW || nanos == nix::libc::UTIME_OMIT
    };
    if !sound(f0) || !sound(f1) {
        return Err(Errno::EINVAL);
    }
    Ok([TimeSpec::new(s0, f0), TimeSpec::new(s1, f1)])
}

/// Whether a call sets any time at all: both can be left as they are, or stand nowhere (utimensat(2)).
pub(super) fn sets_times(number: i64, address: u64, caller: &Caller) -> bool {
    let omitted = |time: &TimeSpec| time.tv_nsec() == nix::libc::UTIME_OMIT;
    read_times(number, address, caller).is_ok_and(|times| !times.iter().all(omitted))
}

/// Words of eight bytes in the caller's memory.
fn words<const N: usize>(caller: &Caller, address: u64) -> Result<[i64; N], Errno> {
    let mut bytes = vec![0; N * 8];
    if caller.read(address, &mut bytes)? != bytes.len() {
        return Err(Errno::EFAULT);
    }
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = i64::from_ne_bytes(*bytes);
    }
    Ok(words)
}
