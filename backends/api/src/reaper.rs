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

use std::ffi::{c_int, c_long, c_uint, c_void};
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use crate::child::{Child, child_main, tell};
use crate::left::{Kill, kill_children, others};
use crate::raw::{address, call, close_range, exit, int, read};
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
            Watch::new(shared, [status, ended], command, namespace).run();
        }
        Err(failure) => {
            tell(status, Record::Failed(failure));
            shared.open();
        }
    }
    exit()
}

/// The same in a process of its own, the first of its namespace, whose every signal is blocked.
pub(crate) fn reap_here(reaper: &Reaper<'_>, shared: &Shared) -> ! {
    let status = reaper.child.status;
    // SAFETY: this process waits for the command's own until it executes the program.
    match unsafe { start(reaper) } {
        Ok((command, ended)) => {
            keep_only([status, ended]);
            tell(status, Record::Started);
            Watch::new(shared, [status, ended], command, true).run();
        }
        Err(failure) => tell(status, Record::Failed(failure)),
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
        reaper.child.boundary.isolate()?;
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
    /// How many were left when the command had ended. None when nobody could count them.
    found: Option<u32>,
    /// Whether there may be more that have ended.
    more: bool,
    /// How soon children are looked for again that came meanwhile, in milliseconds.
    again: c_long,
}

impl<'a> Watch<'a> {
    const fn new(shared: &'a Shared, [status, ended]: [RawFd; 2], command: c_int, namespace: bool) -> Self {
        Self {
            shared,
            status,
            ended,
            command,
            namespace,
            asked: false,
            killing: false,
            found: Some(0),
            more: false,
            again: SOON,
        }
    }
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
                // Any other error says nothing of who is left.
                nobody = done == -int(libc::ECHILD);
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
                self.found = self.found.map(|found| found.saturating_add(1));
            }
        }
        if command_ended {
            // Whoever was asked to end before the command ended is spared, whether or not that was heard by now.
            if !nobody && !self.asked {
                self.asked = read(self.status, &mut [0]) == 1;
            }
            if !nobody && !self.asked {
                self.kill();
            }
            if !nobody {
                say(self.status, Word::Ended);
            }
        }
        if let (true, Some(found)) = (nobody, self.found) {
            self.shared.leave(found);
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
