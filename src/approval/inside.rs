//! Whether somebody who answers is inside a confined run: what a command was confined in must not be
//! loosened by that command.

use std::ffi::OsString;

#[cfg(target_os = "linux")]
#[path = "inside/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "inside/portable.rs"]
mod system;

/// The variable by which a run's processes know it.
const RUN: &str = "RINGFENCE_RUN_ID";

/// The run that somebody is inside of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Its name, as far as the process tells.
    pub run: String,
}

/// The run that this process is inside of: its own environment, which `own` gives from the caller, or
/// that of a process above it names one.
#[must_use]
pub fn around(own: Option<OsString>) -> Option<Inside> {
    own.map(|run| run.to_string_lossy().into_owned())
        .or_else(|| system::above(RUN))
        .map(|run| Inside { run })
}

/// A run that confines nothing and belongs to the session, and still has a process: it could write the
/// answer itself. Only what processes tell of themselves is seen.
pub(super) fn unconfined_run_of(session: &str) -> Option<String> {
    system::with(
        &[("RINGFENCE_SESSION", session), ("RINGFENCE_MODE", "danger-full-access")],
        RUN,
    )
}
