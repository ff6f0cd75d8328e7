//! Attempts to break out, which a probe makes inside a boundary before any command relies on it.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_long};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, stat};
use ringfence_backend::Attempt;

use crate::kernel;

/// A file that anybody may write when nothing confines them.
const SINK: &CStr = c"/dev/null";

/// Each attempt, and the refusals that prove a layer.
const EXPECTED: [(&str, &[Errno]); 6] = [
    ("create a file", &[Errno::EROFS, Errno::EACCES]),
    // EPERM would be the system's own refusal and prove nothing.
    ("change mode bits", &[Errno::EROFS]),
    ("make an io_uring", &[Errno::ENOSYS]),
    ("open a file system to mount", &[Errno::EPERM]),
    // The last two are refused by a Landlock domain alone.
    ("open a file for writing", &[Errno::EACCES]),
    ("take a descriptor from the runner", &[Errno::EPERM]),
];
/// How many attempts there are where there is no Landlock domain.
const WITHOUT_DOMAIN: usize = 4;

/// What a process inside a boundary tries.
#[derive(Debug)]
pub struct Breakout {
    mode: u32,
    /// The runner's process, from which it tries to take a descriptor.
    runner: Option<OwnedFd>,
}

impl Breakout {
    /// The attempts of a boundary with a Landlock domain, of which `runner` is the outside; without, of one without.
    ///
    /// # Errors
    /// Why nothing could be proved, in a sentence.
    pub fn new(runner: Option<OwnedFd>) -> Result<Self, String> {
        let mode = stat("/").map_err(|e| format!("/: {e}"))?.st_mode & 0o7777;
        Ok(Self { mode, runner })
    }

    /// The attempts against a boundary of this process's own making.
    ///
    /// # Errors
    /// Why nothing could be proved, in a sentence.
    pub fn of_this_process() -> Result<Self, String> {
        // Whoever cannot write it unconfined learns nothing from a refusal.
        open(SINK, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()).map_err(|errno| {
            format!("/dev/null cannot be opened for writing ({errno}), so confinement cannot be proved")
        })?;
        let runner = kernel::own_process().map_err(|errno| format!("a descriptor of the runner's process: {errno}"))?;
        Self::new(Some(runner))
    }

    /// The runner's process, as it was given.
    #[must_use]
    pub fn runner(&self) -> Option<BorrowedFd<'_>> {
        self.runner.as_ref().map(AsFd::as_fd)
    }
}

impl Attempt for Breakout {
    fn attempt(&self, number: u8) -> Option<i32> {
        match (number, &self.runner) {
            (0, _) => Some(create_in(c"/")),
            (1, _) => Some(change_mode(c"/", self.mode)),
            (2, _) => Some(io_uring()),
            (3, _) => Some(open_file_system()),
            (4, Some(_)) => Some(open_for_writing(SINK)),
            (5, Some(runner)) => Some(take_descriptor(runner.as_fd())),
            _ => None,
        }
    }
}

/// Whether every attempt was made and refused; `domain` says whether a Landlock domain is among the layers.
///
/// # Errors
/// Which attempt was not refused, or not made, in a sentence.
pub fn all_refused(tried: &[(u8, i32)], domain: bool) -> Result<(), String> {
    let made = if domain { EXPECTED.len() } else { WITHOUT_DOMAIN };
    for (number, (what, refusals)) in (0..).zip(EXPECTED).take(made) {
        let Some((_, errno)) = tried.iter().find(|(attempt, _)| *attempt == number) else {
            return Err(format!("the attempt to {what} was not made"));
        };
        if !refusals.contains(&Errno::from_raw(*errno)) {
            let outcome = if *errno == 0 {
                "succeeded".to_owned()
            } else {
                format!("ended with {}", Errno::from_raw(*errno))
            };
            return Err(format!("confined, the attempt to {what} {outcome}"));
        }
    }
    Ok(())
}

fn errno(result: c_long) -> i32 {
    if result < 0 { Errno::last_raw() } else { 0 }
}

/// Opens a path for writing.
fn open_for_writing(path: &CStr) -> i32 {
    // SAFETY: reads a C string.
    errno(c_long::from(unsafe {
        libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC)
    }))
}

/// Creates an unnamed file in a directory.
fn create_in(path: &CStr) -> i32 {
    let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: reads a C string.
    errno(c_long::from(unsafe { libc::open(path.as_ptr(), flags, 0o600) }))
}

/// Sets the mode bits of a path to `mode`, which should be what they are.
fn change_mode(path: &CStr, mode: u32) -> i32 {
    // SAFETY: reads a C string.
    errno(c_long::from(unsafe { libc::chmod(path.as_ptr(), mode) }))
}

/// Takes a descriptor out of another process.
fn take_descriptor(process: BorrowedFd<'_>) -> i32 {
    // SAFETY: takes numbers only.
    errno(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), 0, 0) })
}

/// Opens a file system to be mounted. Without privilege the filter's EPERM and the kernel's are one.
fn open_file_system() -> i32 {
    // SAFETY: reads a C string.
    errno(unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0) })
}

/// Asks for an io_uring.
fn io_uring() -> i32 {
    // SAFETY: a null parameter block is EFAULT where the call exists.
    errno(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, ptr::null::<u8>()) })
}
