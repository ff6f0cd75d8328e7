//! Mounts of a process's own: what the host mounts later does not come to them.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr;

use nix::errno::Errno;

/// Cuts the mounts of this process, which has one thread and shares them with nobody, off from what is mounted
/// elsewhere later. Where they belong to another user namespace, it first takes mounts of its own.
///
/// # Errors
/// The kernel's: `EPERM` without CAP_SYS_ADMIN.
pub fn keep_to_oneself() -> Result<(), Errno> {
    let private = || {
        let none = ptr::null::<libc::c_char>();
        let flags = libc::MS_REC | libc::MS_PRIVATE;
        // SAFETY: with a propagation flag only the target is read.
        Errno::result(unsafe { libc::mount(none, c"/".as_ptr(), none, flags, none.cast()) }).map(drop)
    };
    private().or_else(|_| {
        // SAFETY: takes a number.
        Errno::result(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
        private()
    })
}

/// Makes one mount read-only here (mount_setattr(2)). What is mounted inside it stays as it is.
///
/// # Errors
/// The kernel's: `EINVAL` for a path that nothing is mounted on.
pub fn make_read_only(path: &CStr) -> Result<(), Errno> {
    let read_only = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: a C string, and a live structure of the given size.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            0,
            &raw const read_only,
            size_of::<libc::mount_attr>(),
        )
    };
    if done < 0 { Err(Errno::last()) } else { Ok(()) }
}
