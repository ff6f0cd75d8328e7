//! The kernel calls that have no safe wrapper, each as one small function.
//!
//! Those that the child uses allocate nothing and take no lock: they run between clone(2) and
//! exec in a process that shares the runner's memory.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_long, c_uint, c_ulong};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;
use ringfence_backend::FileId;

/// The version of capset(2)'s structures (linux/capability.h).
const LINUX_CAPABILITY_VERSION_3: u32 = 0x2008_0522;
/// `LANDLOCK_CREATE_RULESET_VERSION` (linux/landlock.h).
const CREATE_RULESET_VERSION: c_uint = 1;
/// `LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON` (linux/landlock.h, ABI 7).
const LOG_NEW_EXEC_ON: c_uint = 1 << 1;
/// `OPEN_TREE_CLONE` (linux/mount.h).
const OPEN_TREE_CLONE: c_uint = 1;
/// `MOVE_MOUNT_F_EMPTY_PATH` (linux/mount.h).
const MOVE_MOUNT_F_EMPTY_PATH: c_uint = 4;
/// The number of listmount(2), the same on every architecture (Linux 6.8).
const SYS_LISTMOUNT: c_long = 458;
/// `AT_RECURSIVE` (linux/fcntl.h).
const AT_RECURSIVE: c_uint = 0x8000;

/// A descriptor number inside the child, which ends by exec or exit and so closes nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChildFd(c_int);

fn done(result: c_long) -> Result<c_long, Errno> {
    if result < 0 { Err(Errno::last()) } else { Ok(result) }
}

/// The Landlock ABI of the running kernel, by landlock_create_ruleset(2).
///
/// # Errors
/// `ENOSYS` without Landlock in the kernel, `EOPNOTSUPP` when it was not enabled at boot.
pub(crate) fn landlock_abi() -> Result<u8, Errno> {
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

/// Puts the calling thread into the domain of a ruleset. Needs `no_new_privs`.
///
/// `log` has refusals logged after exec, too; the kernel must have ABI 7.
pub(crate) fn landlock_restrict_self(ruleset: BorrowedFd<'_>, log: bool) -> Result<(), Errno> {
    let flags = if log { LOG_NEW_EXEC_ON } else { 0 };
    // SAFETY: takes numbers only.
    done(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), flags) }).map(drop)
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

/// The process id of the calling process's parent.
pub(crate) fn parent() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getppid() }.cast_unsigned()
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
pub(crate) fn own_pidfd() -> Result<OwnedFd, Errno> {
    let pid = nix::unistd::getpid().as_raw();
    // SAFETY: takes numbers only.
    let fd = done(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: the kernel just made this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(c_int::try_from(fd).unwrap_or(-1)) })
}

/// Attempts against a boundary, made by the canary. Each gives its errno, 0 for success.
pub(crate) mod attempt {
    use super::{AsRawFd, BorrowedFd, CStr, c_long, done, ptr};

    fn errno(result: c_long) -> i32 {
        done(result).err().map_or(0, |errno| errno as i32)
    }

    /// Opens a path for writing.
    pub(crate) fn open_for_writing(path: &CStr) -> i32 {
        // SAFETY: reads a C string.
        errno(c_long::from(unsafe {
            libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC)
        }))
    }

    /// Creates an unnamed file in a directory.
    pub(crate) fn create_in(path: &CStr) -> i32 {
        let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: reads a C string.
        errno(c_long::from(unsafe { libc::open(path.as_ptr(), flags, 0o600) }))
    }

    /// Sets the mode bits of a path to `mode`, which should be what they are.
    pub(crate) fn change_mode(path: &CStr, mode: u32) -> i32 {
        // SAFETY: reads a C string.
        errno(c_long::from(unsafe { libc::chmod(path.as_ptr(), mode) }))
    }

    /// Takes a descriptor out of another process.
    pub(crate) fn take_descriptor(process: BorrowedFd<'_>) -> i32 {
        // SAFETY: takes numbers only.
        errno(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), 0, 0) })
    }

    /// Opens a file system to be mounted. Without privilege the filter's EPERM and the kernel's are one.
    pub(crate) fn open_file_system() -> i32 {
        // SAFETY: reads a C string.
        errno(unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0) })
    }

    /// Asks for an io_uring.
    pub(crate) fn io_uring() -> i32 {
        // SAFETY: a null parameter block is EFAULT where the call exists.
        errno(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, ptr::null::<u8>()) })
    }
}
