//! The layers that a confined command puts on itself, under every backend of Linux.
//!
//! Capabilities dropped, a Landlock domain, a system call filter, and the plan that a policy makes of
//! them together with read-only mounts. How the mounts are made is a backend's own affair.
#![deny(unsafe_code)]
#![cfg(target_os = "linux")]

mod attempts;
mod confinement;
mod covered;
mod filter;
mod kernel;
mod plan;
mod ruleset;

pub use attempts::{Breakout, all_refused};
pub use confinement::Confinement;
pub use covered::nothing_covered_in_proc;
pub use kernel::{landlock_abi, own_process};
pub use plan::{Ground, SHARED_MEMORY, coverage, plan};
pub use ruleset::Rulesets;
