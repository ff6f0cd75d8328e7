//! The spawn step: one clone(2), the child's prepared steps, exec.
//!
//! The child is made with `CLONE_VM | CLONE_VFORK`: it costs the same whatever the size of the
//! runner, and the calling thread waits until the program is executed or the launch has failed.
//! Until then the child shares the runner's memory, so it takes raw steps on prepared data only.
//! It confines itself; no thread of the runner is ever confined.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_void};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

use crate::child::{Child, child_main};
use crate::image::ExecImage;
use crate::listener::{Listener, status_channel};
use crate::status::{Failure, RECORD, Record, Stage};
use crate::{Boundary, ChildLimit, FileId};

/// Ample for the child's steps, which keep small structures on it and call nothing deep.
const STACK: usize = 64 * 1024;

/// Whose session and terminal the command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    /// A session of its own, without a controlling terminal (setsid(2)).
    Own,
    /// The caller's session, process group and terminal.
    Callers,
}

/// What becomes one of the command's standard streams.
#[derive(Debug)]
pub enum ChildStdio<'a> {
    /// The runner's own stream of the same number.
    Inherit,
    /// This descriptor, whose number must be 3 or more.
    Fd(BorrowedFd<'a>),
    /// A character device, opened by its name inside the boundary so that the descriptor obeys it.
    Device {
        /// Its name.
        path: &'a CStr,
        /// open(2) flags.
        flags: OFlag,
        /// What stat(2) must say it is (`st_rdev`); anything else ends the launch.
        rdev: u64,
    },
}

/// Everything the child does besides its task.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The boundary to enter.
    pub boundary: &'a dyn Boundary,
    /// Whose session.
    pub session: Session,
    /// Standard input, output and error.
    pub stdio: [ChildStdio<'a>; 3],
    /// The working directory, canonical, and what it must still be.
    pub workdir: (&'a CStr, FileId),
    /// One more descriptor that the command gets, under the number it has here.
    pub extra: Option<BorrowedFd<'a>>,
    /// The command's limits, set last of all.
    pub limits: &'a [ChildLimit],
}

/// Numbered attempts to break a boundary, made by a child inside it.
///
/// The same rules hold as for [`Boundary`]: raw calls on prepared data.
pub trait Attempt {
    /// Makes attempt `number` and returns its errno, 0 for success; `None` after the last.
    fn attempt(&self, number: u8) -> Option<i32>;
}

/// What the child does once it is confined.
#[derive(Clone, Copy)]
pub enum Task<'a> {
    /// Executes a program.
    Exec(&'a ExecImage),
    /// Tries the boundary and ends.
    Try(&'a dyn Attempt),
}

/// A process that was started.
#[derive(Debug)]
pub struct Launched {
    /// Its process id, for reports and for reaping; signals go through the pidfd.
    pub pid: i32,
    /// A descriptor of the process.
    pub pidfd: OwnedFd,
    /// Results of a trial, by attempt.
    pub tried: Vec<(u8, i32)>,
    /// Where calls of the command's processes wait for an answer, when the boundary is observed.
    pub listener: Option<Listener>,
}

/// Why no command ran.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The runner could not prepare the launch.
    #[error("could not prepare the launch: {0}")]
    Prepare(#[from] io::Error),
    /// A step failed; the command never ran.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The child ended before it had said anything.
    #[error("the launching process ended before the boundary stood")]
    Vanished,
}

/// Starts a child that enters the boundary and then does its task.
///
/// # Errors
/// [`LaunchError`]; the command has then not run, and no process is left.
pub fn launch(launch: &Launch<'_>, task: Task<'_>) -> Result<Launched, LaunchError> {
    let (read, write) = status_channel()?;
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
    };
    let (argv, env) = match task {
        Task::Exec(image) => (pointers(&image.argv), pointers(&image.env)),
        Task::Try(_) => (Vec::new(), Vec::new()),
    };
    let child = Child {
        launch,
        task,
        argv,
        env,
        status: write.as_raw_fd(),
        parent: nix::unistd::getpid().as_raw(),
    };
    // Every signal stays blocked around the clone: a handler of the runner must not run in the child.
    let mut before = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before)).map_err(io::Error::from)?;
    let cloned = clone_child(&child);
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None).map_err(io::Error::from)?;
    let (pid, pidfd) = cloned.map_err(|errno| Failure {
        stage: Stage::Namespaces,
        errno: errno as i32,
    })?;
    drop(write);
    conclude(pid, pidfd, &read, matches!(task, Task::Try(_)))
}

