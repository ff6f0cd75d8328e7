//! Resource limits of the command, set by the child on itself.
#![allow(unsafe_code)]

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
use crate::status::{Failure, Stage};
use std::ffi::c_int;
use std::io;

/// One limit, as prlimit(2) takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildLimit {
    /// The number of the resource, such as `RLIMIT_CPU`.
    pub resource: c_int,
    /// The limit in force, in the resource's own unit.
    pub soft: u64,
    /// How far the command may raise it.
    pub hard: u64,
}

/// The limit in force, and how far it may be raised, of this process.
///
/// # Errors
/// The operating system's, for a number that is no resource.
pub fn current_limit(resource: c_int) -> io::Result<(u64, u64)> {
    // The type of the resource differs from one C library to the next.
    #[allow(clippy::cast_sign_loss, reason = "resources have small numbers")]
    let resource = resource as _;
    // SAFETY: fills a zeroed structure of its own type.
    unsafe {
        let mut now: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(resource, &raw mut now) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((now.rlim_cur, now.rlim_max))
    }
}

#[cfg(target_os = "linux")]
/// Sets the calling process's limits. Takes raw steps only, for the child.
pub(crate) fn set(limits: &[ChildLimit]) -> Result<(), Failure> {
    for limit in limits {
        let new = libc::rlimit64 {
            rlim_cur: limit.soft,
            rlim_max: limit.hard,
        };
        let old = std::ptr::null_mut::<libc::rlimit64>();
        // SAFETY: reads one structure of this stack, and writes nothing back. The raw call, because
        // the C library's type of the resource differs from one library to the next.
        let set = unsafe { libc::syscall(libc::SYS_prlimit64, 0, limit.resource, &raw const new, old) };
        if set < 0 {
            return Err(Failure {
                stage: Stage::Limits,
                errno: nix::errno::Errno::last_raw(),
            });
        }
    }
    Ok(())
}
