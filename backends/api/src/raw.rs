//! System calls that touch nothing but their arguments.
//!
//! The C library's wrappers keep errno in memory of the calling thread. The reaper shares that
//! memory with a thread of the runner, so it uses these instead.
#![allow(unsafe_code)]

use std::arch::asm;
use std::ffi::{c_int, c_long};

/// Makes a system call, and returns what the kernel does: a negative errno on failure.
///
/// # Safety
/// As for the call itself.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn call(number: c_long, arguments: [c_long; 6]) -> c_long {
    let result: c_long;
    // SAFETY: the calling convention of the x86-64 kernel (syscall(2)); the caller answers for the rest.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Makes a system call, and returns what the kernel does: a negative errno on failure.
///
/// # Safety
/// As for the call itself.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn call(number: c_long, arguments: [c_long; 6]) -> c_long {
    let result: c_long;
    // SAFETY: the calling convention of the arm64 kernel (syscall(2)); the caller answers for the rest.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") arguments[0] => result,
            in("x1") arguments[1],
            in("x2") arguments[2],
            in("x3") arguments[3],
            in("x4") arguments[4],
            in("x5") arguments[5],
            options(nostack),
        );
    }
    result
}

/// A number as an argument.
pub(crate) fn int(number: c_int) -> c_long {
    c_long::from(number)
}

/// An address as an argument.
pub(crate) fn address<T>(pointer: *const T) -> c_long {
    pointer as c_long
}
