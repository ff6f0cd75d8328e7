//! The few calls on descriptors and processes that have no safe wrapper, as macOS has them.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

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
/// A closed reader is an error and no death (SIGPIPE). The standard descriptors are open, so that
/// no other file ever takes their numbers.
pub fn prepare_process() {
    // SAFETY: dispositions that run no code of ours; descriptor numbers; a constant path.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
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

/// Whether somebody already watches the calls of this process: here nobody can.
#[must_use]
pub const fn is_filtered() -> bool {
    false
}

/// Random bytes of the kernel's (getentropy(2)).
///
/// # Errors
/// The operating system's, when it has none to give.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // SAFETY: fills a live array of the given length, all of it or nothing.
    if unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), N) } == 0 {
        Ok(bytes)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}
