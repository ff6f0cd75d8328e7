//! When a request or a grant ends: by the clock that runs on while the machine sleeps, within one boot of
//! it, and by the wall clock as well. A clock that jumps lengthens nothing.

use std::io;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Expiry;

#[cfg(target_os = "linux")]
#[path = "clock/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "clock/portable.rs"]
mod system;

/// A moment, as both clocks have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Moment {
    /// The boot of the host.
    pub boot: String,
    /// Milliseconds since that boot.
    pub since_boot_ms: u64,
    /// Milliseconds since 1970.
    pub wall_ms: u64,
}

impl Moment {
    /// This moment.
    ///
    /// # Errors
    /// The operating system's, when it does not tell.
    pub fn now() -> io::Result<Self> {
        let wall = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_err(io::Error::other)?;
        Ok(Self {
            boot: system::boot()?,
            since_boot_ms: milliseconds(system::since_boot()?),
            wall_ms: milliseconds(wall),
        })
    }

    /// The end that comes this long after it.
    #[must_use]
    pub fn end_after(&self, time: Duration) -> Deadline {
        Deadline {
            begun: self.clone(),
            after_ms: milliseconds(time),
        }
    }

    /// The moment by the wall clock, as documents write it.
    #[must_use]
    pub fn timestamp(&self) -> String {
        stamp(self.wall_ms)
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// An end that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deadline {
    begun: Moment,
    after_ms: u64,
}

/// What is left until an end, or why nothing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// This much.
    Time(Duration),
    /// It has come.
    Over,
    /// The host was started anew.
    Rebooted,
    /// The wall clock has come to it before its time.
    ClockJumped,
}

impl Left {
    /// What ran out; `over` when it did so in the ordinary way.
    pub(crate) const fn expiry(self, over: Expiry) -> Option<Expiry> {
        match self {
            Self::Time(_) => None,
            Self::Over => Some(over),
            Self::Rebooted => Some(Expiry::Rebooted),
            Self::ClockJumped => Some(Expiry::ClockJumped),
        }
    }
}

impl Deadline {
    /// What is left of it at that moment.
    pub(crate) fn left(&self, now: &Moment) -> Left {
        if now.boot != self.begun.boot || now.since_boot_ms < self.begun.since_boot_ms {
            return Left::Rebooted;
        }
        let passed = now.since_boot_ms - self.begun.since_boot_ms;
        if passed >= self.after_ms {
            Left::Over
        } else if now.wall_ms >= self.begun.wall_ms.saturating_add(self.after_ms) {
            Left::ClockJumped
        } else {
            Left::Time(Duration::from_millis(self.after_ms - passed))
        }
    }

    /// How long it was when it was set.
    #[must_use]
    pub const fn length(&self) -> Duration {
        Duration::from_millis(self.after_ms)
    }

    /// The end by the wall clock, as documents write it.
    #[must_use]
    pub fn timestamp(&self) -> String {
        stamp(self.begun.wall_ms.saturating_add(self.after_ms))
    }
}

/// A moment of the wall clock, as documents write it.
fn stamp(wall_ms: u64) -> String {
    i64::try_from(wall_ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .map_or_else(String::new, |it| it.to_string())
}

/// The clocks that a desk goes by.
#[derive(Clone, Debug, Default)]
pub(crate) enum Clock {
    /// The system's.
    #[default]
    System,
    /// One that a test sets.
    #[cfg(test)]
    Set(std::sync::Arc<std::sync::Mutex<Moment>>),
}

impl Clock {
    pub(crate) fn now(&self) -> io::Result<Moment> {
        match self {
            Self::System => Moment::now(),
            #[cfg(test)]
            Self::Set(moment) => Ok(moment.lock().unwrap().clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(ticks: u64, wall: u64) -> Moment {
        Moment {
            boot: "one".to_owned(),
            since_boot_ms: ticks * 1000,
            wall_ms: wall * 1000,
        }
    }

    #[test]
    fn a_clock_that_jumps_lengthens_nothing() {
        let end = moment(100, 5000).end_after(Duration::from_secs(10));
        assert_eq!(end.left(&moment(104, 5004)), Left::Time(Duration::from_secs(6)));
        assert_eq!(end.left(&moment(110, 5010)), Left::Over);
        assert_eq!(end.left(&moment(110, 1)), Left::Over, "set back");
        assert_eq!(end.left(&moment(101, 6000)), Left::ClockJumped, "set forward");
        assert_eq!(end.left(&moment(1, 5001)), Left::Rebooted, "the ticks began anew");
        let mut other = moment(101, 5001);
        other.boot = "two".to_owned();
        assert_eq!(end.left(&other), Left::Rebooted);
    }

    #[test]
    fn this_host_tells_its_moment() {
        let (one, two) = (Moment::now().unwrap(), Moment::now().unwrap());
        assert_eq!(one.boot, two.boot);
        assert!(one.since_boot_ms <= two.since_boot_ms && one.since_boot_ms > 0);
        assert_eq!(stamp(1_000), "1970-01-01T00:00:01Z");
    }
}
