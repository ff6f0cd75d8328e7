//! The kernel calls that have no safe wrapper, each as one small function.
//!
//! Those that the child uses allocate nothing and take no lock: they run between clone(2) and
//! exec in a process that shares the runner's memory.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_long, c_uint};
use std::ptr;

use nix::errno::Errno;
use ringfence_backend::FileId;

/// `OPEN_TREE_CLONE` (linux/mount.h).
const OPEN_TREE_CLONE: c_uint = 1;
/// `MOVE_MOUNT_F_EMPTY_PATH` (linux/mount.h).
const MOVE_MOUNT_F_EMPTY_PATH: c_uint = 4;
/// `AT_RECURSIVE` (linux/fcntl.h).
const AT_RECURSIVE: c_uint = 0x8000;

/// A descriptor number inside the child, which ends by exec or exit and so closes nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChildFd(c_int);

fn done(result: c_long) -> Result<c_long, Errno> {
    if result < 0 { Err(Errno::last()) } else { Ok(result) }
}

/// A detached copy of the mounts at and beneath `path`, as they are now.
pub(crate) fn clone_tree(path: &CStr) -> Result<ChildFd, Errno> {
    let flags = OPEN_TREE_CLONE | AT_RECURSIVE | libc::O_CLOEXEC.cast_unsigned();
    // SAFETY: reads a C string.
    let fd = done(unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) })?;
    Ok(ChildFd(c_int::try_from(fd).unwrap_or(-1)))
}

/// Closes the device nodes on a detached tree: no device is a file of the user's.
pub(crate) fn close_devices(tree: ChildFd) -> Result<(), Errno> {
    set_attributes(tree, libc::MOUNT_ATTR_NODEV)
}

/// Makes a detached tree read-only.
pub(crate) fn make_tree_read_only(tree: ChildFd) -> Result<(), Errno> {
    set_attributes(tree, libc::MOUNT_ATTR_RDONLY)
}

fn set_attributes(tree: ChildFd, attributes: u64) -> Result<(), Errno> {
    let attributes = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: reads a C string and a live structure of the given size.
    done(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.0,
            c"".as_ptr(),
            AT_RECURSIVE | libc::AT_EMPTY_PATH.cast_unsigned(),
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

/// Attaches a detached tree at `path`.
pub(crate) fn attach_tree(tree: ChildFd, path: &CStr) -> Result<(), Errno> {
    // SAFETY: reads C strings.
    done(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.0,
            c"".as_ptr(),
            libc::AT_FDCWD,
            path.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    })
    .map(drop)
}

/// Makes every mount beneath `/` read-only (mount_setattr(2), Linux 5.12).
pub(crate) fn make_all_read_only() -> Result<(), Errno> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: reads a C string and a live structure of the given size.
    done(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            c"/".as_ptr(),
            AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

/// Cuts every mount beneath `/` off from propagation.
pub(crate) fn make_all_private() -> Result<(), Errno> {
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: with a propagation flag only the target is read.
    done(c_long::from(unsafe {
        libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), flags, ptr::null())
    }))
    .map(drop)
}

/// Shows the processes of this PID namespace, and no others, at /proc (pid_namespaces(7)).
pub(crate) fn mount_proc() -> Result<(), Errno> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
    let name = c"proc".as_ptr();
    // SAFETY: reads C strings.
    done(c_long::from(unsafe {
        libc::mount(name, c"/proc".as_ptr(), name, flags, ptr::null())
    }))
    .map(drop)
}

/// What a descriptor refers to.
pub(crate) fn identity(fd: ChildFd) -> Result<FileId, Errno> {
    // SAFETY: fstat fills a zeroed structure of its own type.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        done(c_long::from(libc::fstat(fd.0, &raw mut stat)))?;
        Ok(FileId::of(&stat))
    }
}

/// Writes a whole file of /proc with one write(2), as the maps of user_namespaces(7) want it.
pub(crate) fn write_whole(path: &CStr, bytes: &[u8]) -> Result<(), Errno> {
    // SAFETY: a C string, then a live slice with its length, then a descriptor of our own.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        done(c_long::from(fd))?;
        let written = done(libc::write(fd, bytes.as_ptr().cast(), bytes.len()) as c_long);
        libc::close(fd);
        written.map(drop)
    }
}
