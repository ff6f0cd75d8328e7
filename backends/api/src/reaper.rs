//! The parent of a command, which no process of the run outlives.
//!
//! It is process 1 of the run's PID namespace, or, where there is none, a child subreaper
//! (prctl(2)): every process whose parent has ended becomes its child, whatever session or group it
//! put itself into. It starts the command, waits, and when the command has ended, or the runner is
//! gone, it kills all that is left and counts it. When everybody was asked to end, it gives them the time
//! that the runner gives them. When it says so and ends, nobody is left.
//!
//! It never executes a program. It shares the runner's memory, runs on a stack of its own, and, once
//! the command is started, touches nothing but that stack.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_long, c_uint, c_void};
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use crate::child::{Child, child_main, tell};
use crate::raw::{address, call, int};
use crate::shared::Shared;
use crate::status::{Failure, Record, Stage, Word};

/// How many children that have ended are taken in one turn.
const AT_ONCE: usize = 64;
/// How soon children are looked for again that came to the subreaper while it was killing, at first
/// and at last, in milliseconds.
const SOON: c_long = 5;
const RARELY: c_long = 640;

/// What the reaper reads until the command is started. It lives in the runner's stack frame, which waits.
pub(crate) struct Reaper<'a> {
    pub(crate) child: Child<'a>,
    /// The top of the stack that the command's launch runs on.
    pub(crate) stack: *mut c_void,
    /// Where it tells what has become of the run.
    pub(crate) shared: *const Shared,
    /// Whether it is process 1 of a PID namespace.
    pub(crate) namespace: bool,
}

/// The reaper's entry, for clone(2). Every signal is blocked.
pub(crate) extern "C" fn reaper_main(argument: *mut c_void) -> c_int {
    // SAFETY: `argument` is the `Reaper` of the runner, which waits at the gate and does not touch it
    // meanwhile; what is shared lives as long as this process.
    let (status, namespace, shared, started) = unsafe {
        let reaper = &*argument.cast::<Reaper<'_>>().cast_const();
        let started = start(reaper);
        (reaper.child.status, reaper.namespace, &*reaper.shared, started)
    };
    match started {
        Ok((command, ended)) => {
            keep_only([status, ended]);
            // From here on the runner goes on, and nothing else of its memory is looked at any more.
            shared.open();
            Watch {
                shared,
                status,
                ended,
                command,
                namespace,
                asked: false,
                killing: false,
                found: 0,
                more: false,
                again: SOON,
            }
            .run();
        }
        Err(failure) => {
            tell(status, Record::Failed(failure));
            shared.open();
        }
    }
    exit()
}

/// Makes this process what it is to be, and starts the command. Gives the command's process id as it
/// is known here, and a descriptor that is readable when a child has ended.
unsafe fn start(reaper: &Reaper<'_>) -> Result<(c_int, RawFd), Failure> {
    let failed = |stage| Failure {
        stage,
        errno: nix::errno::Errno::last_raw(),
    };
    // SAFETY: numbers, and structures that live on this stack; the child's steps are raw ones.
    unsafe {
        // Ends of children are heard of even if the runner ignores them (wait(2)).
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::prctl(libc::PR_SET_NAME, c"rf-reaper".as_ptr());
        let role = if reaper.namespace {
            // The kernel ends a PID namespace with its first process (pid_namespaces(7)).
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL)
        } else {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1)
        };
        if role < 0 {
            return Err(failed(Stage::Parent));
        }
        let mut ends: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut ends);
        libc::sigaddset(&raw mut ends, libc::SIGCHLD);
        let ended = libc::signalfd(-1, &raw const ends, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
        if ended < 0 {
            return Err(failed(Stage::Parent));
        }
        reaper.child.launch.boundary.isolate()?;
        reaper.child.parent.store(libc::getpid(), Ordering::Relaxed);
        let argument: *const Child<'_> = &raw const reaper.child;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let command = libc::clone(child_main, reaper.stack, flags, argument.cast_mut().cast());
        if command < 0 {
            return Err(failed(Stage::Namespaces));
        }
        // Out of the caller's process group: what is sent to that is not for the reaper.
        libc::setpgid(0, 0);
        Ok((command, ended))
    }
}

