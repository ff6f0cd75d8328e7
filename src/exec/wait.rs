//! Waiting for a command: its end, its output, its input, its deadline, in one poll loop.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use ringfence_backend::descriptor::End;

use super::input::Wants;
use super::spawn::Spawned;
use super::spec::ExecSpec;
use super::stop::{Abort, Cause, Stop};
use crate::evidence::{KernelLog, Supervisor};
use crate::facts::{CapturedStream, Denial, Exit, Observed};

/// How long a finished command's pipes may stay silent before the result goes out without their end.
const IDLE: Duration = Duration::from_millis(100);
/// How long somebody outside the run may go on writing into a finished command's pipes.
const OTHERS: Duration = Duration::from_millis(500);
/// How long a process may take to die that was killed. One that waits for a device may take for ever.
const DYING: Duration = Duration::from_secs(5);

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
    spec: &ExecSpec,
    abort: &Abort,
    tell: &mut dyn FnMut(&Denial),
) -> io::Result<Ended> {
    let course = watch(&mut spawned, spec, abort, tell)?;
    let logged = spawned.log.map(|log| log.and_then(KernelLog::finish));
    if let Some(Ok(observed)) = &logged {
        observed.denials.iter().for_each(tell);
    }
    Ok(Ended {
        exit: course.exit,
        cause: course.cause,
        survivors: course.survivors,
        stdout: spawned.stdout.map(super::output::Stream::finish),
        stderr: spawned.stderr.map(super::output::Stream::finish),
        observed: spawned.supervisor.map(Supervisor::finish),
        logged,
    })
}

/// How a run went.
struct Course {
    exit: Exit,
    cause: Option<Cause>,
    survivors: Option<u32>,
}

fn watch(spawned: &mut Spawned, spec: &ExecSpec, abort: &Abort, tell: &mut dyn FnMut(&Denial)) -> io::Result<Course> {
    let deadline = spec.timeout().map(|timeout| Instant::now() + timeout);
    let mut stop: Option<Stop> = None;
    let (exit, mut gone) = loop {
        let due = stop.as_ref().map_or(deadline, |stop| Some(stop.due(DYING)));
        let ready = turn(spawned, due, Some(abort), tell)?;
        // The end of the command is looked at first: what had ended was neither late nor aborted.
        match spawned.process.ended() {
            Some(End::Exited(code)) => break (Exit::Code(code), ready.gone),
            Some(End::Killed(signal)) => break (Exit::Signal(signal), ready.gone),
            // The reaper was killed, by nobody of the run, and the kernel killed the command with it.
            None if ready.gone => break (Exit::Signal(Signal::SIGKILL as i32), true),
            None => {}
        }
        let requests = if ready.aborted { abort.requests() } else { 0 };
        match &mut stop {
            Some(stop) => {
                let again = requests > u32::from(stop.cause == Cause::Abort);
                stop.advance(again, &spawned.process);
                if stop.is_overdue(DYING) {
                    break (Exit::Signal(Signal::SIGKILL as i32), true);
                }
            }
            None if requests > 0 => {
                let mut begun = Stop::begin(Cause::Abort, spec.grace(), &spawned.process);
                begun.advance(requests > 1, &spawned.process);
                stop = Some(begun);
            }
            None if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                stop = Some(Stop::begin(Cause::Deadline, spec.grace(), &spawned.process));
            }
            None => {}
        }
    };
    // Whoever is left of the run is being killed by now.
    let over = Instant::now() + DYING;
    while !gone && Instant::now() < over {
        gone = turn(spawned, Some(over), None, tell)?.gone;
    }
    drain(spawned)?;
    spawned.process.reap(Duration::ZERO);
    Ok(Course {
        exit,
        cause: stop.map(|stop| stop.cause),
        survivors: spawned.process.survivors(),
    })
}

struct Ready {
    /// Whether no process of the run is left.
    gone: bool,
    aborted: bool,
}

/// The most descriptors a run waits for.
const MOST: usize = 8;

/// What a descriptor in the poll set stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Gone,
    Ended,
    Abort,
    Output,
    Call,
    NobodyCalls,
    Record,
    Input,
    InputClosed,
}

