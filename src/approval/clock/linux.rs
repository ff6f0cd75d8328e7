//! The boot's name and the clock that counts from it, through sleep as well.

use std::io;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

pub(super) fn boot() -> io::Result<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    match id.trim() {
        "" => Err(io::Error::other("the host does not name its boot")),
        id => Ok(id.to_owned()),
    }
}

pub(super) fn since_boot() -> io::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_BOOTTIME)?.into())
}
