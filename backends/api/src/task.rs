//! What a child is to do, and with what.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use nix::fcntl::OFlag;

#[cfg(target_os = "linux")]
use crate::image::ExecImage;
#[cfg(target_os = "linux")]
use crate::outside::Outside;
use crate::{ChildLimit, FileId};

/// Whose session and terminal the command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    /// A session of its own, without a controlling terminal (setsid(2)).
    Own,
    /// The caller's session, process group and terminal.
    Callers,
}

/// What becomes one of the command's standard streams.
#[derive(Debug)]
pub enum ChildStdio<'a> {
    /// The runner's own stream of the same number.
    Inherit,
    /// This descriptor, whose number must be 3 or more.
    Fd(BorrowedFd<'a>),
    /// A character device, opened by its name inside the boundary so that the descriptor obeys it.
    Device {
        /// Its name.
        path: &'a CStr,
        /// open(2) flags.
        flags: OFlag,
        /// What stat(2) must say it is (`st_rdev`); anything else ends the launch.
        rdev: u64,
    },
}

/// Everything the child does besides its task.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Whose session.
    pub session: Session,
    /// Standard input, output and error.
    pub stdio: [ChildStdio<'a>; 3],
    /// The working directory, canonical, and what it must still be.
    pub workdir: (&'a CStr, FileId),
    /// One more descriptor that the command gets, under the number it has here.
    pub extra: Option<BorrowedFd<'a>>,
    /// The command's limits, set last of all.
    pub limits: &'a [ChildLimit],
}

#[cfg(target_os = "linux")]
/// Numbered attempts to break a boundary, made by a child inside it.
///
/// The same rules hold as for [`Boundary`](crate::Boundary): raw calls on prepared data.
pub trait Attempt {
    /// Makes attempt `number` and returns its errno, 0 for success; `None` after the last.
    fn attempt(&self, number: u8) -> Option<i32>;
}

#[cfg(target_os = "linux")]
/// What the child does once it is confined.
#[derive(Clone, Copy)]
pub(crate) enum Task<'a> {
    /// Executes a program.
    Exec(&'a ExecImage),
    /// Becomes the program that makes a boundary.
    Outside(&'a Outside<'a>),
    /// Tries the boundary and ends.
    Try(&'a dyn Attempt),
}
