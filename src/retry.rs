//! One strictly looser run of exactly what ran before.
//!
//! [`Retry::of`] finds everything as it was and computes what would be looser; nobody is asked for
//! what is no loosening. An approval is bound to all of it, and [`Retry::run`] takes the permit by value:
//! a loosening runs once, with a decision on record, or not at all.

mod again;

use std::ffi::OsString;
use std::path::PathBuf;

use ringfence_backend::SandboxMode;

use crate::error::Error;
use crate::exec::{Abort, Capture, Event, ExecRequest, ExecSpec, Runner};
use crate::facts::RunReport;
use crate::policy::{Difference, PolicyError};
use crate::runs::{KeptRun, Runs};

/// What is to be looser: exactly one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The mode.
    Mode(SandboxMode),
    /// One more writable root. A relative path is taken from the workspace root.
    Write(PathBuf),
}

/// The circumstances of whoever asks, who has what the record of a run leaves out.
#[derive(Clone, Debug)]
pub struct Circumstances {
    /// Variables given for this run.
    pub given_env: Vec<(OsString, OsString)>,
    /// The caller's environment. Only what has the value that it had in the first run is taken from it.
    pub callers_env: Vec<(OsString, OsString)>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The state directory.
    pub state_dir: Option<PathBuf>,
    /// The loosest mode that is deployed.
    pub ceiling: SandboxMode,
    /// `$TMPDIR`.
    pub tmpdir: Option<PathBuf>,
    /// What becomes of the output.
    pub capture: Capture,
    /// What the first run was given on standard input from memory.
    pub input: Option<Vec<u8>>,
}

/// A run that may be started once it is approved.
#[derive(Debug)]
pub struct Retry {
    kept: KeptRun,
    request: ExecRequest,
    difference: Difference,
}

impl Retry {
    /// Finds the finished run `run`, and what would be looser.
    ///
    /// # Errors
    /// [`Error::Input`] for a run that is not known; [`Error::NotStrictlyLooser`] when the change is no
    /// loosening, or something is no longer as it was.
    pub fn of(runner: &Runner, run: &str, change: &Change, around: &Circumstances) -> Result<Self, Error> {
        let kept = find(runner, run)?;
        let policies = again::policies(&kept.policy, change, around).map_err(no_loosening)?;
        let difference =
            Difference::between(&policies.standing, &policies.looser).map_err(|reason| Error::NotStrictlyLooser {
                reason: reason.to_string(),
                hint: match change {
                    Change::Mode(_) => format!("the run had {}; name a looser mode", kept.policy.mode),
                    Change::Write(_) => "name a path that the run could not write".to_owned(),
                },
            })?;
        exactly(change, &difference)?;
        let request = again::request(&kept, policies.looser, around)?;
        Ok(Self {
            kept,
            request,
            difference,
        })
    }
}

/// A root beside a mode that has none opens nothing.
fn no_loosening(error: Error) -> Error {
    match error {
        Error::Policy(PolicyError::NoWritableRoots { mode, .. }) => Error::NotStrictlyLooser {
            reason: format!("the run had {mode}, which has no writable roots"),
            hint: "name a looser mode with --mode".to_owned(),
        },
        other => other,
    }
}

/// Refuses a difference in anything but what was named.
fn exactly(change: &Change, difference: &Difference) -> Result<(), Error> {
    let as_named = match change {
        Change::Mode(mode) => difference.mode.is_some_and(|(_, to)| to == *mode),
        Change::Write(_) => difference.only_root().is_some(),
    };
    if as_named {
        return Ok(());
    }
    Err(Error::NotStrictlyLooser {
        reason: format!("it would change something else as well: {difference}"),
        hint: "start a new run with the policy that is meant".to_owned(),
    })
}

fn find(runner: &Runner, run: &str) -> Result<KeptRun, Error> {
    let unknown = |reason: String| {
        Error::input(
            "the run",
            run,
            reason,
            "name the runId of a finished run of this user; old runs are forgotten in time",
        )
    };
    let state = runner.selection().state().map_err(unknown)?;
    let kept = Runs::of(&state)
        .and_then(|runs| runs.find(run))
        .map_err(|error| unknown(format!("its record cannot be read: {error}")))?;
    let kept = kept.ok_or_else(|| unknown("there is no such run, or not any more".to_owned()))?;
    if !kept.whole {
        return Err(unknown("its shell text was too long to be kept".to_owned()));
    }
    Ok(kept)
}
