//! What the child does between clone(2) and exec: raw steps on prepared data, nothing else.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::image::{ExecImage, PinnedProgram};
use crate::limit;
use crate::outside::become_outside;
use crate::signals::default_signals;
use crate::status::{Failure, RECORD, Record, Stage};
use crate::task::{ChildStdio, Launch, Session, Task};
use crate::{Boundary, FileId};

/// Everything the command's process reads before it executes the program. It lives in the runner's
/// stack frame, which waits for that.
pub(crate) struct Child<'a> {
    pub(crate) boundary: &'a dyn Boundary,
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) task: Task<'a>,
    pub(crate) strings: Strings,
    pub(crate) status: RawFd,
    /// The process that this one must not outlive, as getppid(2) shows it.
    pub(crate) parent: AtomicI32,
}

/// The arrays of execve(2), which end in null pointers.
#[derive(Default)]
pub(crate) struct Strings {
    argv: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
}

impl Strings {
    /// Points to the strings of an image, which must outlive this.
    pub(crate) fn new(image: &ExecImage) -> Self {
        let pointers = |strings: &[CString]| strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect();
        Self {
            argv: pointers(&image.argv),
            env: pointers(&image.env),
        }
    }
}

/// The child's entry, for clone(2).
pub(crate) extern "C" fn child_main(argument: *mut c_void) -> c_int {
    // SAFETY: `argument` is the `Child` of the waiting runner, which does not touch it meanwhile.
    let child = unsafe { &*argument.cast::<Child<'_>>().cast_const() };
    if let Task::Outside(outside) = child.task {
        return become_outside(outside, child.parent.load(Ordering::Relaxed));
    }
    let failure = match child_steps(child) {
        Ok(()) => return 0,
        Err(failure) => failure,
    };
    tell(child.status, Record::Failed(failure));
    // The number is seen by nobody who matters: without `Armed` and with `Failed` it is not read.
    125
}

pub(crate) fn tell(status: RawFd, record: Record) {
    let bytes = record.encode();
    // SAFETY: writes RECORD bytes from a live array; a short or failed write reads as "vanished".
    unsafe { libc::write(status, bytes.as_ptr().cast(), RECORD) };
}

/// Says that the boundary stands, and gives the runner the listener along with it.
fn hand_over(status: RawFd, listener: RawFd) -> Result<(), Failure> {
    /// Room for one descriptor (cmsg(3)), aligned as the header is.
    #[repr(C)]
    struct Control {
        header: libc::cmsghdr,
        fd: RawFd,
    }
    let mut bytes = Record::Armed.encode();
    // SAFETY: structures on this stack that point to one another, of the sizes they are said to have.
    unsafe {
        let mut control = Control {
            header: libc::cmsghdr {
                cmsg_len: size_of::<libc::cmsghdr>() + size_of::<RawFd>(),
                cmsg_level: libc::SOL_SOCKET,
                cmsg_type: libc::SCM_RIGHTS,
            },
            fd: listener,
        };
        let mut part = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: RECORD,
        };
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<Control>();
        if libc::sendmsg(status, &raw const message, 0) < 0 {
            return Err(failed(Stage::Listener));
        }
    }
    Ok(())
}

fn failed(stage: Stage) -> Failure {
    Failure {
        stage,
        errno: nix::errno::Errno::last_raw(),
    }
}

fn check(result: c_int, stage: Stage) -> Result<c_int, Failure> {
    if result < 0 { Err(failed(stage)) } else { Ok(result) }
}

fn child_steps(child: &Child<'_>) -> Result<(), Failure> {
    let launch = child.launch;
    default_signals();
    // SAFETY: these calls take numbers.
    unsafe {
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), Stage::Parent)?;
        if libc::getppid() != child.parent.load(Ordering::Relaxed) {
            return Err(Failure {
                stage: Stage::Parent,
                errno: libc::ESRCH,
            });
        }
        if launch.session == Session::Own {
            check(libc::setsid(), Stage::Session)?;
        }
    }
    if let Task::Try(_) = child.task {
        child.boundary.isolate()?;
    }
    enter_workdir(launch.workdir.0, launch.workdir.1)?;
    for (number, stdio) in (0..).zip(&launch.stdio) {
        place_stream(number, stdio)?;
    }
    // SAFETY: takes numbers only. From here nothing above 2 survives exec, the status pipe included.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if closed < 0 {
        return Err(failed(Stage::Descriptors));
    }
    keep_open(launch.extra)?;
    let listener = child.boundary.confine()?;
    match listener {
        Some(fd) => hand_over(child.status, fd)?,
        None => tell(child.status, Record::Armed),
    }
    match child.task {
        Task::Exec(image) => {
            // Only now: the steps above need descriptors, which a limit could refuse them.
            limit::set(launch.limits)?;
            Err(execute(child, image))
        }
        // Taken care of before the first step.
        Task::Outside(_) => Ok(()),
        Task::Try(attempts) => {
            for number in 0..u8::MAX {
                let Some(errno) = attempts.attempt(number) else { break };
                tell(child.status, Record::Tried { attempt: number, errno });
            }
            Ok(())
        }
    }
}

