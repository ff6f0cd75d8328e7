//! Waiting for a command: its end, its output, its input, its deadline, in one poll loop.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::Signal;
use ringfence_backend::Containment;
use ringfence_backend::descriptor::End;

use super::abort::Abort;
use super::spawn::Spawned;
use super::stop::{Cause, Stop};
use super::turn::{News, Stopped, Waiting, turn, until};
use crate::evidence::{KernelLog, Supervisor};
use crate::facts::{CapturedStream, Exit, Observed};

/// How long a finished command's pipes may stay silent before the result goes out without their end.
const IDLE: Duration = Duration::from_millis(100);
/// How long somebody outside the run may go on writing into a finished command's pipes.
const OTHERS: Duration = Duration::from_millis(500);
/// How long a process may take to die that was killed. One that waits for a device may take for ever.
const DYING: Duration = Duration::from_secs(5);

/// How long the reaper may take to kill everybody, before it is killed itself.
const OBEYING: Duration = Duration::from_secs(1);

/// What came of a command.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) exit: Exit,
    pub(super) cause: Option<Cause>,
    pub(super) stdout: Option<CapturedStream>,
    pub(super) stderr: Option<CapturedStream>,
    pub(super) observed: Option<Observed>,
    /// The same from the kernel's log, where that had to serve.
    pub(super) logged: Option<Result<Observed, String>>,
    /// How many processes were left when the command had ended, and were killed. None when some
    /// could not be killed in time, or nobody could count them.
    pub(super) survivors: Option<u32>,
}

/// Waits until the command has ended, no process of the run is left and its output is read.
///
/// # Errors
/// The operating system's, when the command can no longer be watched; the run is then ended.
pub(super) fn wait(
    mut spawned: Spawned,
    grace: Duration,
    ends: &Ends<'_>,
    tell: &mut dyn FnMut(News<'_>),
) -> io::Result<Ended> {
    let course = watch(&mut spawned, grace, ends, tell)?;
    let logged = spawned.log.map(|log| log.and_then(KernelLog::finish));
    if let Some(Ok(observed)) = &logged {
        observed.denials.iter().for_each(|denial| tell(News::Denied(denial)));
    }
    Ok(Ended {
        exit: course.exit,
        cause: course.cause,
        survivors: course.survivors,
        stdout: spawned.stdout.map(|stream| stream.lock().finish()),
        stderr: spawned.stderr.map(|stream| stream.lock().finish()),
        observed: spawned.supervisor.map(Supervisor::finish),
        logged,
    })
}

/// What ends a run that does not end by itself.
#[derive(Debug)]
pub(super) struct Ends<'a> {
    /// The caller's request.
    pub(super) abort: &'a Abort,
    /// How long it may run.
    pub(super) lifetime: Option<Duration>,
    /// How long it may say nothing.
    pub(super) idle: Option<Duration>,
    /// How many bytes it may say.
    pub(super) output: Option<u64>,
}

impl Ends<'_> {
    /// When the next of them is reached if nothing happens.
    fn due(&self, started: Instant, last_output: Instant) -> Option<Instant> {
        // What lies further away than a clock can tell is never reached.
        let lifetime = self.lifetime.and_then(|lifetime| started.checked_add(lifetime));
        let idle = self.idle.and_then(|idle| last_output.checked_add(idle));
        lifetime.into_iter().chain(idle).min()
    }

    /// The first of them that is reached now.
    fn reached(&self, started: Instant, last_output: Instant, spawned: &Spawned) -> Option<Cause> {
        let said = || spawned.streams().map(|stream| stream.lock().total()).sum::<u64>();
        if self.lifetime.is_some_and(|lifetime| started.elapsed() >= lifetime) {
            Some(Cause::Deadline)
        } else if self.output.is_some_and(|most| said() > most) {
            Some(Cause::Output)
        } else if self.idle.is_some_and(|idle| last_output.elapsed() >= idle) {
            Some(Cause::Idle)
        } else {
            None
        }
    }
}