/// Waits for the next event, at most until `due`, moves the bytes that can be moved, and answers
/// the calls that wait.
fn turn(
    spawned: &mut Spawned,
    due: Option<Instant>,
    abort: Option<&Abort>,
    tell: &mut dyn FnMut(&Denial),
) -> io::Result<Ready> {
    let stdin = io::stdin();
    let happened = next_events(spawned, due, abort, &stdin)?;
    let has = |event| happened.contains(&event);
    if has(Event::Call)
        && let Some(supervisor) = &mut spawned.supervisor
    {
        supervisor.serve(tell);
    }
    if has(Event::NobodyCalls) {
        spawned.watching = false;
    }
    if has(Event::Record)
        && let Some(Ok(log)) = &mut spawned.log
    {
        log.read();
    }
    if has(Event::Output) {
        for stream in [&mut spawned.stdout, &mut spawned.stderr].into_iter().flatten() {
            stream.read_available()?;
        }
    }
    let spent = has(Event::Input) && !spawned.stdin.as_mut().is_some_and(|pump| pump.turn(&stdin));
    if spent || has(Event::InputClosed) {
        spawned.stdin = None;
    }
    Ok(Ready {
        gone: has(Event::Gone),
        aborted: has(Event::Abort),
    })
}

fn next_events(
    spawned: &Spawned,
    due: Option<Instant>,
    abort: Option<&Abort>,
    stdin: &io::Stdin,
) -> io::Result<Vec<Event>> {
    let readable = PollFlags::POLLIN;
    let (mut events, mut fds) = (Vec::with_capacity(MOST), Vec::with_capacity(MOST));
    let mut add = |event, fd, wanted| {
        events.push(event);
        fds.push(PollFd::new(fd, wanted));
    };
    add(Event::Gone, spawned.process.fd(), readable);
    if abort.is_some() {
        add(Event::Ended, spawned.process.notice(), readable);
    }
    if let Some(abort) = abort {
        add(Event::Abort, abort.as_fd(), readable);
    }
    for fd in [&spawned.stdout, &spawned.stderr]
        .into_iter()
        .flatten()
        .filter_map(|stream| stream.fd())
    {
        add(Event::Output, fd.as_fd(), readable);
    }
    if let Some(supervisor) = &spawned.supervisor
        && spawned.watching
    {
        add(Event::Call, supervisor.fd(), readable);
    }
    if let Some(Ok(log)) = &spawned.log {
        add(Event::Record, log.fd(), readable);
    }
    if let Some(pump) = &spawned.stdin {
        match pump.wants(stdin) {
            Wants::Sink(sink) => add(Event::Input, sink, PollFlags::POLLOUT),
            Wants::Source(source) => {
                add(Event::Input, source, readable);
                // Without events asked for, only the error of a closed reader is reported.
                add(Event::InputClosed, pump.sink(), PollFlags::empty());
            }
        }
    }
    match poll(&mut fds, until(due)) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    events.iter_mut().zip(&fds).for_each(|(event, fd)| {
        let got = fd.revents().unwrap_or(PollFlags::empty());
        // Closed rather than readable: no process of the run is left.
        if *event == Event::Call && !got.is_empty() && !got.contains(readable) {
            *event = Event::NobodyCalls;
        }
    });
    let mut happened = fds.iter().map(|fd| fd.any().unwrap_or(false));
    events.retain(|_| happened.next().unwrap_or(false));
    Ok(events)
}

/// A poll(2) timeout, rounded up so that a deadline has passed when it fires.
fn until(due: Option<Instant>) -> PollTimeout {
    let Some(due) = due else { return PollTimeout::NONE };
    let left = due.saturating_duration_since(Instant::now());
    let millis = left.as_nanos().div_ceil(1_000_000);
    i32::try_from(millis)
        .ok()
        .and_then(|ms| PollTimeout::try_from(ms).ok())
        .unwrap_or(PollTimeout::MAX)
}

/// Reads what the run left in its pipes. It is there already, unless somebody outside was handed
/// their ends: they get a short while.
fn drain(spawned: &mut Spawned) -> io::Result<()> {
    spawned.stdin = None;
    let over = Instant::now() + OTHERS;
    loop {
        for stream in [&mut spawned.stdout, &mut spawned.stderr].into_iter().flatten() {
            stream.read_available()?;
        }
        let open: Vec<_> = [&spawned.stdout, &spawned.stderr]
            .into_iter()
            .flatten()
            .filter_map(|s| s.fd())
            .collect();
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
