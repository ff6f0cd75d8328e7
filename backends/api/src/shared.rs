//! What a reaper and its runner tell one another in the memory they share.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;
use nix::unistd::ftruncate;

use crate::descriptor::End;
use crate::raw::{address, call, int};

/// The gate is shut: the reaper still reads what the runner prepared.
const SHUT: u32 = 2;
/// It is open: the command is started, or could not be.
const OPEN: u32 = 1;

/// The facts of one run. They live as long as its reaper.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Shared {
    /// The kernel clears it when the reaper has ended (`CLONE_CHILD_CLEARTID`).
    gate: AtomicU32,
    status: AtomicI32,
    exited: AtomicBool,
    ended: AtomicBool,
    found: AtomicU32,
    gone: AtomicBool,
}

/// Facts in a file without a name, which two processes that share no memory both have mapped.
#[derive(Debug)]
pub(crate) struct Mapped(NonNull<Shared>);

// SAFETY: what is there is atomic, and stays mapped as long as this value lives.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// A file for the facts of one run.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn file() -> io::Result<OwnedFd> {
        let file = memfd_create(c"ringfence-facts", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
        ftruncate(&file, SIZE)?;
        // Whoever holds it cannot take the memory away from those who have it mapped.
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        Ok(file)
    }

    /// Maps the file; the runner does so first, and makes it new.
    ///
    /// # Errors
    /// The operating system's, and `EINVAL` for a file that is none of these.
    pub(crate) fn of(file: BorrowedFd<'_>, new: bool) -> io::Result<Self> {
        if fstat(file)?.st_size != SIZE {
            return Err(Errno::EINVAL.into());
        }
        let both = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: asks for new memory of a file that is large enough, whose alignment is a page's.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_of::<Shared>(),
                both,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast::<Shared>()).ok_or(Errno::ENOMEM)?;
        if new {
            // SAFETY: mapped for writing, and nobody else knows it yet.
            unsafe { memory.write(Shared::new()) };
        }
        Ok(Self(memory))
    }
}

/// The size of that file in bytes.
const SIZE: libc::off_t = 4096;

impl AsRef<Shared> for Mapped {
    fn as_ref(&self) -> &Shared {
        // SAFETY: mapped until this is dropped; every field is atomic.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `of` with this size.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Shared>()) };
    }
}

impl AsRef<Shared> for Shared {
    fn as_ref(&self) -> &Shared {
        self
    }
}

impl Shared {
    pub(crate) const fn new() -> Self {
        Self {
            gate: AtomicU32::new(SHUT),
            status: AtomicI32::new(0),
            exited: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            found: AtomicU32::new(0),
            gone: AtomicBool::new(false),
        }
    }

    pub(crate) const fn gate(&self) -> &AtomicU32 {
        &self.gate
    }

    /// The reaper: lets the runner go on.
    pub(crate) fn open(&self) {
        self.gate.store(OPEN, Ordering::Release);
        let word = address(self.gate.as_ptr());
        // SAFETY: a live word.
        unsafe { call(libc::SYS_futex, [word, int(libc::FUTEX_WAKE), 1, 0, 0, 0]) };
    }

    /// The runner: waits until the gate is open, or the reaper has ended before that.
    pub(crate) fn wait(&self) {
        while self.gate.load(Ordering::Acquire) == SHUT {
            let word = address(self.gate.as_ptr());
            // SAFETY: a live word, and no timeout.
            unsafe { call(libc::SYS_futex, [word, int(libc::FUTEX_WAIT), SHUT.into(), 0, 0, 0]) };
        }
    }

    /// The reaper: the command has ended.
    pub(crate) fn end(&self, exited: bool, status: i32) {
        self.exited.store(exited, Ordering::Relaxed);
        self.status.store(status, Ordering::Relaxed);
        self.ended.store(true, Ordering::Release);
    }

    /// How the command ended, if it has.
    pub(crate) fn ended(&self) -> Option<End> {
        let status = || self.status.load(Ordering::Relaxed);
        self.ended.load(Ordering::Acquire).then(|| {
            if self.exited.load(Ordering::Relaxed) {
                End::Exited(status())
            } else {
                End::Killed(status())
            }
        })
    }

    /// The reaper: no process of the run is left; so many were found when the command had ended.
    pub(crate) fn leave(&self, found: u32) {
        self.found.store(found, Ordering::Relaxed);
        self.gone.store(true, Ordering::Release);
    }

    /// How many processes were found when the command had ended, once none is left.
    pub(crate) fn gone(&self) -> Option<u32> {
        self.gone
            .load(Ordering::Acquire)
            .then(|| self.found.load(Ordering::Relaxed))
    }
}
