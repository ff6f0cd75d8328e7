//! Signals from a thread that waits for them, and writes the number of each into a pipe.

use std::io::{self, Write};
use std::os::fd::OwnedFd;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::SigSet;

/// What these signals, which are blocked in every thread, are read from.
pub(super) fn source(signals: SigSet) -> io::Result<OwnedFd> {
    let (read, mut write) = io::pipe()?;
    fcntl(&read, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    // It ends with the process, or when nobody reads any more.
    std::thread::Builder::new().spawn(move || {
        while let Ok(signal) = signals.wait() {
            let number = u8::try_from(signal as i32).unwrap_or(0);
            if write.write_all(&[number]).is_err() {
                return;
            }
        }
    })?;
    Ok(read.into())
}