/// Reads the status channel. The child has executed its program or ended: all records are there.
fn conclude(pid: i32, pidfd: OwnedFd, read: &OwnedFd, trial: bool) -> Result<Launched, LaunchError> {
    let mut armed = false;
    let mut failed = None;
    let mut tried = Vec::new();
    let mut bytes = [0; RECORD];
    let mut listener = None;
    let mut lost = false;
    while receive(read, &mut bytes, &mut listener, &mut lost) {
        match Record::decode(bytes) {
            Some(Record::Armed) => armed = true,
            Some(Record::Failed(failure)) => failed = Some(failure),
            Some(Record::Tried { attempt, errno }) => tried.push((attempt, errno)),
            None => {}
        }
    }
    if lost {
        // The command has begun, and every call that changes files fails: it is ended at once.
        let _ = crate::descriptor::signal(pidfd.as_fd(), libc::SIGKILL);
        failed = Some(Failure {
            stage: Stage::Listener,
            errno: libc::EMFILE,
        });
    }
    let over = trial || failed.is_some() || !armed;
    if over {
        // A child that is no command of the caller's is reaped here; its status says nothing new.
        let _ = crate::descriptor::signal(pidfd.as_fd(), libc::SIGKILL);
        let _ = crate::descriptor::wait_for(pidfd.as_fd(), true);
    }
    match failed {
        Some(failure) => Err(failure.into()),
        None if !armed => Err(LaunchError::Vanished),
        None => Ok(Launched {
            pid,
            pidfd,
            tried,
            listener,
        }),
    }
}

/// Takes one record, and the descriptor that came with it. False when there are no more.
fn receive(read: &OwnedFd, bytes: &mut [u8; RECORD], listener: &mut Option<Listener>, lost: &mut bool) -> bool {
    let mut space = nix::cmsg_space!(RawFd);
    let mut parts = [IoSliceMut::new(bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let Ok(message) = recvmsg::<()>(read.as_raw_fd(), &mut parts, Some(&mut space), flags) else {
        return false;
    };
    // Without room for one more descriptor the kernel drops the listener (unix(7)).
    *lost |= message.flags.contains(MsgFlags::MSG_CTRUNC);
    for control in message.cmsgs().into_iter().flatten() {
        if let ControlMessageOwned::ScmRights(fds) = control {
            for fd in fds {
                // SAFETY: the kernel just put this descriptor into our table, and nobody else knows it.
                *listener = Some(Listener::new(unsafe { OwnedFd::from_raw_fd(fd) }));
            }
        }
    }
    message.bytes == RECORD
}

fn clone_child(child: &Child<'_>) -> Result<(i32, OwnedFd), nix::errno::Errno> {
    let mut stack: Vec<u8> = Vec::with_capacity(STACK);
    let mut pidfd: RawFd = -1;
    let flags =
        libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | child.launch.boundary.clone_flags() | libc::SIGCHLD;
    // SAFETY: the stack is STACK bytes that live until the child has executed or ended, because
    // CLONE_VFORK holds this thread until then; its top is aligned as the ABI wants. `child`
    // outlives the call for the same reason. The callback takes raw steps only.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(STACK).cast::<c_void>();
        let top = top.sub(top as usize % 16);
        let argument: *const Child<'_> = child;
        libc::clone(
            child_main,
            top,
            flags,
            argument.cast_mut().cast::<c_void>(),
            &raw mut pidfd,
        )
    };
    if pid < 0 {
        return Err(nix::errno::Errno::last());
    }
    // SAFETY: CLONE_PIDFD stored a new descriptor that nobody else owns.
    Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}
