//! The few calls of the launch that have no safe wrapper.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask};
use nix::unistd::ForkResult;

use crate::ChildLimit;
use crate::descriptor::End;

/// Takes over descriptors whose numbers this process was told or just given.
pub(super) fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(nix::errno::Errno::EBADF.into());
    }
    // SAFETY: asks for the flags of a number, which fails for one that is not open.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and only the caller knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A descriptor under a number that somebody chose.
pub(super) fn place(fd: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
    // SAFETY: numbers only; what had the number is closed.
    if unsafe { libc::dup2(fd.as_raw_fd(), number) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // dup2(2) leaves a descriptor alone that has the number already.
    let_through(number)
}

/// Lets a descriptor through exec.
pub(super) fn let_through(number: RawFd) -> io::Result<()> {
    // SAFETY: a number and no flags.
    if unsafe { libc::fcntl(number, libc::F_SETFD, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Keeps a descriptor from going through exec. One that is not open does not go anyway.
pub(super) fn hold_back(number: RawFd) {
    // SAFETY: a number and a flag.
    unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
}

/// Closes every descriptor but the standard ones. For a process that has opened none of its own.
///
/// # Errors
/// The operating system's, when it does not list them.
pub(super) fn close_all() -> io::Result<()> {
    for number in open_descriptors()? {
        // SAFETY: nobody in this process knows of it. The one that the list was read from is closed already.
        unsafe { libc::close(number) };
    }
    Ok(())
}

/// The numbers of the open descriptors but for the standard ones; one of them is of the reading itself,
/// and closed by now.
///
/// # Errors
/// The operating system's, when it does not list them.
pub(super) fn open_descriptors() -> io::Result<Vec<RawFd>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir("/dev/fd")? {
        let name = entry?.file_name();
        let number: Option<RawFd> = name.to_str().and_then(|name| name.parse().ok());
        numbers.push(number.ok_or(io::ErrorKind::InvalidData)?);
    }
    numbers.retain(|number| *number > 2);
    Ok(numbers)
}

/// A close-on-exec duplicate whose number is `least` or more.
pub(super) fn raise(fd: RawFd, least: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes any number and answers EBADF for one that is not open.
    let raised = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, least) };
    if raised < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(raised) })
}

/// One of this process's standard streams, which the program opened at its start if they were closed.
pub(super) const fn standard(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: nobody ever closes these.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Makes a second process. For one that has no other thread.
pub(super) fn fork() -> nix::Result<ForkResult> {
    // SAFETY: without other threads, the child may do all that its parent may.
    unsafe { nix::unistd::fork() }
}

/// Gives every signal the meaning that a fresh program expects, and lets it through.
pub(super) fn fresh_signals() -> nix::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in Signal::iterator() {
        if !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP) {
            // SAFETY: the default runs no code of ours.
            unsafe { sigaction(signal, &default) }?;
        }
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

/// Takes no notice of a signal from here on.
pub(super) fn ignore(signal: Signal) {
    let nothing = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: ignoring runs no code of ours. It fails for no signal that this is used for.
    let _ = unsafe { sigaction(signal, &nothing) };
}

/// What became of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It was stopped.
    Stopped,
    /// It has ended, and keeps its number until it is reaped.
    Ended,
}

/// Waits until a child has stopped or ended. Its end is only looked at.
pub(super) fn await_turn(child: c_int) -> io::Result<Turn> {
    let id = libc::id_t::try_from(child).map_err(io::Error::other)?;
    loop {
        // SAFETY: fills a zeroed structure of its own type.
        let (done, code) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT;
            (libc::waitid(libc::P_PID, id, &raw mut info, options), info.si_code)
        };
        if done != 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        if code != libc::CLD_STOPPED {
            return Ok(Turn::Ended);
        }
        // The stop is taken, so that the next look does not find it again.
        // SAFETY: as above.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, id, &raw mut info, libc::WSTOPPED | libc::WNOHANG);
        }
        return Ok(Turn::Stopped);
    }
}

/// Takes a child's end, and gives its number free. None when somebody else has.
pub(super) fn reap(child: c_int) -> Option<End> {
    loop {
        let mut status = 0;
        // SAFETY: fills one number of this stack. The raw call, because signals without a name are ends, too.
        let got = unsafe { libc::waitpid(child, &raw mut status, 0) };
        match got {
            got if got == child && libc::WIFEXITED(status) => return Some(End::Exited(libc::WEXITSTATUS(status))),
            got if got == child && libc::WIFSIGNALED(status) => return Some(End::Killed(libc::WTERMSIG(status))),
            got if got == child || nix::errno::Errno::last() == nix::errno::Errno::EINTR => {}
            _ => return None,
        }
    }
}

/// Sets one of this process's limits.
pub(super) fn limit(limit: &ChildLimit) -> io::Result<()> {
    let new = libc::rlimit {
        rlim_cur: limit.soft,
        rlim_max: limit.hard,
    };
    // The type of the resource differs between systems.
    #[allow(clippy::cast_sign_loss, reason = "resources have small numbers")]
    let resource = limit.resource as _;
    // SAFETY: reads one structure of this stack.
    if unsafe { libc::setrlimit(resource, &raw const new) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
