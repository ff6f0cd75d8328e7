//! Running one command: resolve, start, wait, stop, report.

mod abort;
pub mod background;
pub mod env;
mod input;
mod kept;
mod launcher;
pub mod limits;
mod long;
mod lookup;
pub mod managed;
mod output;
mod recorder;
mod refusal;
mod request;
mod ring;
mod scratch;
mod spawn;
mod spec;
mod spill;
mod stdio;
mod stop;
mod tree;
mod turn;
mod wait;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use ringfence_backend::{Effect, Enforcement, LaunchError, SandboxMode, status::Stage};

pub use abort::Abort;
pub use launcher::launcher;
pub(crate) use lookup::candidates;
pub use output::Part;
pub use request::{
    Capture, DEFAULT_GRACE, DEFAULT_MAX_OUTPUT, DEFAULT_MAX_SPILL, DEFAULT_TIMEOUT, Evidence, ExecRequest, Input,
    MAX_COMMAND, MAX_TIMEOUT,
};
pub use spec::ExecSpec;
pub(crate) use spec::Origin;
pub use turn::Stopped;

use crate::audit::Recording;
use crate::config::Loaded;
pub use crate::ids::new_run_id;

use crate::error::{Error, MAX_STRING};
use crate::evidence::{self, Observation};
use crate::facts::{CapturedStream, Denial, Limit, Loosening, Recorded, RunReport, SandboxFacts, Survivors};
use crate::selection::{Considered, Selection};
use managed::ManagedEnv;
use recorder::Recorder;
use spawn::Spawned;
use wait::Ends;

/// Runs commands. Holds backends and no policy: the policy rides each request.
#[derive(Clone, Debug)]
pub struct Runner {
    selection: Arc<Selection>,
    managed_env: Arc<ManagedEnv>,
    live: Arc<background::Live>,
    recording: Recording,
    loaded: Arc<[Loaded]>,
}

impl Runner {
    /// A runner with the backends of this system. See [`Selection::of_this_system`].
    #[must_use]
    pub fn new(state_dir: Option<PathBuf>) -> Self {
        Self::with(Selection::of_this_system(state_dir, None))
    }

    /// A runner with these backends.
    #[must_use]
    pub fn with(selection: Selection) -> Self {
        Self {
            selection: Arc::new(selection),
            managed_env: Arc::default(),
            live: Arc::default(),
            recording: Recording::Off,
            loaded: Arc::default(),
        }
    }

    /// The same, and these contributors set their variables in every run.
    #[must_use]
    pub fn with_managed_env(self, managed: ManagedEnv) -> Self {
        Self {
            managed_env: Arc::new(managed),
            ..self
        }
    }

    /// The variables that this runner sets for its host, for
    /// [`command_environment`](env::command_environment).
    #[must_use]
    pub fn managed_env(&self) -> &ManagedEnv {
        &self.managed_env
    }

    /// The backends.
    #[must_use]
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Fills in every default, applies every cap, opens what the run needs and chooses a backend.
    /// Nothing is started.
    ///
    /// # Errors
    /// Every way in which the command could not run and that can be known beforehand.
    pub fn resolve(&self, request: ExecRequest) -> Result<ExecSpec, Error> {
        let (run_id, policy) = (request.run_id.clone(), request.policy.clone());
        let spec = spec::resolve(&self.selection, &self.managed_env, request);
        if let Err(error) = &spec {
            self.record_refusal(&run_id, &policy, error);
        }
        spec
    }

    /// What each confining backend would do for this run, in order of preference, or why it would not serve.
    /// Nothing is started but the probes of backends that were not asked yet.
    #[must_use]
    pub fn explain(&self, spec: &ExecSpec) -> Vec<Considered> {
        self.selection.consider_each(spec.policy(), spec.command())
    }

