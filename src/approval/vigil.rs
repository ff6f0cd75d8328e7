//! Waiting for an answer: for the file of a decision, for whoever asks to withdraw, and for the end of
//! the time.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::clock::{Clock, Left};
use super::decision::{Decision, Outcome};
use super::office::{host, may_come_from_elsewhere};
use super::request::Request;
use super::store::{Found, Store};
use crate::audit::Decider;
use crate::error::{Error, Expiry};

#[cfg(target_os = "linux")]
#[path = "vigil/inotify.rs"]
mod bell;
#[cfg(not(target_os = "linux"))]
#[path = "vigil/portable.rs"]
mod bell;

use bell::Bell;

/// How long at most until everything is looked at again: a clock may jump, and the machine may sleep.
const GLANCE: Duration = Duration::from_secs(1);
/// The same where nothing tells of new files.
const GLANCE_WITHOUT_BELL: Duration = Duration::from_millis(200);

/// How whoever asks can withdraw a request while somebody is asked.
pub trait Withdrawal {
    /// Whether it is withdrawn.
    fn is_withdrawn(&self) -> bool;

    /// Hears that the request waits for an answer from elsewhere, which may take long.
    fn waits(&self, _request: &Request) {}

    /// What becomes readable when it is, if anything does.
    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A request that is never withdrawn.
#[derive(Clone, Copy, Debug)]
pub struct Never;

impl Withdrawal for Never {
    fn is_withdrawn(&self) -> bool {
        false
    }
}

/// How the waiting ended.
#[derive(Debug)]
pub(super) enum End {
    /// A decision was put in its place.
    Decided(Decision),
    /// The request was withdrawn.
    Withdrawn,
    /// The time is over.
    Expired(Expiry),
}

/// What an answerer came to.
#[derive(Debug)]
pub(super) enum Said {
    /// This, by somebody.
    Decided(Outcome, Decider),
    /// Nothing, and why.
    Nothing(String),
    /// The waiting ended meanwhile.
    Ended(End),
}

/// What a turn of waiting came to.
#[derive(Debug)]
pub(super) enum Turn {
    /// The descriptor is ready.
    Ready,
    /// The time of this turn has passed.
    Passed,
    /// The waiting has ended.
    Ended(End),
}

/// Somebody waits for an answer.
pub(super) struct Vigil<'a> {
    store: &'a Store,
    clock: &'a Clock,
    request: &'a Request,
    withdrawal: &'a dyn Withdrawal,
    asks: bool,
    bell: Option<Bell>,
}

impl<'a> Vigil<'a> {
    /// Of whoever asks: it believes the queue alone, for it makes every other decision itself.
    pub(super) fn new(
        store: &'a Store,
        clock: &'a Clock,
        request: &'a Request,
        withdrawal: &'a dyn Withdrawal,
    ) -> Self {
        Self {
            store,
            clock,
            request,
            withdrawal,
            asks: true,
            bell: Bell::hang(store.decisions()).ok(),
        }
    }

    /// Of whoever answers from elsewhere: every decision ends it.
    pub(super) fn of_answerer(store: &'a Store, clock: &'a Clock, request: &'a Request) -> Self {
        Self {
            asks: false,
            ..Self::new(store, clock, request, &Never)
        }
    }

    /// Tells whoever asks that the request waits for an answer from elsewhere.
    pub(super) fn tell_asker(&self) {
        self.withdrawal.waits(self.request);
    }

    /// Whether the waiting is over.
    pub(super) fn look(&self) -> Result<Option<End>, Error> {
        if let Some(bell) = &self.bell {
            // Hushed before the look: what comes in between rings again.
            bell.hush();
        }
        if self.withdrawal.is_withdrawn() {
            return Ok(Some(End::Withdrawn));
        }
        match self.store.decision(self.request) {
            Found::Ours(decision) if !self.asks || may_come_from_elsewhere(self.request, &decision) => {
                return Ok(Some(End::Decided(decision)));
            }
            // What is no decision of this request must not stand in the way of one.
            Found::Ours(_) | Found::Foreign(_) if self.asks => {
                let _ = self.store.put_aside(&self.request.id);
            }
            Found::Ours(_) | Found::Foreign(_) | Found::Nothing => {}
        }
        let over = Expiry::Request(self.request.deadline.length());
        Ok(self.left()?.expiry(over).map(End::Expired))
    }

    fn left(&self) -> Result<Left, Error> {
        Ok(self.request.deadline.left(&self.clock.now().map_err(host)?))
    }

    /// Waits until the descriptor is ready, or this much time has passed, or the waiting is over.
    pub(super) fn wait(&self, fds: &[(BorrowedFd<'_>, PollFlags)], at_most: Option<Duration>) -> Result<Turn, Error> {
        let until = at_most.and_then(|time| Instant::now().checked_add(time));
        loop {
            if let Some(end) = self.look()? {
                return Ok(Turn::Ended(end));
            }
            let mut nap = if self.bell.is_some() {
                GLANCE
            } else {
                GLANCE_WITHOUT_BELL
            };
            if let Left::Time(left) = self.left()? {
                // A millisecond more: it has come when this ends, and not almost.
                nap = nap.min(left + Duration::from_millis(1));
            }
            if let Some(until) = until {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(Turn::Passed);
                }
                nap = nap.min(left + Duration::from_millis(1));
            }
            if self.doze(fds, nap).map_err(host)? {
                return Ok(Turn::Ready);
            }
        }
    }

    /// Sleeps until something happens; tells whether it is one of these descriptors.
    fn doze(&self, fds: &[(BorrowedFd<'_>, PollFlags)], nap: Duration) -> io::Result<bool> {
        let mut polled: Vec<_> = fds.iter().map(|(fd, what)| PollFd::new(*fd, *what)).collect();
        let of_caller = polled.len();
        if let Some(bell) = &self.bell {
            polled.push(PollFd::new(bell.as_fd(), PollFlags::POLLIN));
        }
        if let Some(fd) = self.withdrawal.as_fd() {
            polled.push(PollFd::new(fd, PollFlags::POLLIN));
        }
        let nap = PollTimeout::try_from(nap).unwrap_or(PollTimeout::ZERO);
        match poll(&mut polled, nap) {
            Ok(_) => Ok(polled[..of_caller].iter().any(|it| it.any().unwrap_or(true))),
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}
