//! The process that keeps a run together, outside its boundary.
//!
//! It is tied to its runner by a socket, whose end means that the run is to end. It makes one child,
//! which becomes `sandbox-exec`, then the launcher, then the command, and keeps the child's number
//! reserved until the rest of the run is killed.

use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::frame::{Frame, LONGEST, failed};
use super::raw::{self, Turn};
use super::start;
use super::table::Members;
use crate::Containment;
use crate::status::{Failure, RECORD, Record, Stage};

mod child;

use child::{Child, begin};

/// How soon processes are looked for again that were killed, or may have ended by themselves.
const AGAIN: Duration = Duration::from_millis(5);
const SOON: u8 = 5;
/// How long processes are killed again and again, new ones of theirs included, before they are only waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Serves one run, whose runner is behind standard input.
pub(super) fn main() -> u8 {
    raw::ignore(Signal::SIGPIPE);
    // Giving away the terminal is for those who have it; the signals of keys are not for this process.
    raw::ignore(Signal::SIGTTOU);
    // A careless host lets more through than it means to: a pipe that is held here would never end.
    if raw::close_all().is_err() {
        return 125;
    }
    let Ok(control) = io::stdin().as_fd().try_clone_to_owned() else {
        return 125;
    };
    let mut control = UnixStream::from(control);
    let Ok((order, fds)) = start::receive(&mut control) else {
        return 125;
    };
    match begin(&order, fds) {
        Ok(child) => run(control, child),
        Err(failure) => Frame::Failed(failure).tell(&mut control),
    }
    0
}

/// Follows the child to its end and beyond.
fn run(mut control: UnixStream, mut child: Child) {
    let members = child.members;
    let (turns, say) = match io::pipe() {
        Ok(pipe) => pipe,
        Err(error) => return give_up(&mut control, members, &Frame::Failed(failed(Stage::Parent)(error))),
    };
    let waiting = std::thread::Builder::new().spawn(move || report_turns(members.command, say));
    if let Err(error) = waiting {
        return give_up(&mut control, members, &Frame::Failed(failed(Stage::Parent)(error)));
    }
    match outcome(&control, &mut child) {
        Some(Outcome::Armed) => {}
        Some(Outcome::Failed(failure)) => return give_up(&mut control, members, &Frame::Failed(failure)),
        Some(Outcome::Vanished) => {
            members.signal(Signal::SIGKILL);
            let mut said = Vec::new();
            // What is there by now: somebody who left the run may hold the other end for ever.
            let _ = nix::fcntl::fcntl(
                &child.complaint,
                nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK),
            );
            let _ = (&mut child.complaint).take(LONGEST as u64).read_to_end(&mut said);
            return give_up(&mut control, members, &Frame::Vanished(said));
        }
        None => return give_up(&mut control, members, &Frame::Gone(None)),
    }
    drop(child);
    let containment = if members.group {
        Containment::ProcessGroup
    } else {
        Containment::Descendants
    };
    let command = members.command;
    Frame::Started { command, containment }.tell(&mut control);
    watch(&mut control, members, turns);
}

/// How a start went.
enum Outcome {
    Armed,
    Failed(Failure),
    Vanished,
}

