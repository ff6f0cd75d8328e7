//! The few calls on descriptors and processes that have no safe wrapper.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

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

/// Lets the calling process learn of its children's ends, which it cannot when it was started with
/// SIGCHLD ignored (wait(2)). For a program, at its start; a library's host decides for itself.
pub fn heed_children() {
    // SAFETY: the default disposition runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
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