/// Closes every descriptor but these. The command has its own by now, and a pipe that is held here
/// would never end.
fn keep_only(mut kept: [RawFd; 2]) {
    kept.sort_unstable();
    let mut from = 0;
    for fd in kept {
        // An empty range is refused.
        close_range(from, fd.cast_unsigned().wrapping_sub(1));
        from = fd.cast_unsigned().wrapping_add(1);
    }
    close_range(from, c_uint::MAX);
}

fn close_range(from: c_uint, to: c_uint) {
    if from <= to && !(from == 0 && to == c_uint::MAX) {
        // SAFETY: takes numbers only (close_range(2)).
        unsafe { call(libc::SYS_close_range, [from.into(), to.into(), 0, 0, 0, 0]) };
    }
}

/// A run that is being watched.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own about the run")]
struct Watch<'a> {
    shared: &'a Shared,
    status: RawFd,
    ended: RawFd,
    command: c_int,
    namespace: bool,
    /// Whether everybody was asked to end, and has a while for it.
    asked: bool,
    killing: bool,
    found: u32,
    /// Whether there may be more that have ended.
    more: bool,
    /// How soon children are looked for again that came meanwhile, in milliseconds.
    again: c_long,
}

impl Watch<'_> {
    /// Waits for the command to end or the runner to say so, and ends what is left.
    fn run(mut self) {
        while !self.reap() {
            if self.killing && !self.namespace && kill_children(self.command) == Kill::Impossible {
                // Who has other rights by now, or cannot be found, is waited for by nobody.
                return;
            }
            self.wait();
        }
    }

    /// Takes every child that has ended. True when there are none left, which was then told.
    fn reap(&mut self) -> bool {
        let mut command_ended = false;
        let mut nobody = false;
        // No more at once: while others end by the thousand, the runner is heard as well.
        for _ in 0..AT_ONCE {
            // SAFETY: fills a zeroed structure of its own type.
            let (done, info) = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::__WALL;
                let arguments = [c_long::from(libc::P_ALL), 0, address(&raw mut info), int(flags), 0, 0];
                (call(libc::SYS_waitid, arguments), info)
            };
            if done == -int(libc::EINTR) {
                continue;
            }
            // SAFETY: waitid(2) has set these fields, to zero when no child has ended.
            let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
            if done < 0 {
                nobody = true;
                break;
            }
            if pid == 0 {
                self.more = false;
                break;
            }
            self.more = true;
            if matches!(info.si_code, libc::CLD_STOPPED | libc::CLD_TRAPPED) {
                if pid == self.command && info.si_code == libc::CLD_STOPPED {
                    say(self.status, Word::Stopped);
                }
            } else if pid == self.command {
                let exited = info.si_code == libc::CLD_EXITED;
                self.shared.end(exited, status);
                command_ended = true;
            } else if self.killing && !self.namespace && self.shared.ended().is_some() {
                self.found += 1;
            }
        }
        if command_ended {
            if !nobody && !self.asked {
                self.kill();
            }
            if !nobody {
                say(self.status, Word::Ended);
            }
        }
        if nobody {
            self.shared.leave(self.found);
        }
        nobody
    }

    /// Waits until a child has ended or the runner wants the run to end.
    fn wait(&mut self) {
        let mut waiting = [self.status, self.ended].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        if self.killing {
            // The runner has nothing more to say, and its end of the channel may be closed.
            waiting[0].fd = -1;
        }
        let again = libc::timespec {
            tv_sec: 0,
            tv_nsec: self.again * 1_000_000,
        };
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let timeout = if self.more {
            address(&raw const at_once)
        } else if self.killing && !self.namespace {
            self.again = (self.again * 2).min(RARELY);
            address(&raw const again)
        } else {
            0
        };
        let mut ended = [0_u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: live structures of the given number and size. What ended is learnt elsewhere.
        unsafe {
            call(libc::SYS_ppoll, [address(waiting.as_mut_ptr()), 2, timeout, 0, 0, 0]);
            read(self.ended, &mut ended);
        }
        if waiting[0].revents != 0 {
            let mut word = [0_u8; 1];
            // A word says that everybody was asked to end; its end says that they are to be ended.
            if read(self.status, &mut word) == 1 {
                self.asked = true;
            } else {
                self.kill();
            }
        }
    }

    /// Kills every process of the run.
    fn kill(&mut self) {
        if self.namespace {
            if !self.killing && self.shared.ended().is_some() {
                // A killed parent that waits still takes its children's ends, so they are counted before.
                self.found = others();
            }
            // SAFETY: takes numbers. Everybody in this namespace but its first process (kill(2)), at
            // once: a process that is being killed forks no more.
            unsafe { call(libc::SYS_kill, [-1, int(libc::SIGKILL), 0, 0, 0, 0]) };
        }
        self.killing = true;
    }
}

