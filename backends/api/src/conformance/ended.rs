//! A run that was started, and what came of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{must, said};
use crate::descriptor::End;
use crate::{Effect, Enforcement, LaunchPlan, Launched};

/// Longer than any run of a case takes, in milliseconds; one that takes it hangs.
const PATIENCE: u16 = 10_000;

/// The refusals of a boundary. Any other errno says that an attempt was not really made.
const REFUSALS: [&str; 5] = ["EROFS", "EACCES", "EPERM", "EXDEV", "EBUSY"];

/// What came of a run.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) end: Option<End>,
    pub(super) survivors: Option<u32>,
    pub(super) plan: LaunchPlan,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Whether a plan says that an effect is governed.
pub(super) fn governs(plan: &LaunchPlan, effect: Effect) -> bool {
    match &plan.enforcement {
        Some(Enforcement::Full) => true,
        Some(Enforcement::Partial { ungoverned }) => !ungoverned.contains(&effect),
        None => false,
    }
}

impl Ended {
    /// What it printed.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// All that it said, for people.
    pub(super) fn shown(&self) -> String {
        let stderr = String::from_utf8_lossy(&self.stderr);
        format!("{:?}, stdout {:?}, stderr {stderr:?}", self.end, self.text())
    }

    /// That the command ended with 0.
    pub(super) fn must_succeed(&self) -> Result<(), String> {
        must(self.end == Some(End::Exited(0)), || self.shown())
    }

    /// Each attempt of its script, and what came of it.
    pub(super) fn attempts(&self) -> Result<BTreeMap<String, String>, String> {
        self.must_succeed()?;
        let text = self.text();
        let lines = text.lines().filter_map(|line| line.split_once('='));
        let attempts: BTreeMap<_, _> = lines.map(|(name, what)| (name.to_owned(), what.to_owned())).collect();
        must(!attempts.is_empty(), || {
            format!("it attempted nothing: {}", self.shown())
        })?;
        Ok(attempts)
    }

    /// That every attempt was refused by the boundary.
    pub(super) fn all_refused(&self) -> Result<(), String> {
        self.all(|what| REFUSALS.contains(&what))
    }

    /// That every attempt succeeded.
    pub(super) fn all_done(&self) -> Result<(), String> {
        self.all(|what| what == "done")
    }

    /// That every attempt ended in one of these ways.
    pub(super) fn all(&self, expected: impl Fn(&str) -> bool) -> Result<(), String> {
        let attempts = self.attempts()?;
        let other: Vec<_> = attempts.iter().filter(|(_, what)| !expected(what)).collect();
        must(other.is_empty(), || {
            format!("these ended otherwise than they must: {other:?}")
        })
    }

    /// That one attempt ended in a certain way.
    pub(super) fn must_be(&self, name: &str, expected: &[&str]) -> Result<(), String> {
        let attempts = self.attempts()?;
        let what = attempts.get(name).map_or("nothing", String::as_str);
        must(expected.contains(&what), || {
            format!("{name} ended with {what} and not {expected:?}")
        })
    }
}

/// Reads a stream, and hands on all of it when it has ended.
fn read(fd: OwnedFd) -> Receiver<Vec<u8>> {
    let (whole, read) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What cannot be read is missing in what a case looks for.
        let _ = File::from(fd).read_to_end(&mut bytes);
        let _ = whole.send(bytes);
    });
    read
}

/// Waits for a descriptor to be readable.
pub(super) fn await_fd(fd: impl AsFd, what: &str) -> Result<(), String> {
    let mut waiting = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    let ready = said(what, poll(&mut waiting, PollTimeout::from(PATIENCE)))?;
    must(ready > 0, || format!("waited {PATIENCE} ms in vain for {what}"))
}

/// A run that was started.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) launched: Launched,
    pub(super) plan: LaunchPlan,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
}

impl Started {
    /// One whose streams are read from now on.
    pub(super) fn new(launched: Launched, plan: LaunchPlan, [stdout, stderr]: [OwnedFd; 2]) -> Self {
        Self {
            launched,
            plan,
            stdout: read(stdout),
            stderr: read(stderr),
        }
    }

    /// Waits for its end.
    pub(super) fn finish(self) -> Result<Ended, String> {
        await_fd(self.launched.fd(), "the end of the run")?;
        let Self {
            mut launched,
            plan,
            stdout,
            stderr,
        } = self;
        must(launched.reap(Duration::from_secs(5)), || {
            "its reaper ended and cannot be reaped".to_owned()
        })?;
        let bytes = |stream: Receiver<Vec<u8>>| {
            let whole = stream.recv_timeout(Duration::from_millis(PATIENCE.into()));
            whole.map_err(|_| "the run has ended, and somebody still holds its streams".to_owned())
        };
        Ok(Ended {
            end: launched.ended(),
            survivors: launched.survivors(),
            plan,
            stdout: bytes(stdout)?,
            stderr: bytes(stderr)?,
        })
    }
}
