//! The launcher: this program once more, as the first process inside what another program has made.
//!
//! It finds out where it is, completes the boundary for the command, starts it, and reaps. It never
//! executes another program, and nothing of the run can look into it.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::stat::{SFlag, fstat};

use crate::backend::Boundary;
use crate::child::{Child, Strings, tell};
use crate::order::{Order, SEALS, Stream};
use crate::pinned::FileId;
use crate::raw::exit;
use crate::reaper::{Reaper, reap_here};
use crate::shared::Mapped;
use crate::stack::Stack;
use crate::status::{Failure, Record, Stage};
use crate::task::{Attempt, ChildStdio, Launch, Session, Task};

/// The first word by which a program knows that it is to be the launcher.
pub const LAUNCHER: &CStr = c"--ringfence-launcher";

/// Whether this program starts as a launcher when it is given a launcher's words.
static SERVES: AtomicBool = AtomicBool::new(false);

/// Says that this program looks for a launcher's words before anything else. Without that, no
/// boundary that needs a launcher is tried: the program would start once more as itself.
pub fn serve_as_launcher() {
    SERVES.store(true, Ordering::Relaxed);
}

/// Whether this program does.
#[must_use]
pub fn serves_as_launcher() -> bool {
    SERVES.load(Ordering::Relaxed)
}

/// Whether these are a launcher's words, the program's own name being the first.
#[must_use]
pub fn is_launcher(words: &[OsString]) -> bool {
    words
        .get(1)
        .is_some_and(|word| word == OsStr::from_bytes(LAUNCHER.to_bytes()))
}

/// A launcher that has its order.
#[derive(Debug)]
pub struct Launcher {
    order: Order,
    status: OwnedFd,
    facts: Mapped,
}

impl Launcher {
    /// Takes over what the words name. Not being able to is told where that is possible.
    ///
    /// # Errors
    /// The operating system's, or that these are no words of a runner's.
    pub fn receive(words: &[OsString]) -> io::Result<Self> {
        let [order, status, facts] = words.get(2..).unwrap_or_default() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (order, status) = (taken(order)?, taken(status)?);
        // Nobody but a runner has such descriptors: these words do nothing when somebody else says them.
        let seals = fcntl(&order, FcntlArg::F_GET_SEALS)?;
        let socket = SFlag::from_bits_truncate(fstat(&status)?.st_mode) & SFlag::S_IFMT == SFlag::S_IFSOCK;
        if seals != SEALS.bits() || !socket {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        block_signals();
        tell(status.as_raw_fd(), Record::Here);
        let built = (|| {
            let mut bytes = Vec::new();
            File::from(order).read_to_end(&mut bytes)?;
            let order = postcard::from_bytes(&bytes).map_err(io::Error::other)?;
            Ok((order, Mapped::of(taken(facts)?.as_fd(), false)?))
        })();
        match built {
            Ok((order, facts)) => Ok(Self { order, status, facts }),
            Err(error) => {
                let error: io::Error = error;
                tell(status.as_raw_fd(), Record::Failed(misplaced(&error)));
                Err(error)
            }
        }
    }

    /// What its backend has to say to it.
    #[must_use]
    pub fn boundary(&self) -> &[u8] {
        &self.order.boundary
    }

    /// Tells that the boundary does not stand, and ends.
    pub fn fail(&self, failure: Failure) -> ! {
        tell(self.status.as_raw_fd(), Record::Failed(failure));
        exit()
    }

    /// Starts the command, or the attempts, inside the boundary, and stays until no process is left.
    pub fn run(&self, boundary: &dyn Boundary, attempts: &dyn Attempt) -> ! {
        let stack = match Stack::new() {
            Ok(stack) => stack,
            Err(error) => self.fail(misplaced(&error)),
        };
        let order = &self.order;
        let launch = Launch {
            session: if order.own_session {
                Session::Own
            } else {
                Session::Callers
            },
            stdio: [0, 1, 2].map(|number: usize| stream(&order.stdio[number])),
            workdir: (
                &order.workdir.0,
                FileId {
                    device: order.workdir.1,
                    inode: order.workdir.2,
                },
            ),
            extra: order.extra.map(borrowed),
            limits: &order.limits,
        };
        let reaper = Reaper {
            child: Child {
                boundary,
                launch: &launch,
                task: order.image.as_ref().map_or(Task::Try(attempts), Task::Exec),
                strings: order.image.as_ref().map(Strings::new).unwrap_or_default(),
                status: self.status.as_raw_fd(),
                parent: AtomicI32::new(0),
            },
            stack: stack.top(),
            shared: ptr::null(),
            namespace: true,
        };
        // SAFETY: takes numbers. Nobody of the same user looks into this process, or takes its descriptors.
        if unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) } < 0 {
            self.fail(misplaced(&io::Error::last_os_error()));
        }
        reap_here(&reaper, self.facts.as_ref())
    }
}

/// What went wrong with the launcher's own place.
fn misplaced(error: &io::Error) -> Failure {
    Failure {
        stage: Stage::Place,
        errno: error.raw_os_error().unwrap_or(libc::EINVAL),
    }
}

fn stream(stream: &Stream) -> ChildStdio<'_> {
    match stream {
        Stream::Fd(fd) => ChildStdio::Fd(borrowed(*fd)),
        Stream::Device { path, flags, device } => ChildStdio::Device {
            path,
            flags: OFlag::from_bits_truncate(*flags),
            rdev: *device,
        },
    }
}

/// A descriptor that the runner handed on, under the number it has.
fn borrowed<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // A number that names nothing fails where it is used.
    let fd = fd.max(0);
    // SAFETY: this process was started with it and closes it nowhere before the command has it.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// The descriptor that a word names, which the command is not to have.
fn taken(word: &OsString) -> io::Result<OwnedFd> {
    let number: RawFd = word
        .to_str()
        .and_then(|text| text.parse().ok())
        .filter(|number| *number > 2)
        .ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: this process was started with it for this purpose, and takes it over here alone.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    if let Err(errno) = fcntl(&fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)) {
        // Nothing that could be closed.
        std::mem::forget(fd);
        return Err(errno.into());
    }
    Ok(fd)
}

/// Blocks every signal for good: what is sent to the caller's group is not for this process, and the reaper
/// is told of ends by a descriptor.
fn block_signals() {
    // SAFETY: a set on this stack.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut());
    }
}