/// Says a word to the runner. One that is gone needs none.
fn say(status: RawFd, word: Word) {
    let (word, quiet) = (word as u8, int(libc::MSG_NOSIGNAL));
    // SAFETY: one live byte, and no destination (sendto(2)).
    unsafe {
        call(
            libc::SYS_sendto,
            [int(status), address(&raw const word), 1, quiet, 0, 0],
        )
    };
}

/// How many processes the namespace has besides this one, its first.
fn others() -> u32 {
    let Some(fd) = open(c"/proc") else { return 0 };
    let mut count: u32 = 0;
    // Aligned as the records are.
    let mut records = [0_u64; 512];
    loop {
        let size = c_long::try_from(size_of_val(&records)).unwrap_or(0);
        // SAFETY: a live buffer of that size (getdents64(2)).
        let got = unsafe {
            call(
                libc::SYS_getdents64,
                [int(fd), address(records.as_mut_ptr()), size, 0, 0, 0],
            )
        };
        let Some(got) = usize::try_from(got).ok().filter(|got| *got > 0) else {
            break;
        };
        let mut at = 0;
        while at < got {
            // SAFETY: the kernel wrote whole records up to `got`: a length at 16, a type, and a name at 19.
            let (length, first) = unsafe {
                let record = records.as_ptr().cast::<u8>().add(at);
                (record.add(16).cast::<[u8; 2]>().read(), record.add(19).read())
            };
            if first.is_ascii_digit() {
                count = count.saturating_add(1);
            }
            at += usize::from(u16::from_ne_bytes(length)).max(1);
        }
    }
    close(fd);
    count.saturating_sub(1)
}

fn open(path: &CStr) -> Option<RawFd> {
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

fn close(fd: RawFd) {
    // SAFETY: a descriptor of this process's own.
    unsafe { call(libc::SYS_close, [int(fd), 0, 0, 0, 0, 0]) };
}

/// Whether there was anybody to kill.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kill {
    Sent,
    Impossible,
}

/// Kills the children of this process, as /proc lists them. Theirs come to it when they have died.
///
/// Until a child is waited for, its number names nobody else.
fn kill_children(command: c_int) -> Kill {
    let Some(fd) = open(c"/proc/thread-self/children") else {
        // Without the list, the command and those who stayed in its group.
        let group = kill(-command);
        return if kill(command) || group {
            Kill::Sent
        } else {
            Kill::Impossible
        };
    };
    let mut sent = Kill::Impossible;
    let mut pid: c_int = 0;
    let mut bytes = [0_u8; 4096];
    loop {
        let got = read(fd, &mut bytes);
        let list = bytes.get(..got).unwrap_or_default();
        for byte in list {
            if byte.is_ascii_digit() {
                pid = pid.wrapping_mul(10).wrapping_add(c_int::from(byte - b'0'));
            } else {
                if pid > 0 && kill(pid) {
                    sent = Kill::Sent;
                }
                pid = 0;
            }
        }
        if list.is_empty() {
            break;
        }
    }
    close(fd);
    sent
}

/// Kills a process or a group. False when there is none, or it must not be.
fn kill(pid: c_int) -> bool {
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_kill, [int(pid), int(libc::SIGKILL), 0, 0, 0, 0]) == 0 }
}

/// Reads into a buffer, and gives how much came: nothing at the end, and on failure.
fn read(fd: RawFd, bytes: &mut [u8]) -> usize {
    let len = c_long::try_from(bytes.len()).unwrap_or(0);
    // SAFETY: a live buffer of that size.
    let got = unsafe { call(libc::SYS_read, [int(fd), address(bytes.as_mut_ptr()), len, 0, 0, 0]) };
    usize::try_from(got).unwrap_or(0)
}

fn exit() -> ! {
    loop {
        // SAFETY: takes a number, and does not return.
        unsafe { call(libc::SYS_exit_group, [0; 6]) };
    }
}
