//! Signals from a signalfd(2).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// What these signals, which are blocked, are read from.
pub(super) fn source(signals: SigSet) -> io::Result<OwnedFd> {
    let fd = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    fd.as_fd().try_clone_to_owned()
}