/// Reads the launcher's records until it has executed the command or has ended. None when the runner
/// is gone.
fn outcome(control: &UnixStream, child: &mut Child) -> Option<Outcome> {
    let mut told = Vec::new();
    loop {
        let mut fds = [
            PollFd::new(child.status.as_fd(), PollFlags::POLLIN),
            PollFd::new(control.as_fd(), PollFlags::empty()),
        ];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(_) => return None,
        }
        let happened = |at: usize| fds.get(at).is_some_and(|fd| fd.any() != Some(false));
        let (spoke, gone) = (happened(0), happened(1));
        if !spoke && gone {
            return None;
        }
        let mut bytes = [0; RECORD];
        match child.status.read(&mut bytes) {
            Ok(0) => break,
            Ok(got) => told.extend_from_slice(bytes.get(..got)?),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    let records = told
        .chunks_exact(RECORD)
        .filter_map(|chunk| Record::decode(chunk.try_into().ok()?));
    let mut armed = false;
    for record in records {
        match record {
            Record::Armed => armed = true,
            Record::Failed(failure) => return Some(Outcome::Failed(failure)),
            Record::Tried { .. } | Record::Here | Record::Started => {}
        }
    }
    Some(if armed { Outcome::Armed } else { Outcome::Vanished })
}

/// Ends everything, and says why.
fn give_up(control: &mut UnixStream, members: Members, why: &Frame) {
    members.signal(Signal::SIGKILL);
    let _ = raw::reap(members.command);
    why.tell(control);
}

/// Tells of each stop of the command, and of its end, by a byte.
fn report_turns(command: i32, mut to: io::PipeWriter) {
    loop {
        let turn = raw::await_turn(command);
        let byte = if matches!(turn, Ok(Turn::Stopped)) { b'T' } else { b'E' };
        if to.write_all(&[byte]).is_err() || byte == b'E' {
            return;
        }
    }
}

/// What has been asked for, and what has happened.
struct State {
    /// The run is to end now.
    ending: bool,
    /// Its processes were asked to end, and have until it is to end.
    spared: bool,
    /// The command has ended.
    ended: bool,
}

impl State {
    /// Whether nothing is waited for any more.
    fn is_over(&self, members: Members) -> bool {
        self.ended && (self.ending || !self.spared || !others_left(members))
    }
}

/// Waits for the end of the run.
fn watch(control: &mut UnixStream, members: Members, mut turns: PipeReader) {
    let mut state = State {
        ending: false,
        spared: false,
        ended: false,
    };
    while !state.is_over(members) {
        if state.ending {
            members.signal(Signal::SIGKILL);
        }
        let (turned, asked) = next(control, &turns, &mut state);
        if turned {
            let mut byte = [0];
            match turns.read(&mut byte) {
                Ok(1) if byte == *b"T" => Frame::Stopped.tell(control),
                _ => state.ended = true,
            }
        }
        if asked {
            obey(control, members, &mut state);
        }
    }
    finish(control, members);
}

/// Whether anybody but the command is left, or nobody can tell.
fn others_left(members: Members) -> bool {
    let found = members.find();
    found.map_or(true, |found| found.iter().any(|pid| *pid != members.command))
}

/// Waits until the command has stopped or ended, or the runner asks for something: which of them it was.
fn next(control: &UnixStream, turns: &PipeReader, state: &mut State) -> (bool, bool) {
    let nothing = PollFlags::empty();
    // The end of each is heard of once.
    let mut fds = Vec::new();
    if !state.ended {
        fds.push(PollFd::new(turns.as_fd(), PollFlags::POLLIN));
    }
    if !state.ending {
        fds.push(PollFd::new(control.as_fd(), PollFlags::POLLIN));
    }
    let often = state.ended || state.ending;
    let timeout = if often {
        PollTimeout::from(SOON)
    } else {
        PollTimeout::NONE
    };
    match poll(&mut fds, timeout) {
        Ok(_) => {}
        Err(Errno::EINTR) => return (false, false),
        Err(_) => state.ending = true,
    }
    let mut happened = fds.iter().map(|fd| fd.revents().unwrap_or(nothing) != nothing);
    let turned = !state.ended && happened.next().unwrap_or(false);
    let asked = happened.next().unwrap_or(false);
    (turned, asked)
}

/// Takes one request of the runner's.
fn obey(control: &mut UnixStream, members: Members, state: &mut State) {
    let mut request = [0; 2];
    match control.read_exact(&mut request) {
        Ok(()) => match request {
            [b's', _] => state.spared = true,
            [b'k', number] => {
                if let Ok(signal) = Signal::try_from(i32::from(number)) {
                    members.signal(signal);
                }
            }
            _ => state.ending = true,
        },
        Err(_) => state.ending = true,
    }
}

/// Kills what is left, tells how the command ended and how many were left, and waits for them.
fn finish(control: &mut UnixStream, members: Members) {
    let others = || {
        members.find().ok().map(|mut found| {
            found.remove(&members.command);
            found
        })
    };
    let first = others();
    // Without a group, those whose parent has ended are nobody's that could be found.
    let counted = first.as_ref().filter(|_| members.group);
    let found = counted.and_then(|found| u32::try_from(found.len()).ok());
    let mut left = first.unwrap_or_default();
    // The command's number is its own until it is reaped, and so is its group's: nobody else is hit.
    members.signal(Signal::SIGKILL);
    let over = Instant::now() + PATIENCE;
    while !left.is_empty() && Instant::now() < over {
        std::thread::sleep(AGAIN);
        members.signal(Signal::SIGKILL);
        left = others().unwrap_or_default();
    }
    if let Some(end) = raw::reap(members.command) {
        Frame::Ended(end).tell(control);
    }
    // These have been killed, and wait for a device or the like.
    while left
        .iter()
        .any(|pid| nix::sys::signal::kill(Pid::from_raw(*pid), None) != Err(Errno::ESRCH))
    {
        std::thread::sleep(AGAIN);
    }
    Frame::Gone(found).tell(control);
}
