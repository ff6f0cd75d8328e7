//! What the child does that becomes the program which makes a boundary from outside.
#![allow(unsafe_code)]

use std::ffi::{CString, c_int};
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::errno::Errno;

use crate::signals::default_signals;

/// Everything that child reads before it executes the program. It lives in the runner's stack frame, which
/// waits for that.
pub(crate) struct Outside<'a> {
    argv: Vec<*const libc::c_char>,
    env: [*const libc::c_char; 1],
    /// The descriptors that the program hands on.
    kept: &'a [RawFd],
    streams: [RawFd; 3],
    failed: AtomicI32,
}

impl<'a> Outside<'a> {
    /// The program is the first word. Its environment is empty: nothing of the command's reaches it.
    pub(crate) fn new(argv: &'a [CString], kept: &'a [RawFd], streams: [RawFd; 3]) -> Self {
        Self {
            argv: argv.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect(),
            env: [ptr::null()],
            kept,
            streams,
            failed: AtomicI32::new(0),
        }
    }

    /// Why the program could not be executed.
    pub(crate) fn failed(&self) -> Option<Errno> {
        let errno = self.failed.load(Ordering::Acquire);
        (errno != 0).then(|| Errno::from_raw(errno))
    }
}

/// The child's work: becomes the program. What comes back is an exit status that nobody reads.
pub(crate) fn become_outside(outside: &Outside<'_>, parent: libc::pid_t) -> c_int {
    let errno = become_program(outside, parent);
    outside.failed.store(errno as i32, Ordering::Release);
    125
}

/// Executes the program; gives why it could not.
fn become_program(outside: &Outside<'_>, parent: libc::pid_t) -> Errno {
    default_signals();
    // SAFETY: numbers, and structures on this stack; then C strings in null-terminated arrays that the
    // waiting runner keeps alive.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
            return Errno::last();
        }
        if libc::getppid() != parent {
            return Errno::ESRCH;
        }
        for (number, fd) in (0..).zip(outside.streams) {
            if libc::dup2(fd, number) < 0 {
                return Errno::last();
            }
        }
        if libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) < 0 {
            return Errno::last();
        }
        for fd in outside.kept {
            if libc::fcntl(*fd, libc::F_SETFD, 0) < 0 {
                return Errno::last();
            }
        }
        // What a terminal sends to the caller's group, which the command belongs to, is not for the program
        // and the launcher. The program waits for its child, so that one signal gets through.
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut blocked);
        libc::sigdelset(&raw mut blocked, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const blocked, ptr::null_mut());
        libc::execve(outside.argv[0], outside.argv.as_ptr(), outside.env.as_ptr());
    }
    Errno::last()
}
