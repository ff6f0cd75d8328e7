//! One strictly looser run of exactly what ran before.
//!
//! [`Retry::of`] finds everything as it was and computes what would be looser; nobody is asked for
//! what is no loosening. An approval is bound to all of it, and [`Approved::run`] takes the grant by value:
//! a loosening runs once, with a decision on record, or not at all.

mod again;
mod card;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ringfence_backend::{PinnedProgram, Require, SandboxMode};

use crate::approval::{self, Binding, Desk, Grant, Moment, Question, Withdrawal};
use crate::error::Error;
use crate::exec::{Abort, Capture, Event, ExecRequest, ExecSpec, Origin, Runner};
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
    /// The name of the run that may come of it.
    pub run_id: String,
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
    /// How complete enforcement must be at least: what is deployed holds for runs that are older, too.
    pub require: Require,
    /// The mode that the run's session has now; absent where nobody knows of one.
    pub session_mode: Option<SandboxMode>,
    /// `$TMPDIR`.
    pub tmpdir: Option<PathBuf>,
    /// What becomes of the output.
    pub capture: Capture,
    /// What the first run was given on standard input from memory.
    pub input: Option<Vec<u8>>,
}

/// A run that has ended, as far as it is kept.
#[derive(Debug)]
pub struct Finished(KeptRun);

/// A run that may be started once it is approved.
#[derive(Debug)]
pub struct Retry {
    kept: KeptRun,
    request: ExecRequest,
    difference: Difference,
}

impl Retry {
    /// Finds out what would be looser than in the finished run, and finds the rest as it was.
    ///
    /// # Errors
    /// [`Error::NotStrictlyLooser`] when the change is no loosening, or something is no longer as it was.
    pub fn of(finished: Finished, change: &Change, around: &Circumstances) -> Result<Self, Error> {
        let Finished(kept) = finished;
        again::session_allows(&kept.policy, around)?;
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

    /// What would be looser.
    #[must_use]
    pub const fn difference(&self) -> &Difference {
        &self.difference
    }

    /// Asks for it, once it is known that it could run at all.
    ///
    /// # Errors
    /// Every way in which the command could not run; [`Error::Approval`] for every answer but yes.
    pub fn ask(
        self,
        runner: &Runner,
        desk: &Desk,
        asker: &str,
        justification: &str,
        withdrawal: &dyn Withdrawal,
    ) -> Result<Approved, Error> {
        // Nobody is asked for what this host refuses anyhow.
        let spec = runner.resolve(self.request.clone())?;
        again::same_workdir(&self.kept.workdir, &spec)?;
        let nonce = approval::nonce().map_err(host)?;
        let looked = self.look(&spec, nonce)?;
        drop(spec);
        let question = self.question(&looked, asker, justification);
        let binding = looked.binding;
        let grant = desk.ask(question, binding, withdrawal)?;
        Ok(Approved {
            retry: self,
            nonce,
            grant,
        })
    }

    /// What is asked.
    fn question(&self, looked: &Looked, asker: &str, justification: &str) -> Question {
        card::question(
            &self.kept,
            &self.request.policy,
            &self.difference,
            looked,
            &self.request.env,
            asker,
            justification,
        )
    }

    /// Everything that an approval is bound to, as it is now. The directory is the one that the run has
    /// already: its name may lead elsewhere meanwhile.
    fn look(&self, spec: &ExecSpec, nonce: [u8; 32]) -> Result<Looked, Error> {
        let program = self.request.argv.first().cloned().unwrap_or_default();
        let candidates = crate::exec::candidates(&program, &self.request.env);
        let file =
            crate::runs::Executable::first_of(&candidates, spec.workdir()).ok_or_else(|| Error::CommandNotFound {
                program: program.clone(),
            })?;
        let executable = approval::Executable::examine(file.file.path())
            .map_err(|source| Error::CommandNotExecutable { program, source })?;
        let (stdin, content) = again::stdin(&self.kept.input)?;
        let binding = Binding {
            argv: self.request.argv.clone(),
            workdir: approval::Place {
                path: spec.workdir().to_owned(),
                device: spec.workdir_id().device,
                inode: spec.workdir_id().inode,
            },
            environment: approval::environment(&self.request.env),
            executable,
            stdin,
            policy: canonical(&self.kept.policy)?,
            difference: self.difference.to_string(),
            boot: Moment::now().map_err(host)?.boot,
            uid: nix::unistd::geteuid().as_raw(),
            run: self.kept.run.clone(),
            nonce,
        };
        Ok(Looked {
            binding,
            program: file,
            content,
        })
    }
}

/// What was found where the run would start.
struct Looked {
    binding: Binding,
    /// The program's file, from before its content was looked at.
    program: crate::runs::Executable,
    /// What the command will read, where that is known.
    content: Option<Vec<u8>>,
}

/// A run that was approved, and has not started. It starts once, or not at all.
#[derive(Debug)]
pub struct Approved {
    retry: Retry,
    nonce: [u8; 32],
    grant: Grant,
}

impl Approved {
    /// The request that was approved.
    #[must_use]
    pub fn request(&self) -> &str {
        self.grant.request().id()
    }

    /// Uses the approval up and runs the command to its end.
    ///
    /// # Errors
    /// The command has then not run: [`Error::Approval`] when something it was bound to has changed, or its
    /// time was over.
    pub fn run(self, runner: &Runner, abort: &Abort, tell: &mut dyn FnMut(Event<'_>)) -> Result<RunReport, Error> {
        let Self { retry, nonce, grant } = self;
        let mut spec = runner.resolve(retry.request.clone())?;
        let Looked {
            binding: now,
            program: file,
            content: input,
        } = retry.look(&spec, nonce)?;
        let program = PinnedProgram {
            device: now.executable.device,
            inode: now.executable.inode,
            size: now.executable.size,
            mtime_ns: now.executable.modified,
            ctime_ns: i128::from(file.ctime_ns),
        };
        let permit = grant.consume(&now)?;
        spec.approved(Origin {
            approval: permit.request().to_owned(),
            retry_of: permit.retry_of().to_owned(),
            program,
            input,
        });
        drop(permit);
        runner.run_watched(spec, abort, tell)
    }
}

/// The same text for the same thing, and never for another.
fn canonical(thing: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(thing).map_err(|error| host(error.into()))
}

fn host(source: std::io::Error) -> Error {
    Error::Host {
        doing: "could not prepare the request",
        source,
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

impl Finished {
    /// The finished run `run` of this user.
    ///
    /// # Errors
    /// [`Error::Input`] for a run that is not known.
    pub fn find(runner: &Runner, run: &str) -> Result<Self, Error> {
        let unknown = |reason: String| {
            Error::input(
                "the run",
                run,
                reason,
                "name the runId of a finished run of this user, as `ringfence audit list` shows it; old runs are forgotten in time",
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
        Ok(Self(kept))
    }

    /// The session it ran in.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.0.policy.session.as_deref()
    }

    /// The workspace it ran in.
    #[must_use]
    pub fn workspace(&self) -> &Path {
        self.0.policy.root.path()
    }
}
