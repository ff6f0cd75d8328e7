//! Memory that a process runs on while it shares the runner's, and the clone(2) that starts it there.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::AtomicU32;

use nix::errno::Errno;

/// Ample for the steps of a launch, which keep small structures on it and call nothing deep.
const SIZE: usize = 64 * 1024;
/// A page that may not be touched, below: running over the end is a fault and nothing worse.
const GUARD: usize = 4096;

/// A stack, given back when this is dropped: only when nothing runs on it any more.
#[derive(Debug)]
pub(crate) struct Stack(*mut c_void);

// SAFETY: it is memory of the whole process, and only an address is kept of it here.
unsafe impl Send for Stack {}
// SAFETY: as above; nothing is read or written through a shared reference.
unsafe impl Sync for Stack {}

impl Stack {
    /// Fresh memory.
    ///
    /// # Errors
    /// The operating system's, when it has none to give.
    pub(crate) fn new() -> Result<Self, std::io::Error> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
        // SAFETY: asks for memory that nobody uses, then forbids the lowest page of it.
        unsafe {
            let memory = libc::mmap(
                ptr::null_mut(),
                GUARD + SIZE,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            );
            if memory == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error());
            }
            let stack = Self(memory);
            if libc::mprotect(memory, GUARD, libc::PROT_NONE) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(stack)
        }
    }

    /// Where a stack that grows downwards begins: page-aligned, as every ABI wants.
    pub(crate) fn top(&self) -> *mut c_void {
        // SAFETY: one past the end of the memory.
        unsafe { self.0.add(GUARD + SIZE) }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size, and by this value's contract no longer run on.
        unsafe { libc::munmap(self.0, GUARD + SIZE) };
    }
}

/// Starts a process at `entry` on a stack, and gives its id and a descriptor of it.
///
/// With `CLONE_VM` in the flags it shares this process's memory. The kernel clears the gate
/// when it has ended (`CLONE_CHILD_CLEARTID`); without a gate, `CLONE_VFORK` must be in the flags, and
/// this returns when it has executed a program or ended. The stack and the gate must live until it has ended.
///
/// # Errors
/// What clone(2) fails with.
pub(crate) fn clone_onto<T>(
    stack: &Stack,
    flags: c_int,
    entry: extern "C" fn(*mut c_void) -> c_int,
    argument: &T,
    gate: Option<&AtomicU32>,
) -> Result<(i32, OwnedFd), Errno> {
    let word = gate.map_or(ptr::null_mut(), AtomicU32::as_ptr);
    let clears = if gate.is_some() { libc::CLONE_CHILD_CLEARTID } else { 0 };
    let mut pidfd: RawFd = -1;
    let argument: *const T = argument;
    // SAFETY: the stack is mapped, and every caller keeps it and the argument alive as is said above;
    // the entries take raw steps only.
    let pid = unsafe {
        libc::clone(
            entry,
            stack.top(),
            flags | clears | libc::CLONE_PIDFD | libc::SIGCHLD,
            argument.cast_mut().cast(),
            &raw mut pidfd,
            ptr::null_mut::<c_void>(),
            word,
        )
    };
    if pid < 0 {
        return Err(Errno::last());
    }
    // SAFETY: CLONE_PIDFD stored a new descriptor that nobody else owns.
    Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}
