//! System calls that touch nothing but their arguments.
//!
//! The C library's wrappers keep errno in memory of the calling thread. The reaper shares that
//! memory with a thread of the runner, so it uses these instead.
#![allow(unsafe_code)]

use std::arch::asm;
use std::ffi::{CStr, c_int, c_long, c_uint};
use std::os::fd::RawFd;

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

/// Opens a file for reading.
pub(crate) fn open(path: &CStr) -> Option<RawFd> {
    let arguments = [
        int(libc::AT_FDCWD),
        address(path.as_ptr()),
        int(libc::O_RDONLY | libc::O_CLOEXEC),
        0,
        0,
        0,
    ];
    // SAFETY: a C string, and numbers.
    let fd = unsafe { call(libc::SYS_openat, arguments) };
    c_int::try_from(fd).ok().filter(|fd| *fd >= 0)
}

/// Closes a descriptor of this process's own.
pub(crate) fn close(fd: RawFd) {
    // SAFETY: a descriptor of this process's own.
    unsafe { call(libc::SYS_close, [int(fd), 0, 0, 0, 0, 0]) };
}

/// Closes the descriptors from one number to another. An empty range is refused.
pub(crate) fn close_range(from: c_uint, to: c_uint) {
    if from <= to && !(from == 0 && to == c_uint::MAX) {
        // SAFETY: takes numbers only (close_range(2)).
        unsafe { call(libc::SYS_close_range, [from.into(), to.into(), 0, 0, 0, 0]) };
    }
}

/// Kills a process or a group. False when there is none, or it must not be.
pub(crate) fn kill(pid: c_int) -> bool {
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_kill, [int(pid), int(libc::SIGKILL), 0, 0, 0, 0]) == 0 }
}

/// Reads into a buffer, and gives how much came: nothing at the end, and on failure.
pub(crate) fn read(fd: RawFd, bytes: &mut [u8]) -> usize {
    let len = c_long::try_from(bytes.len()).unwrap_or(0);
    // SAFETY: a live buffer of that size.
    let got = unsafe { call(libc::SYS_read, [int(fd), address(bytes.as_mut_ptr()), len, 0, 0, 0]) };
    usize::try_from(got).unwrap_or(0)
}

/// Ends the process.
pub(crate) fn exit() -> ! {
    loop {
        // SAFETY: takes a number, and does not return.
        unsafe { call(libc::SYS_exit_group, [0; 6]) };
    }
}
