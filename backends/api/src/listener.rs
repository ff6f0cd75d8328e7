//! The notifications of a seccomp filter (seccomp_unotify(2)): calls of confined processes that
//! wait for the runner's answer.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;

/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP` (linux/seccomp.h, Linux 6.6).
const SYNC_WAKE_UP: u64 = 1;

/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE` (linux/seccomp.h), as wide as its field.
const CONTINUE: u32 = 1;

/// The runner's end of a notifying filter.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// A call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Notification {
    /// Names this notification until it is answered or its caller is gone.
    pub id: u64,
    /// The thread that called.
    pub tid: i32,
    /// The call's number.
    pub number: i64,
    /// The call's arguments.
    pub args: [u64; 6],
}

/// What a waiting call is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To go on, and to be judged by the kernel.
    Continue,
    /// That it succeeded: its change was made for it.
    Done,
    /// That it failed.
    Fail(Errno),
}

impl Listener {
    /// Takes over a listener, and asks for wake-ups on the same processor where the kernel knows them.
    #[must_use]
    pub fn new(fd: OwnedFd) -> Self {
        // SAFETY: takes a number. A kernel without the flag says EINVAL, and nothing changes.
        unsafe { libc::ioctl(fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
        Self(fd)
    }

    /// Takes the next waiting call. Blocks when there is none: poll(2) first.
    ///
    /// # Errors
    /// `ENOENT` when the caller was killed meanwhile.
    pub fn receive(&self) -> Result<Notification, Errno> {
        // SAFETY: the kernel demands a zeroed structure, and fills it.
        let notification = unsafe {
            let mut notification: libc::seccomp_notif = std::mem::zeroed();
            Errno::result(libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut notification,
            ))?;
            notification
        };
        Ok(Notification {
            id: notification.id,
            tid: notification.pid.cast_signed(),
            number: i64::from(notification.data.nr),
            args: notification.data.args,
        })
    }

    /// Answers a waiting call.
    ///
    /// # Errors
    /// `ENOENT` when the caller is gone, which needs no answer.
    pub fn answer(&self, id: u64, answer: Answer) -> Result<(), Errno> {
        let (flags, error) = match answer {
            Answer::Continue => (CONTINUE, 0),
            Answer::Done => (0, 0),
            Answer::Fail(errno) => (0, -(errno as i32)),
        };
        let response = libc::seccomp_notif_resp {
            id,
            val: 0,
            error,
            flags,
        };
        // SAFETY: reads a live structure.
        Errno::result(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response) })
            .map(drop)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
