//! How a denial is known.
//!
//! One question, [`judge`], whatever the source. The best is the kernel: the calls that change
//! files wait for a supervisor, which sees what is refused and answers it itself. The last
//! resort is the command's own words.

pub(crate) mod accelerator;
mod bounds;
mod dialect;
mod emulate;
mod judgement;
mod ledger;
mod patch;
mod permission;
mod resolve;
mod shortcut;
mod supervisor;
mod walk;

pub(crate) use supervisor::Supervisor;

use std::path::Path;

use crate::facts::{CapturedStream, Denied, Exit, Observed};

/// Why the accelerator cannot be had with this state directory; nothing when it can.
#[must_use]
pub fn accelerator_missing(state_dir: Option<&Path>) -> Option<String> {
    match state_dir {
        Some(dir) => accelerator::find(dir).err(),
        None => Some("no state directory is known to keep it in".to_owned()),
    }
}

/// What is known of a run that has ended.
#[derive(Debug)]
pub struct Observation<'a> {
    /// Whether anything was confined.
    pub confined: bool,
    /// What was seen of the calls themselves, when they were watched.
    pub observed: Option<Observed>,
    /// How the command ended.
    pub exit: Exit,
    /// What it said on standard error, when that was captured.
    pub stderr: Option<&'a CapturedStream>,
    /// How refusals of this run's boundary read.
    pub dialect: &'static [&'static str],
}

/// Whether the confinement refused a file effect, and what that rests on.
#[must_use]
pub fn judge(observation: Observation<'_>) -> Denied {
    if !observation.confined {
        return Denied::NothingConfined;
    }
    match (observation.observed, observation.stderr) {
        (Some(seen), _) if seen.unseen > 0 && seen.denials.is_empty() => Denied::Unavailable {
            why: "a process of the command kept itself from being looked at",
        },
        (Some(seen), _) => Denied::Observed(seen),
        (None, Some(stderr)) => Denied::Inferred(dialect::speaks_of_a_refusal(
            observation.exit,
            stderr,
            observation.dialect,
        )),
        (None, None) => Denied::Unavailable {
            why: "nobody watched the command, and its output was not captured",
        },
    }
}