    /// Runs a command to its end on the calling thread.
    ///
    /// A command that fails, is stopped or is denied something is a result, not an error.
    ///
    /// # Errors
    /// The command could not run at all.
    pub fn run_blocking(&self, spec: ExecSpec, abort: &Abort) -> Result<RunReport, Error> {
        self.run_watched(spec, abort, &mut |_| {})
    }

    /// The same, and tells what happens while the command runs. The command's calls wait while
    /// `tell` does, so it should be quick.
    ///
    /// # Errors
    /// The command could not run at all.
    pub fn run_watched(
        &self,
        spec: ExecSpec,
        abort: &Abort,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<RunReport, Error> {
        let ends = Ends {
            abort,
            lifetime: spec.timeout(),
            idle: None,
            output: None,
        };
        self.run_until(spec, &ends, Instant::now(), tell, &mut |_| {})
    }

    /// Runs a command until it ends or is ended; `show` sees it as soon as it runs.
    fn run_until(
        &self,
        mut spec: ExecSpec,
        ends: &Ends<'_>,
        started: Instant,
        tell: &mut dyn FnMut(Event<'_>),
        show: &mut dyn FnMut(&Spawned),
    ) -> Result<RunReport, Error> {
        if ends.abort.requests() > 0 {
            return Err(Error::Aborted);
        }
        let mut recorder = Recorder::start(self, &spec)?;
        let spawned = match spawn::spawn(&self.selection, &spec) {
            Err(error) if self.disproved(&spec, &error) => {
                let planned = spec.plan_again(&self.selection);
                planned.and_then(|()| self.spawned(&spec))
            }
            other => other.map_err(|error| refusal::of(&spec, error)),
        };
        let outcome = spawned.and_then(|spawned| {
            show(&spawned);
            tell(Event::Started(&spec));
            report(&spec, spawned, started, ends, tell)
        });
        match outcome {
            Ok(mut report) => {
                report.recorded = recorder.end(&self.selection, &report);
                Ok(report)
            }
            Err(error) => {
                recorder.failed(spec.run_id(), spec.policy().session(), &error);
                Err(error)
            }
        }
    }

    fn spawned(&self, spec: &ExecSpec) -> Result<Spawned, Error> {
        spawn::spawn(&self.selection, spec).map_err(|error| refusal::of(spec, error))
    }

    /// Runs a command to its end; dropping the future aborts it.
    ///
    /// # Errors
    /// The command could not run at all.
    pub async fn run(&self, spec: ExecSpec) -> Result<RunReport, Error> {
        let host = |source| Error::Host {
            doing: "could not start a run",
            source,
        };
        let abort = Arc::new(Abort::new());
        let guard = AbortOnDrop(Arc::clone(&abort));
        let runner = self.clone();
        let done = tokio::task::spawn_blocking(move || runner.run_blocking(spec, &abort)).await;
        drop(guard);
        done.map_err(|e| host(std::io::Error::other(e.to_string())))?
    }

    /// Whether a launch failed on what was only remembered: a verdict, which is then forgotten, or
    /// the accelerator, which the next plan does without.
    fn disproved(&self, spec: &ExecSpec, error: &spawn::SpawnError) -> bool {
        match error {
            spawn::SpawnError::Launch(LaunchError::Failed(failure)) => match failure.stage {
                Stage::Accelerator => true,
                Stage::Exec | Stage::WorkingDirectory | Stage::Streams | Stage::Limits => false,
                _ => self.selection.forget(spec.plan().backend),
            },
            // It may have begun, and nothing is begun twice.
            #[cfg(target_os = "linux")]
            spawn::SpawnError::Launch(LaunchError::Interrupted(_)) => false,
            spawn::SpawnError::Prepare(_) | spawn::SpawnError::Launch(_) => self.selection.forget(spec.plan().backend),
            spawn::SpawnError::Refused(_) => false,
        }
    }
}

struct AbortOnDrop(Arc<Abort>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.trigger();
    }
}

/// What happens while a command runs.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The command runs, confined as its plan says.
    Started(&'a ExecSpec),
    /// The command was stopped by a signal. A program that shares its terminal may want to stop along
    /// with it, and to continue it afterwards.
    Stopped(Stopped<'a>),
    /// The first denial of its kind, and what its smallest loosening depends on.
    Denied(&'a Denial, &'a Loosening),
}

/// Waits for the command and puts the facts together.
fn report(
    spec: &ExecSpec,
    spawned: Spawned,
    started: Instant,
    ends: &Ends<'_>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<RunReport, Error> {
    let loosening = Loosening {
        protected: spec.plan().protected().map(std::path::Path::to_owned).collect(),
        mode: spec.policy().mode(),
        workspace_root: spec.policy().workspace_root().path().to_owned(),
    };
    let mut news = |news: turn::News<'_>| match news {
        turn::News::Denied(denial) => tell(Event::Denied(denial, &loosening)),
        turn::News::Stopped(stopped) => tell(Event::Stopped(stopped)),
    };
    let containment = spawned.process.containment();
    let ended = wait::wait(spawned, spec.grace(), ends, &mut news).map_err(|source| Error::Lost { source })?;
    let confined = spec.policy().mode().confines();
    let mut enforcement = spec.plan().enforcement.clone();
    let filtered = spec.policy().mode() == SandboxMode::ReadOnly;
    if spec.plan().emulates_metadata() && !filtered && ended.observed.is_none() {
        // Somebody else watches this process, so nobody governed what only watching governs.
        let ungoverned = [Effect::Metadata].into();
        enforcement = Some(match enforcement {
            Some(Enforcement::Partial { ungoverned: known }) => Enforcement::Partial {
                ungoverned: &known | &ungoverned,
            },
            _ => Enforcement::Partial { ungoverned },
        });
    }
    let merged = spec.capture().merges();
    let denied = evidence::judge(Observation {
        confined,
        observed: ended.observed,
        logged: ended.logged,
        exit: ended.exit,
        stderr: if merged { &ended.stdout } else { &ended.stderr }.as_ref(),
        dialect: spec.plan().dialect,
    });
    let sandbox = SandboxFacts {
        mode: spec.policy().mode(),
        denied,
        enforcement,
        runner_failed: false,
        backend: spec.plan().backend,
        not_confined: spec.plan().not_confined.clone(),
        survivors: ended.survivors.map(|found| Survivors { found, killed: found }),
        containment,
        loosening,
    };
    Ok(RunReport {
        run_id: spec.run_id().to_owned(),
        argv: spec.argv().to_vec(),
        command: spec.long_command().cloned(),
        workdir: spec.workdir().to_owned(),
        session: spec.policy().session().map(str::to_owned),
        exit: ended.exit,
        timed_out: ended.cause == Some(stop::Cause::Deadline),
        aborted: ended.cause == Some(stop::Cause::Abort),
        limit: match ended.cause {
            Some(stop::Cause::Idle) => Some(Limit::Idle),
            Some(stop::Cause::Output) => Some(Limit::Output),
            _ => None,
        },
        timeout_ms: ends.lifetime.map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        stdout: ended.stdout,
        stderr: ended.stderr.or_else(|| merged.then(CapturedStream::default)),
        merged,
        sandbox,
        recorded: Recorded::NotAsked,
    })
}

/// Refuses what no kernel takes, before anything is opened.
fn too_large(argv: &[std::ffi::OsString], env: &[(std::ffi::OsString, std::ffi::OsString)]) -> Option<Error> {
    let strings = argv
        .iter()
        .map(|a| a.len())
        .chain(env.iter().map(|(n, v)| n.len() + 1 + v.len()));
    let longest = strings.clone().max().unwrap_or(0);
    (longest > MAX_STRING).then(|| Error::CommandTooLarge {
        bytes: strings.map(|len| len + 1).sum(),
        longest,
    })
}
