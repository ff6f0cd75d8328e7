//! What every record says of where and when it was written.

use nix::time::{ClockId, clock_gettime};

/// Where records are written.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) boot: String,
    pub(super) name: String,
    pub(super) uid: u32,
}

impl Host {
    /// This one, now.
    pub(super) fn here() -> Self {
        Self {
            boot: boot(),
            name: host_name(),
            uid: nix::unistd::getuid().as_raw(),
        }
    }
}

/// When a record is written: the time of day, which may jump, and the time since this boot, which does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) wall: jiff::Timestamp,
    pub(super) mono_ns: u64,
}

/// A clock that goes on while the machine sleeps.
#[cfg(target_os = "linux")]
const STEADY: ClockId = ClockId::CLOCK_BOOTTIME;
#[cfg(not(target_os = "linux"))]
const STEADY: ClockId = ClockId::CLOCK_MONOTONIC;

impl Moment {
    pub(super) fn now() -> Self {
        let steady = clock_gettime(STEADY).map(std::time::Duration::from).unwrap_or_default();
        Self {
            wall: jiff::Timestamp::now(),
            mono_ns: u64::try_from(steady.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// The time of day as records have it: RFC 3339 with microseconds, in UTC.
    pub(super) fn time(self) -> String {
        format!("{:.6}", self.wall)
    }

    /// A fresh UUID of version 7.
    pub(super) fn id(self) -> String {
        let millis = u64::try_from(self.wall.as_millisecond()).unwrap_or_default();
        crate::ids::at(millis)
    }
}

/// The name of this machine.
pub(super) fn host_name() -> String {
    nix::unistd::gethostname().map_or_else(|_| "unknown".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// What tells this boot from every other.
#[cfg(target_os = "linux")]
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| UNKNOWN.to_owned(), |id| id.trim_end().to_owned())
}

#[cfg(not(target_os = "linux"))]
fn boot() -> String {
    UNKNOWN.to_owned()
}

/// Stands for a boot that the host does not name.
pub(super) const UNKNOWN: &str = "unknown";
