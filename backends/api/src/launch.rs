//! The spawn step: one clone(2), the child's prepared steps, exec.
//!
//! The child is made with `CLONE_VM | CLONE_VFORK`: it costs the same whatever the size of the
//! runner, and the calling thread waits until the program is executed or the launch has failed.
//! Until then the child shares the runner's memory, so it takes raw steps on prepared data only.
//! It confines itself; no thread of the runner is ever confined.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsString, c_int, c_void};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::ptr;

use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

use crate::listener::{Listener, status_channel};
use crate::status::{Failure, RECORD, Record, Stage};
use crate::{Boundary, FileId};

/// Ample for the child's steps, which keep small structures on it and call nothing deep.
const STACK: usize = 64 * 1024;

/// The highest signal number of Linux.
const LAST_SIGNAL: c_int = 64;

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
}

/// A program with its arguments and environment, ready for execve(2).
#[derive(Debug)]
pub struct ExecImage {
    candidates: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
}

/// A string that no system call can carry.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{field} has a NUL byte at offset {offset}")]
pub struct ImageError {
    /// Which string, in words.
    pub field: String,
    /// The offset of the first NUL byte.
    pub offset: usize,
}

impl ExecImage {
    /// Prepares a program.
    ///
    /// `candidates` are the paths to try, in order, as execvp(3) would.
    ///
    /// # Errors
    /// [`ImageError`] for a NUL byte in any of the strings.
    pub fn new(candidates: Vec<OsString>, argv: &[OsString], env: &[(OsString, OsString)]) -> Result<Self, ImageError> {
        let owned = |field: String, bytes: Vec<u8>| {
            CString::new(bytes).map_err(|e| ImageError {
                field,
                offset: e.nul_position(),
            })
        };
        let argv = argv.iter().enumerate().map(|(i, arg)| {
            let field = if i == 0 {
                "the program's name".to_owned()
            } else {
                format!("argument {i}")
            };
            owned(field, arg.clone().into_vec())
        });
        let env = env.iter().map(|(name, value)| {
            let mut entry = name.clone().into_vec();
            entry.push(b'=');
            entry.extend_from_slice(value.as_encoded_bytes());
            owned(format!("the environment variable {}", name.display()), entry)
        });
        let candidates = candidates
            .into_iter()
            .map(|path| owned("the program's path".to_owned(), path.into_vec()));
        Ok(Self {
            argv: argv.collect::<Result<_, _>>()?,
            env: env.collect::<Result<_, _>>()?,
            candidates: candidates.collect::<Result<_, _>>()?,
        })
    }
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

/// Everything the child reads. It lives in the runner's stack frame, which waits for the child.
struct Child<'a> {
    launch: &'a Launch<'a>,
    task: Task<'a>,
    argv: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    status: RawFd,
    parent: libc::pid_t,
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
    while receive(read, &mut bytes, &mut listener) {
        match Record::decode(bytes) {
            Some(Record::Armed) => armed = true,
            Some(Record::Failed(failure)) => failed = Some(failure),
            Some(Record::Tried { attempt, errno }) => tried.push((attempt, errno)),
            None => {}
        }
    }
    let over = trial || failed.is_some() || !armed;
    if over {
        // A child that is no command of the caller's is reaped here; its status says nothing new.
        let _ = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(pid), None);
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
fn receive(read: &OwnedFd, bytes: &mut [u8; RECORD], listener: &mut Option<Listener>) -> bool {
    let mut space = nix::cmsg_space!(RawFd);
    let mut parts = [IoSliceMut::new(bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let Ok(message) = recvmsg::<()>(read.as_raw_fd(), &mut parts, Some(&mut space), flags) else {
        return false;
    };
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

extern "C" fn child_main(argument: *mut c_void) -> c_int {
    // SAFETY: `argument` is the `Child` of the waiting runner, which does not touch it meanwhile.
    let child = unsafe { &*argument.cast::<Child<'_>>().cast_const() };
    let failure = match child_steps(child) {
        Ok(()) => return 0,
        Err(failure) => failure,
    };
    tell(child.status, Record::Failed(failure));
    // The number is seen by nobody who matters: without `Armed` and with `Failed` it is not read.
    125
}

fn tell(status: RawFd, record: Record) {
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
    // SAFETY: these calls take numbers, or read a zeroed `struct sigaction` of the kernel's size.
    unsafe {
        // Ignored signals survive exec, so each is set back to what a fresh program expects.
        // The raw call, because the C library keeps two signals to itself.
        let default = [0_u64; 4];
        for signal in 1..=LAST_SIGNAL {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                ptr::null::<u64>(),
                size_of::<u64>(),
            );
        }
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), Stage::Parent)?;
        if libc::getppid() != child.parent {
            return Err(Failure {
                stage: Stage::Parent,
                errno: libc::ESRCH,
            });
        }
        if launch.session == Session::Own {
            check(libc::setsid(), Stage::Session)?;
        }
    }
    launch.boundary.isolate()?;
    enter_workdir(launch.workdir.0, launch.workdir.1)?;
    for (number, stdio) in (0..).zip(&launch.stdio) {
        place_stream(number, stdio)?;
    }
    // SAFETY: takes numbers only. From here nothing above 2 survives exec, the status pipe included.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if closed < 0 {
        return Err(failed(Stage::Descriptors));
    }
    let listener = launch.boundary.confine()?;
    match listener {
        Some(fd) => hand_over(child.status, fd)?,
        None => tell(child.status, Record::Armed),
    }
    match child.task {
        Task::Exec(image) => Err(execute(child, image)),
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
            libc::execve(path.as_ptr(), child.argv.as_ptr(), child.env.as_ptr());
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
