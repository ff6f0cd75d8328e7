//! Bells by eventfd(2), and signals by signalfd(2).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::eventfd::{EfdFlags, EventFd};

pub(super) use nix::libc::SI_KERNEL;

/// The size of a signalfd(2) record, and where its number and its code stand.
const RECORD: usize = 128;
const NUMBER: usize = 0;
const CODE: usize = 8;

/// What wakes one that waits.
#[derive(Debug)]
pub(super) struct Bell(EventFd);

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self(EventFd::from_value_and_flags(0, flags)?))
    }

    /// Makes it readable. A counter that is full has been rung before.
    pub(super) fn ring(&self) {
        let _ = self.0.write(1);
    }

    /// Makes it unreadable until it is rung again.
    pub(super) fn hush(&self) {
        let _ = self.0.read();
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The number and the code of the next signal, if there is one.
pub(super) fn signal(fd: &OwnedFd) -> Option<(i32, i32)> {
    let mut record = [0; RECORD];
    if nix::unistd::read(fd, &mut record) != Ok(RECORD) {
        return None;
    }
    let word = |at: usize| record[at..].first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
    Some((word(NUMBER), word(CODE)))
}
