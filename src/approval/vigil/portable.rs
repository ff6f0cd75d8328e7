//! Nothing tells of new names: one has to look.

use std::io;
use std::os::fd::BorrowedFd;

use crate::state::StateDir;

pub(super) enum Bell {}

impl Bell {
    pub(super) fn hang(_directory: &StateDir) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }

    pub(super) fn hush(&self) {
        match *self {}
    }
}