/// Enters the directory that the runner pinned, through the child's own mounts.
fn enter_workdir(path: &CStr, id: FileId) -> Result<(), Failure> {
    let stage = Stage::WorkingDirectory;
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: a path that is a C string, a descriptor the kernel just gave, a zeroed structure.
    unsafe {
        let fd = check(libc::open(path.as_ptr(), flags), stage)?;
        let mut stat: libc::stat = std::mem::zeroed();
        check(libc::fstat(fd, &raw mut stat), stage)?;
        if FileId::of(&stat) != id {
            return Err(Failure {
                stage,
                errno: libc::ESTALE,
            });
        }
        check(libc::fchdir(fd), stage)?;
    }
    Ok(())
}

fn place_stream(number: c_int, stdio: &ChildStdio<'_>) -> Result<(), Failure> {
    let stage = Stage::Streams;
    match stdio {
        ChildStdio::Inherit => {}
        // SAFETY: numbers of open descriptors; `fd` is not `number`, so dup2 clears close-on-exec.
        ChildStdio::Fd(fd) => unsafe {
            check(libc::dup2(fd.as_raw_fd(), number), stage)?;
        },
        // SAFETY: a path that is a C string, descriptors the kernel just gave, a zeroed structure.
        ChildStdio::Device { path, flags, rdev } => unsafe {
            let fd = check(
                libc::open(path.as_ptr(), flags.bits() | libc::O_NOCTTY | libc::O_CLOEXEC),
                stage,
            )?;
            let mut stat: libc::stat = std::mem::zeroed();
            check(libc::fstat(fd, &raw mut stat), stage)?;
            if stat.st_mode & libc::S_IFMT != libc::S_IFCHR || stat.st_rdev != *rdev {
                return Err(Failure {
                    stage,
                    errno: libc::ESTALE,
                });
            }
            check(libc::dup2(fd, number), stage)?;
        },
    }
    Ok(())
}

/// Lets one descriptor through exec. It keeps its number: whatever number was chosen for it could be
/// that of the status channel, or of something the boundary still needs.
fn keep_open(extra: Option<BorrowedFd<'_>>) -> Result<(), Failure> {
    if let Some(fd) = extra {
        // SAFETY: a number of an open descriptor, and no flags.
        check(
            unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0) },
            Stage::Descriptors,
        )?;
    }
    Ok(())
}

/// Executes a file if it is the one that was meant. Returns only when it did not, and errno says why: ESTALE for
/// another file.
fn execute_pinned(path: &CStr, pinned: &PinnedProgram, strings: &Strings) {
    // SAFETY: a C string; a descriptor that is this process's own; a stat record on the stack that the kernel
    // fills in; null-terminated arrays that the waiting runner keeps alive.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
        if fd < 0 {
            return;
        }
        let mut about: libc::stat = std::mem::zeroed();
        if libc::fstat(fd, &raw mut about) != 0 {
            return;
        }
        let time = |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        let found = PinnedProgram {
            device: about.st_dev,
            inode: about.st_ino,
            size: about.st_size.cast_unsigned(),
            mtime_ns: time(about.st_mtime, about.st_mtime_nsec),
            ctime_ns: time(about.st_ctime, about.st_ctime_nsec),
        };
        if found != *pinned {
            *libc::__errno_location() = libc::ESTALE;
            return;
        }
        let (argv, env) = (strings.argv.as_ptr().cast(), strings.env.as_ptr().cast());
        libc::execveat(fd, c"".as_ptr(), argv, env, libc::AT_EMPTY_PATH);
        // execveat(2): the interpreter of a script would find the descriptor closed.
        if nix::errno::Errno::last_raw() == libc::ENOENT {
            libc::execve(path.as_ptr(), strings.argv.as_ptr(), strings.env.as_ptr());
        }
    }
}

/// Executes the first candidate that can be, and says why when none can.
fn execute(child: &Child<'_>, image: &ExecImage) -> Failure {
    let mut seen = libc::ENOENT;
    // SAFETY: an empty mask on the stack; then C strings in null-terminated arrays that the
    // waiting runner keeps alive.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        for path in &image.candidates {
            if let Some(pinned) = &image.pinned {
                execute_pinned(path, pinned, &child.strings);
            } else {
                libc::execve(path.as_ptr(), child.strings.argv.as_ptr(), child.strings.env.as_ptr());
            }
            match nix::errno::Errno::last_raw() {
                libc::ENOENT | libc::ENOTDIR => {}
                // execvp(3): a refusal is remembered while the search goes on.
                libc::EACCES => seen = libc::EACCES,
                other => {
                    return Failure {
                        stage: Stage::Exec,
                        errno: other,
                    };
                }
            }
        }
    }
    Failure {
        stage: Stage::Exec,
        errno: seen,
    }
}