/// How a run went.
struct Course {
    exit: Exit,
    cause: Option<Cause>,
    survivors: Option<u32>,
}

fn watch(
    spawned: &mut Spawned,
    grace: Duration,
    ends: &Ends<'_>,
    tell: &mut dyn FnMut(News<'_>),
) -> io::Result<Course> {
    let mut requests = ends.abort.listen()?;
    let started = Instant::now();
    let mut last_output = started;
    let mut stop: Option<Stop> = None;
    let mut exit = None;
    let gone = loop {
        let due = stop
            .as_ref()
            .map_or_else(|| ends.due(started, last_output), |stop| Some(stop.due(OBEYING, DYING)));
        let waiting = Waiting {
            due,
            requests: Some(&requests),
            ended: exit.is_some(),
        };
        let ready = turn(spawned, &waiting, tell)?;
        exit = exit.or_else(|| spawned.process.ended());
        // Once it was asked to end, the run has its grace period even when the command needs none.
        if ready.gone || (exit.is_some() && stop.is_none()) {
            break ready.gone;
        }
        if ready.stopped && stop.is_none() {
            tell(News::Stopped(Stopped(&spawned.process)));
        }
        if ready.spoke {
            last_output = Instant::now();
        }
        let asked = if ready.aborted { requests.since() } else { 0 };
        match &mut stop {
            Some(stop) => {
                stop.advance(asked > 0, &spawned.process);
                if stop.is_overdue(DYING) {
                    break false;
                }
                if stop.is_overdue(OBEYING) {
                    spawned.process.kill_reaper();
                }
            }
            None if asked > 0 => {
                let mut begun = Stop::begin(Cause::Abort, grace, &spawned.process);
                begun.advance(asked > 1, &spawned.process);
                stop = Some(begun);
            }
            None => {
                let cause = ends.reached(started, last_output, spawned);
                stop = cause.map(|cause| Stop::begin(cause, grace, &spawned.process));
            }
        }
    };
    if !gone && !stop.as_ref().is_some_and(|stop| stop.is_overdue(DYING)) {
        await_the_rest(spawned, tell)?;
    }
    drain(spawned)?;
    spawned.process.reap(OBEYING);
    Ok(Course {
        exit: match exit {
            Some(End::Exited(code)) => Exit::Code(code),
            Some(End::Killed(signal)) => Exit::Signal(signal),
            // The reaper was killed by somebody else, and the kernel killed everybody with it.
            None if gone && spawned.process.containment() == Containment::PidNamespace => {
                Exit::Signal(Signal::SIGKILL as i32)
            }
            None => Exit::Unknown,
        },
        cause: stop.map(|stop| stop.cause),
        survivors: spawned.process.survivors(),
    })
}

/// Waits for those whom the reaper is killing now that the command has ended.
fn await_the_rest(spawned: &mut Spawned, tell: &mut dyn FnMut(News<'_>)) -> io::Result<()> {
    let over = Instant::now() + DYING;
    let waiting = Waiting {
        due: Some(over),
        requests: None,
        ended: true,
    };
    while Instant::now() < over {
        if turn(spawned, &waiting, tell)?.gone {
            break;
        }
    }
    Ok(())
}

/// Reads what the run left in its pipes. It is there already, unless somebody outside was handed
/// their ends: they get a short while.
fn drain(spawned: &mut Spawned) -> io::Result<()> {
    spawned.stdin = None;
    let over = Instant::now() + OTHERS;
    loop {
        for stream in spawned.streams() {
            stream.lock().read_available()?;
        }
        let open: Vec<_> = spawned.streams().filter_map(|stream| stream.lock().fd()).collect();
        if open.is_empty() {
            return Ok(());
        }
        let mut fds: Vec<_> = open
            .iter()
            .map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN))
            .collect();
        let ready = match poll(&mut fds, until(Some(Instant::now() + IDLE))) {
            Err(Errno::EINTR) => continue,
            other => other?,
        };
        if ready == 0 || Instant::now() >= over {
            return Ok(());
        }
    }
}
