//! How a denial is known.
//!
//! One question, [`judge`], whatever the source. The only source so far is the last resort: the
//! command's own words.

mod dialect;

use crate::facts::{CapturedStream, Denied, Exit};

/// What is known of a run that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// Whether anything was confined.
    pub confined: bool,
    /// How the command ended.
    pub exit: Exit,
    /// What it said on standard error, when that was captured.
    pub stderr: Option<&'a CapturedStream>,
    /// How refusals of this run's boundary read.
    pub dialect: &'static [&'static str],
}

/// Whether the confinement refused a file effect, and what that rests on.
#[must_use]
pub fn judge(observation: &Observation<'_>) -> Denied {
    if !observation.confined {
        return Denied::NothingConfined;
    }
    match observation.stderr {
        Some(stderr) => Denied::Inferred(dialect::speaks_of_a_refusal(observation, stderr)),
        None => Denied::Unavailable {
            why: "the command's output was not captured",
        },
    }
}
