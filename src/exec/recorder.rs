//! What the trail and the run's own record are told of a run.

use std::path::Path;

use super::spec::ExecSpec;
use super::{Runner, kept};
use crate::audit::{self, AuditError, Durability, Entry, Event, Recording, Trail};
use crate::config::Loaded;
use crate::error::Error;
use crate::facts::{Recorded, RunReport};
use crate::runs::{KeptRun, Runs};
use crate::selection::Selection;
use ringfence_backend::{Enforcement, SandboxExecutionPolicy};

/// Where one run is recorded.
#[derive(Debug)]
pub(super) struct Recorder {
    recording: Recording,
    place: Option<(Trail, Runs)>,
    run: Option<KeptRun>,
    /// Why it is not recorded, the first time that something was not.
    reason: Option<AuditError>,
}

impl Recorder {
    /// Finds out where this run is recorded.
    fn open(recording: Recording, selection: &Selection, policy: &SandboxExecutionPolicy) -> Self {
        let mut recorder = Self {
            recording,
            place: None,
            run: None,
            reason: None,
        };
        if recording != Recording::Off {
            match place(selection, policy) {
                Ok(place) => recorder.place = Some(place),
                Err(reason) => recorder.not_recorded(unwritable(selection, reason)),
            }
        }
        recorder
    }

    /// Records that a run is about to start.
    ///
    /// # Errors
    /// [`Error::Audit`] when it has to be recorded and cannot be.
    pub(super) fn start(runner: &Runner, spec: &ExecSpec) -> Result<Self, Error> {
        let mut recorder = Self::open(runner.recording, &runner.selection, spec.policy());
        let loaded = runner.loaded.iter().map(|file| entry(spec, policy_loaded(file)));
        let entries: Vec<_> = loaded.chain([entry(spec, start(spec))]).collect();
        recorder.write(&entries);
        if recorder.place.is_some() {
            match kept::before(spec) {
                Ok(run) => recorder.run = Some(run),
                Err(error) => recorder.not_recorded(unwritable(&runner.selection, error.to_string())),
            }
        }
        recorder.required()?;
        Ok(recorder)
    }

    /// Records that a run could not start.
    pub(super) fn failed(&mut self, run: &str, session: Option<&str>, error: &Error) {
        self.write(&[audit::entries::refused(run, session, error)]);
    }

    /// Records how a run ended.
    pub(super) fn end(mut self, selection: &Selection, report: &RunReport) -> Recorded {
        self.write(&audit::entries::ended(report));
        if let (Some((_, runs)), Some(mut run)) = (&self.place, self.run.take()) {
            run.outcome = kept::after(report);
            if let Err(error) = runs.keep(&run) {
                let reason = format!("the run could not be kept for a retry: {error}");
                self.not_recorded(unwritable(selection, reason));
            }
        }
        match (self.recording, self.reason) {
            (Recording::Off, _) => Recorded::NotAsked,
            (_, None) => Recorded::Yes,
            (_, Some(error)) => Recorded::No {
                reason: error.to_string(),
            },
        }
    }

    fn write(&mut self, entries: &[Entry]) {
        let Some((trail, _)) = &self.place else { return };
        if let Err(error) = trail.append(entries, Durability::Kernel) {
            self.not_recorded(error);
        }
    }

    fn not_recorded(&mut self, error: AuditError) {
        self.reason.get_or_insert(error);
    }

    fn required(&mut self) -> Result<(), Error> {
        match (self.recording, self.reason.take()) {
            (Recording::Required, Some(source)) => Err(Error::Audit { source }),
            (_, reason) => {
                self.reason = reason;
                Ok(())
            }
        }
    }
}

fn unwritable(selection: &Selection, reason: String) -> AuditError {
    AuditError::Unwritable {
        path: selection.state_dir().unwrap_or(Path::new("")).join("audit"),
        reason,
    }
}

impl Runner {
    /// The same, and every run is recorded in the audit trail of the state directory, and kept there for
    /// a retry. `loaded` are the files that bear on its policy.
    #[must_use]
    pub fn with_audit(self, recording: Recording, loaded: &[Loaded]) -> Self {
        Self {
            recording,
            loaded: loaded.into(),
            ..self
        }
    }

    /// Records a run that could not even be resolved.
    pub(super) fn record_refusal(&self, run: &str, policy: &SandboxExecutionPolicy, error: &Error) {
        if self.recording != Recording::Off {
            Recorder::open(self.recording, &self.selection, policy).failed(run, policy.session(), error);
        }
    }
}

fn place(selection: &Selection, policy: &SandboxExecutionPolicy) -> Result<(Trail, Runs), String> {
    let state = selection.own_state(policy)?;
    let runs = Runs::of(&state).map_err(|error| format!("the runs cannot be kept: {error}"))?;
    let trail = Trail::of(state).map_err(|error| error.to_string())?;
    Ok((trail, runs))
}

fn entry(spec: &ExecSpec, event: Event) -> Entry {
    Entry {
        session: spec.policy().session().map(str::to_owned),
        run: Some(spec.run_id().to_owned()),
        event,
    }
}

fn policy_loaded(file: &Loaded) -> Event {
    Event::PolicyLoaded {
        source: file.path.to_string_lossy().into_owned(),
        sha256: file.sha256.clone(),
    }
}

fn start(spec: &ExecSpec) -> Event {
    let plan = spec.plan();
    let (word, ungoverned) = match &plan.enforcement {
        None => (None, std::collections::BTreeSet::new()),
        Some(Enforcement::Full) => (Some("full"), std::collections::BTreeSet::new()),
        Some(Enforcement::Partial { ungoverned }) => (Some("partial"), ungoverned.clone()),
    };
    Event::RunStart {
        argv: audit::redacted(spec.argv()),
        workdir: spec.workdir().to_string_lossy().into_owned(),
        mode: spec.policy().mode(),
        backend: plan.backend,
        enforcement: word.map(str::to_owned),
        ungoverned,
        approval: spec.origin().map(|origin| origin.approval.clone()),
        retry_of: spec.origin().map(|origin| origin.retry_of.clone()),
    }
}
