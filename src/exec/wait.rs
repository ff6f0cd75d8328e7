//! Waiting for a command: its end, its output, its input, its deadline, in one poll loop.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use ringfence_backend::Session;

use super::input::Wants;
use super::spawn::Spawned;
use super::spec::ExecSpec;
use super::stop::{Abort, Cause, Stop, signal_all};
use crate::facts::{CapturedStream, Exit};

/// How long a finished command's pipes may stay silent before the result goes out without their end.
const IDLE: Duration = Duration::from_millis(100);

/// What came of a command.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) exit: Exit,
    pub(super) cause: Option<Cause>,
    pub(super) stdout: Option<CapturedStream>,
    pub(super) stderr: Option<CapturedStream>,
}

/// Waits until the command has ended and its output is read.
///
/// # Errors
/// The operating system's, when the command can no longer be watched; it is killed first.
pub(super) fn wait(mut spawned: Spawned, spec: &ExecSpec, abort: &Abort) -> io::Result<Ended> {
    let result = watch(&mut spawned, spec, abort);
    if result.is_err() {
        signal_all(&spawned.process, spawned.session, Signal::SIGKILL);
    }
    // Only now does the process id become free for others.
    let reaped = waitid(Id::PIDFd(spawned.process.pidfd.as_fd()), WaitPidFlag::WEXITED);
    let (exit, cause) = result?;
    reaped?;
    Ok(Ended {
        exit,
        cause,
        stdout: spawned.stdout.map(super::output::Stream::finish),
        stderr: spawned.stderr.map(super::output::Stream::finish),
    })
}

fn watch(spawned: &mut Spawned, spec: &ExecSpec, abort: &Abort) -> io::Result<(Exit, Option<Cause>)> {
    let deadline = spec.timeout().map(|timeout| Instant::now() + timeout);
    let mut stop: Option<Stop> = None;
    let exit = loop {
        let due = stop.as_ref().map_or(deadline, Stop::due);
        let ready = turn(spawned, due, stop.is_none().then_some(abort))?;
        // The end of the command is looked at first: what had ended was neither late nor aborted.
        if ready.ended {
            break exit_of(spawned)?;
        }
        match &mut stop {
            Some(stop) => stop.advance(&spawned.process, spawned.session),
            None if ready.aborted => {
                stop = Some(Stop::begin(
                    Cause::Abort,
                    spec.grace(),
                    &spawned.process,
                    spawned.session,
                ));
            }
            None if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                stop = Some(Stop::begin(
                    Cause::Deadline,
                    spec.grace(),
                    &spawned.process,
                    spawned.session,
                ));
            }
            None => {}
        }
    };
    drain(spawned)?;
    Ok((exit, stop.map(|stop| stop.cause)))
}

struct Ready {
    ended: bool,
    aborted: bool,
}

/// Waits for the next event, at most until `due`, and moves the bytes that can be moved.
fn turn(spawned: &mut Spawned, due: Option<Instant>, abort: Option<&Abort>) -> io::Result<Ready> {
    let stdin = io::stdin();
    let pumped = {
        let mut fds = vec![PollFd::new(spawned.process.pidfd.as_fd(), PollFlags::POLLIN)];
        fds.extend(abort.map(|abort| PollFd::new(abort.as_fd(), PollFlags::POLLIN)));
        for stream in [&spawned.stdout, &spawned.stderr].into_iter().flatten() {
            fds.extend(stream.fd().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
        }
        let streams = fds.len();
        if let Some(pump) = &spawned.stdin {
            match pump.wants(&stdin) {
                Wants::Sink(sink) => fds.push(PollFd::new(sink, PollFlags::POLLOUT)),
                Wants::Source(source) => {
                    fds.push(PollFd::new(source, PollFlags::POLLIN));
                    // Without events asked for, only the error of a closed reader is reported.
                    fds.push(PollFd::new(pump.sink(), PollFlags::empty()));
                }
            }
        }
        match poll(&mut fds, until(due)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ended = fds[0].any().unwrap_or(false);
        let aborted = abort.is_some() && fds[1].any().unwrap_or(false);
        let pumped = fds[streams..].iter().any(|fd| fd.any().unwrap_or(false));
        let closed = fds.get(streams + 1).is_some_and(|sink| sink.any().unwrap_or(false));
        (Ready { ended, aborted }, pumped, closed)
    };
    let (ready, pumped, closed) = pumped;
    for stream in [&mut spawned.stdout, &mut spawned.stderr].into_iter().flatten() {
        stream.read_available()?;
    }
    if closed || (pumped && !spawned.stdin.as_mut().is_some_and(|pump| pump.turn(&stdin))) {
        spawned.stdin = None;
    }
    Ok(ready)
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

/// How the command ended. It stays a zombie, so that its number keeps naming its group.
fn exit_of(spawned: &Spawned) -> io::Result<Exit> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    match waitid(Id::PIDFd(spawned.process.pidfd.as_fd()), flags)? {
        WaitStatus::Exited(_, code) => Ok(Exit::Code(code)),
        WaitStatus::Signaled(_, signal, _) => Ok(Exit::Signal(signal as i32)),
        other => Err(io::Error::other(format!(
            "the command ended in a way that is not known: {other:?}"
        ))),
    }
}

/// Reads what the command left in its pipes.
///
/// What it wrote itself is there already. Whoever else holds the pipes is ended with the run and
/// gets a short, silent while to close them.
fn drain(spawned: &mut Spawned) -> io::Result<()> {
    spawned.stdin = None;
    if spawned.session == Session::Own {
        signal_all(&spawned.process, spawned.session, Signal::SIGKILL);
    }
    loop {
        let mut any = false;
        for stream in [&mut spawned.stdout, &mut spawned.stderr].into_iter().flatten() {
            any |= stream.read_available()?;
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
        if ready == 0 && !any {
            return Ok(());
        }
    }
}
