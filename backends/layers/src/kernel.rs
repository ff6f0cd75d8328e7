//! The kernel calls that have no safe wrapper, each as one small function.
//!
//! Those that the child uses allocate nothing and take no lock: they run between clone(2) and
//! exec in a process that shares the runner's memory.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_long, c_uint, c_ulong};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;

/// The version of capset(2)'s structures (linux/capability.h).
const LINUX_CAPABILITY_VERSION_3: u32 = 0x2008_0522;
/// `LANDLOCK_CREATE_RULESET_VERSION` (linux/landlock.h).
const CREATE_RULESET_VERSION: c_uint = 1;
/// The number of listmount(2), the same on every architecture (Linux 6.8).
const SYS_LISTMOUNT: c_long = 458;
/// `LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON` (linux/landlock.h, ABI 7).
const LOG_NEW_EXEC_ON: c_uint = 1 << 1;

fn done(result: c_long) -> Result<c_long, Errno> {
    if result < 0 { Err(Errno::last()) } else { Ok(result) }
}

/// The Landlock ABI of the running kernel, by landlock_create_ruleset(2).
///
/// # Errors
/// `ENOSYS` without Landlock in the kernel, `EOPNOTSUPP` when it was not enabled at boot.
pub fn landlock_abi() -> Result<u8, Errno> {
    // SAFETY: with the version flag the attribute must be null and nothing is read.
    let abi = done(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<u8>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    })?;
    Ok(u8::try_from(abi).unwrap_or(u8::MAX))
}

/// Puts the calling thread into the domain of a ruleset. Needs `no_new_privs`.
///
/// `log` has refusals logged after exec, too; the kernel must have ABI 7.
pub(crate) fn landlock_restrict_self(ruleset: BorrowedFd<'_>, log: bool) -> Result<(), Errno> {
    let flags = if log { LOG_NEW_EXEC_ON } else { 0 };
    // SAFETY: takes numbers only.
    done(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), flags) }).map(drop)
}

/// The process id of the calling process's parent.
pub(crate) fn parent() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getppid() }.cast_unsigned()
}

/// `SECBIT_NOROOT`, `SECBIT_NO_SETUID_FIXUP`, `SECBIT_NO_CAP_AMBIENT_RAISE`, and the lock of each and
/// of `SECBIT_KEEP_CAPS` (linux/securebits.h).
const NO_WAY_BACK: c_ulong = 0xef;

/// Empties the ambient, effective, permitted and inheritable sets, and locks the ways back:
/// user 0 is nothing special any more (capabilities(7), securebits).
///
/// The bounding set stays as it is. It limits what exec may add, and `no_new_privs` already lets
/// exec add nothing; emptying it takes one call for each capability and 48 µs.
pub(crate) fn drop_capabilities() -> Result<(), Errno> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    // SAFETY: prctl takes numbers; capset reads a header and two data records of version 3.
    unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        // EPERM says that there is no privilege to take away in the first place.
        libc::prctl(libc::PR_SET_SECUREBITS, NO_WAY_BACK, 0, 0, 0);
        let header = Header {
            version: LINUX_CAPABILITY_VERSION_3,
            pid: 0,
        };
        let empty = [0_u32; 6];
        done(libc::syscall(libc::SYS_capset, &raw const header, empty.as_ptr())).map(drop)
    }
}

/// Sets `no_new_privs` (prctl(2)), which Landlock and seccomp without privilege demand.
pub(crate) fn no_new_privileges() -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    done(c_long::from(unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    }))
    .map(drop)
}

/// Installs a filter for the calling thread and what it executes (seccomp(2)).
pub(crate) fn install_filter(program: &[libc::sock_filter]) -> Result<(), Errno> {
    let Ok(len) = u16::try_from(program.len()) else {
        return Err(Errno::EINVAL);
    };
    let program = libc::sock_fprog {
        len,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: reads a live structure that points to `len` live instructions.
    done(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) }).map(drop)
}

/// Installs a filter in which one number stands for another. At most [`MOST`] instructions: nothing is
/// allocated.
pub(crate) fn install_filter_for(program: &[libc::sock_filter], from: u32, to: u32) -> Result<(), Errno> {
    const MOST: usize = 96;
    let mut copy = [libc::sock_filter {
        code: 0,
        jt: 0,
        jf: 0,
        k: 0,
    }; MOST];
    let copy = copy.get_mut(..program.len()).ok_or(Errno::EINVAL)?;
    for (line, original) in copy.iter_mut().zip(program) {
        *line = *original;
        if line.k == from {
            line.k = to;
        }
    }
    install_filter(copy)
}

/// Installs a filter and returns the number of its listener, which is close-on-exec.
///
/// # Errors
/// `EBUSY` when a filter of this process has a listener already.
pub(crate) fn install_observed(program: &[libc::sock_filter]) -> Result<RawFd, Errno> {
    let Ok(len) = u16::try_from(program.len()) else {
        return Err(Errno::EINVAL);
    };
    let program = libc::sock_fprog {
        len,
        filter: program.as_ptr().cast_mut(),
    };
    // Killable waiting is newer (5.19): without it a signal makes a call ask twice.
    let plain = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let mut last = Errno::EINVAL;
    for flags in [plain | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, plain] {
        // SAFETY: reads a live structure that points to `len` live instructions.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        };
        match done(fd) {
            Ok(fd) => return Ok(c_int::try_from(fd).unwrap_or(-1)),
            Err(Errno::EINVAL) => {}
            Err(errno) => last = errno,
        }
    }
    Err(last)
}

/// A descriptor of the calling process itself (pidfd_open(2)).
pub fn own_process() -> Result<OwnedFd, Errno> {
    let pid = nix::unistd::getpid().as_raw();
    // SAFETY: takes numbers only.
    let fd = done(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: the kernel just made this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(c_int::try_from(fd).unwrap_or(-1)) })
}

/// Whether something is mounted below the mount that shows this directory, by statx(2) and listmount(2).
///
/// # Errors
/// `ENOSYS` before Linux 6.8 and under filters that do not know the call.
pub(crate) fn has_mounts_below(directory: &CStr) -> Result<bool, Errno> {
    /// `struct mnt_id_req` (linux/mount.h), in its first version.
    #[repr(C)]
    struct Request {
        size: u32,
        spare: u32,
        mount: u64,
        after: u64,
    }
    /// Its size in bytes, by which the kernel tells versions apart.
    const REQUEST: u32 = 24;
    let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT;
    // SAFETY: a C string, and a zeroed structure of the call's own type.
    let about = unsafe {
        let mut about: libc::statx = std::mem::zeroed();
        let asked = libc::statx(
            libc::AT_FDCWD,
            directory.as_ptr(),
            flags,
            libc::STATX_MNT_ID_UNIQUE,
            &raw mut about,
        );
        done(asked.into())?;
        about
    };
    if about.stx_mask & libc::STATX_MNT_ID_UNIQUE == 0 {
        return Err(Errno::ENOSYS);
    }
    let request = Request {
        size: REQUEST,
        spare: 0,
        mount: about.stx_mnt_id,
        after: 0,
    };
    let mut below = 0_u64;
    // SAFETY: reads a structure of the size it says it has, and writes at most one number.
    let found = unsafe { libc::syscall(SYS_LISTMOUNT, &raw const request, &raw mut below, 1_usize, 0_u32) };
    done(found).map(|found| found > 0)
}
