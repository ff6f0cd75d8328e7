//! Bells by pipes, and signals by the bytes of a pipe, each of them a signal's number.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// What stands for a signal's code where nobody tells who sent it: that of a key. A command that shares
/// the terminal then has those of keys to itself, whoever sent them.
pub(super) const SI_KERNEL: i32 = 0x80;

/// What wakes one that waits.
#[derive(Debug)]
pub(super) struct Bell {
    read: PipeReader,
    write: PipeWriter,
}

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        let (read, write) = io::pipe()?;
        fcntl(&read, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        fcntl(&write, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self { read, write })
    }

    /// Makes it readable. A pipe that is full has been rung before.
    pub(super) fn ring(&self) {
        let _ = nix::unistd::write(&self.write, &[1]);
    }

    /// Makes it unreadable until it is rung again.
    pub(super) fn hush(&self) {
        let mut bytes = [0; 64];
        while nix::unistd::read(&self.read, &mut bytes).is_ok_and(|got| got > 0) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

/// The number and the code of the next signal, if there is one.
pub(super) fn signal(fd: &OwnedFd) -> Option<(i32, i32)> {
    let mut byte = [0];
    (nix::unistd::read(fd, &mut byte) == Ok(1)).then(|| (i32::from(byte[0]), SI_KERNEL))
}
