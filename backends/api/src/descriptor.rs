//! The few calls on descriptors and processes that have no safe wrapper.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::FileId;

/// A close-on-exec duplicate of the descriptor `number` that this process was started with.
///
/// # Errors
/// `EBADF` when no descriptor has that number.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes any number and answers EBADF for one that is not open.
    let fd = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor, and nobody else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What a program needs of its process before anything else; a library's host decides for itself.
///
/// Ends of children are heard of, which they are not when SIGCHLD was inherited ignored (wait(2)).
/// A closed reader is an error and no death (SIGPIPE), and so is a file that may not grow (SIGXFSZ). The standard descriptors are open, so that
/// no other file ever takes their numbers.
pub fn prepare_process() {
    // SAFETY: dispositions that run no code of ours; descriptor numbers; a constant path.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        for number in 0..3 {
            if libc::fcntl(number, libc::F_GETFD) < 0 {
                // The lowest free number is this one: those below are open.
                libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            }
        }
    }
}

/// Whether the calling process ignores a signal.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: fills a zeroed structure; without a new disposition nothing changes.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

/// Whether a system call filter was laid on the calling process already (prctl(2)).
#[must_use]
pub fn is_filtered() -> bool {
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) == 2 }
}

/// Random bytes of the kernel's (getrandom(2)).
///
/// # Errors
/// The operating system's, when it has none to give.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // SAFETY: fills a live array of the given length. Up to 256 bytes come whole.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    if usize::try_from(got) == Ok(N) {
        Ok(bytes)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// What one statx(2) tells of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// The id of the mount that the path leads to.
    pub mount: u64,
    /// The kind of what stands there, one of the `S_IF*` constants.
    pub kind: u32,
    /// What stands there.
    pub id: FileId,
}

/// Where a path leads from a directory. Nothing is mounted, opened or waited for.
///
/// # Errors
/// The operating system's; `ENOSYS` when the kernel tells no mount ids (before Linux 5.8).
pub fn mount_of(from: BorrowedFd<'_>, path: &CStr, follow: bool) -> io::Result<Mounted> {
    let flags = libc::AT_NO_AUTOMOUNT | if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
    let wanted = libc::STATX_MNT_ID | libc::STATX_TYPE | libc::STATX_INO;
    // SAFETY: reads a C string and fills a zeroed structure of its own type.
    let about = unsafe {
        let mut about: libc::statx = std::mem::zeroed();
        if libc::statx(from.as_raw_fd(), path.as_ptr(), flags, wanted, &raw mut about) != 0 {
            return Err(io::Error::last_os_error());
        }
        about
    };
    if about.stx_mask & libc::STATX_MNT_ID == 0 {
        return Err(io::Error::from_raw_os_error(libc::ENOSYS));
    }
    let id = FileId {
        device: libc::makedev(about.stx_dev_major, about.stx_dev_minor),
        inode: about.stx_ino,
    };
    Ok(Mounted {
        mount: about.stx_mnt_id,
        kind: u32::from(about.stx_mode) & libc::S_IFMT,
        id,
    })
}

/// Sets an extended attribute (setxattr(2)); `flags` are `XATTR_CREATE` and `XATTR_REPLACE`.
///
/// # Errors
/// The operating system's.
pub fn set_attribute(path: &CStr, name: &CStr, value: &[u8], flags: i32) -> io::Result<()> {
    // SAFETY: reads C strings and a live slice with its length.
    let done = unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), flags) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Whether a file that was opened with `O_PATH` has an attribute of that name. A link has none.
#[must_use]
pub fn has_attribute(fd: BorrowedFd<'_>, name: &[u8]) -> bool {
    let path = CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    let (Ok(path), Ok(name)) = (path, CString::new(name)) else {
        return false;
    };
    // SAFETY: reads C strings; with no room given, only the size is told.
    unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) >= 0 }
}

/// Removes an extended attribute (removexattr(2)).
///
/// # Errors
/// The operating system's.
pub fn remove_attribute(path: &CStr, name: &CStr) -> io::Result<()> {
    // SAFETY: reads C strings.
    let done = unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this status.
    Exited(i32),
    /// By this signal, real-time signals included.
    Killed(i32),
}

/// Waits for the process behind a pidfd, and frees its process id when `reap` is set.
///
/// # Errors
/// `ECHILD` when it is no child of the caller, or was reaped before.
pub fn wait_for(pidfd: BorrowedFd<'_>, reap: bool) -> io::Result<End> {
    let flags = libc::WEXITED | if reap { 0 } else { libc::WNOWAIT };
    let id = libc::id_t::try_from(pidfd.as_raw_fd()).map_err(io::Error::other)?;
    loop {
        // SAFETY: fills a zeroed structure of its own type, whose child fields waitid(2) sets.
        let (done, code, status) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (
                libc::waitid(libc::P_PIDFD, id, &raw mut info, flags),
                info.si_code,
                info.si_status(),
            )
        };
        if done == 0 {
            return Ok(if code == libc::CLD_EXITED {
                End::Exited(status)
            } else {
                End::Killed(status)
            });
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// A descriptor of the process with this number (pidfd_open(2)).
///
/// # Errors
/// `ESRCH` when there is none.
pub fn open_process(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor, and nobody else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a signal to the process behind a pidfd; a process id that was used again is never hit.
///
/// # Errors
/// `ESRCH` when the process has been reaped; `EPERM` when it may not be signalled.
pub fn signal(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    // SAFETY: pidfd_send_signal(2) reads no memory when `info` is null.
    let done = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
