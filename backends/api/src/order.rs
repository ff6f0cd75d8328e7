//! What a launcher is told to do, as bytes that are handed to it in a file without a name.
//!
//! The launcher is this program once more, started inside a boundary that another program has made. It shares
//! no memory with its runner, so everything that a launch names travels with the order; descriptors are
//! inherited under the numbers they have.

use std::ffi::CString;
use std::os::fd::{AsRawFd, RawFd};

use nix::fcntl::SealFlag;
use serde::{Deserialize, Serialize};

use crate::image::ExecImage;
use crate::limit::ChildLimit;
use crate::task::{ChildStdio, Launch, Session};

/// Of a file that is handed on.
pub(crate) const SEALS: SealFlag = SealFlag::F_SEAL_SEAL
    .union(SealFlag::F_SEAL_SHRINK)
    .union(SealFlag::F_SEAL_GROW)
    .union(SealFlag::F_SEAL_WRITE);

/// One of the command's standard streams.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Stream {
    /// The descriptor of this number, 3 or more.
    Fd(RawFd),
    /// A character device, opened by its name: open(2) flags, and what it must be (`st_rdev`).
    Device { path: CString, flags: i32, device: u64 },
}

/// An order.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// What the boundary needs to be completed from within, in its backend's own words.
    pub(crate) boundary: Vec<u8>,
    /// The program, or nothing: then the boundary is tried.
    pub(crate) image: Option<ExecImage>,
    pub(crate) own_session: bool,
    pub(crate) stdio: [Stream; 3],
    /// The working directory, and the device and inode it must still be.
    pub(crate) workdir: (CString, u64, u64),
    pub(crate) extra: Option<RawFd>,
    pub(crate) limits: Vec<ChildLimit>,
}

impl Order {
    /// What a launch asks for. Streams that are the runner's own are those that were `held` for it.
    pub(crate) fn new(
        launch: &Launch<'_>,
        held: &[Option<RawFd>; 3],
        image: Option<&ExecImage>,
        boundary: Vec<u8>,
    ) -> Self {
        let stream = |number: usize| match (&launch.stdio[number], held[number]) {
            (ChildStdio::Device { path, flags, rdev }, _) => Stream::Device {
                path: (*path).to_owned(),
                flags: flags.bits(),
                device: *rdev,
            },
            (ChildStdio::Fd(fd), _) => Stream::Fd(fd.as_raw_fd()),
            (ChildStdio::Inherit, held) => Stream::Fd(held.unwrap_or(-1)),
        };
        let (workdir, id) = launch.workdir;
        Self {
            boundary,
            image: image.cloned(),
            own_session: launch.session == Session::Own,
            stdio: [stream(0), stream(1), stream(2)],
            workdir: (workdir.to_owned(), id.device, id.inode),
            extra: launch.extra.map(|fd| fd.as_raw_fd()),
            limits: launch.limits.to_vec(),
        }
    }
}
