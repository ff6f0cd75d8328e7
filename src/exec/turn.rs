//! One turn of waiting for a run: what has happened, in one poll(2), and what is done about it.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use nix::sys::signal::Signal;
use ringfence_backend::Launched;
use ringfence_backend::status::Word;

use super::abort::Requests;
use super::input::Wants;
use super::spawn::Spawned;
use super::tree;
use crate::facts::Denial;

/// What is told while a run goes on.
#[derive(Clone, Copy)]
pub(super) enum News<'a> {
    /// The first denial of its kind.
    Denied(&'a Denial),
    /// The command was stopped.
    Stopped(Stopped<'a>),
}

/// A run whose command was stopped by a signal.
#[derive(Clone, Copy, Debug)]
pub struct Stopped<'a>(pub(super) &'a Launched);

impl Stopped<'_> {
    /// Whether the command still stands. Somebody may have continued it along with its whole group since,
    /// this process included.
    #[must_use]
    pub fn is_still_so(self) -> bool {
        tree::is_stopped(self.0)
    }

    /// Continues every process of the run.
    pub fn resume(self) {
        tree::signal(self.0, &[Signal::SIGCONT]);
    }
}

/// What is waited for besides the run's own descriptors.
pub(super) struct Waiting<'a> {
    /// Until when.
    pub(super) due: Option<Instant>,
    /// Requests to end the run.
    pub(super) requests: Option<&'a Requests<'a>>,
    /// Whether it is known that the command has ended.
    pub(super) ended: bool,
}

/// What a turn has shown.
#[allow(clippy::struct_excessive_bools, reason = "each is something that may have happened")]
pub(super) struct Ready {
    /// Whether no process of the run is left.
    pub(super) gone: bool,
    /// Whether the end of the run may have been asked for.
    pub(super) aborted: bool,
    /// Whether there was output.
    pub(super) spoke: bool,
    /// Whether the command was stopped, and stands still.
    pub(super) stopped: bool,
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

/// Waits for the next event, moves the bytes that can be moved, and answers
/// the calls that wait.
pub(super) fn turn(spawned: &mut Spawned, waiting: &Waiting<'_>, tell: &mut dyn FnMut(News<'_>)) -> io::Result<Ready> {
    let stdin = io::stdin();
    let happened = next_events(spawned, waiting, &stdin)?;
    let has = |event| happened.contains(&event);
    if has(Event::Call)
        && let Some(supervisor) = &mut spawned.supervisor
    {
        supervisor.serve(&mut |denial| tell(News::Denied(denial)));
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
        for stream in spawned.streams() {
            stream.lock().read_available()?;
        }
    }
    let spent = has(Event::Input) && !spawned.stdin.as_mut().is_some_and(|pump| pump.turn(&stdin));
    if spent || has(Event::InputClosed) {
        spawned.stdin = None;
    }
    Ok(Ready {
        gone: has(Event::Gone),
        aborted: has(Event::Abort),
        spoke: has(Event::Output),
        stopped: has(Event::Ended) && spawned.process.word() == Some(Word::Stopped),
    })
}

fn next_events(spawned: &Spawned, waiting: &Waiting<'_>, stdin: &io::Stdin) -> io::Result<Vec<Event>> {
    let readable = PollFlags::POLLIN;
    let pipes: Vec<_> = spawned.streams().filter_map(|stream| stream.lock().fd()).collect();
    let (mut events, mut fds) = (Vec::with_capacity(MOST), Vec::with_capacity(MOST));
    let mut add = |event, fd, wanted| {
        events.push(event);
        fds.push(PollFd::new(fd, wanted));
    };
    add(Event::Gone, spawned.process.fd(), readable);
    if !waiting.ended {
        add(Event::Ended, spawned.process.notice(), readable);
    }
    if let Some(requests) = waiting.requests {
        add(Event::Abort, requests.as_fd(), readable);
    }
    for pipe in &pipes {
        add(Event::Output, pipe.as_fd(), readable);
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
    match poll(&mut fds, until(waiting.due)) {
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
pub(super) fn until(due: Option<Instant>) -> PollTimeout {
    let Some(due) = due else { return PollTimeout::NONE };
    let left = due.saturating_duration_since(Instant::now());
    let millis = left.as_nanos().div_ceil(1_000_000);
    i32::try_from(millis)
        .ok()
        .and_then(|ms| PollTimeout::try_from(ms).ok())
        .unwrap_or(PollTimeout::MAX)
}
