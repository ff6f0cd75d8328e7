//! Where the boot has no name, the clock alone tells of a new one: it begins anew. (On macOS this clock
//! runs on while the machine sleeps.)

use std::io;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

#[allow(clippy::unnecessary_wraps, reason = "other systems have to read it")]
pub(super) fn boot() -> io::Result<String> {
    Ok("unnamed".to_owned())
}

pub(super) fn since_boot() -> io::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_MONOTONIC)?.into())
}
