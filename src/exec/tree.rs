//! The processes of a run, for what concerns all of them.

#[cfg(target_os = "linux")]
#[path = "tree/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "tree/reaper.rs"]
mod system;

pub(super) use system::{is_stopped, signal};
