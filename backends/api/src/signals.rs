//! What a program finds of signals when it starts.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr;

/// The highest signal number of Linux.
const LAST_SIGNAL: c_int = 64;

/// Sets each signal back to what a fresh program expects: ignored ones survive exec.
pub(crate) fn default_signals() {
    let default = [0_u64; 4];
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: reads a zeroed `struct sigaction` of the kernel's size. The raw call, because the C
        // library keeps two signals to itself.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                ptr::null::<u64>(),
                size_of::<u64>(),
            );
        }
    }
}
