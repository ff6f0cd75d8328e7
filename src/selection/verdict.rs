//! Verdicts that outlive a process, where there is a place for them that no confined command reaches.

#[cfg(target_os = "linux")]
#[path = "verdict/keyring.rs"]
mod kept;
#[cfg(not(target_os = "linux"))]
#[path = "verdict/nowhere.rs"]
mod kept;

pub(super) use kept::{forget, recall, remember};
