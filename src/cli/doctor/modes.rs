//! What a run in each mode would have here. Runs are planned, and nothing is started.

use std::path::Path;

use ringfence::selection::Selection;
use ringfence::{BackendId, Deployment, Effect, Error, SandboxMode, Surroundings, WorkspaceRoot, resolve};
use ringfence_backend::{CommandSpec, LaunchPlan, Observe, StdioKind};
use serde::Serialize;

use super::super::dry_run::{left_open, word};
use super::backends::{CONFINED_COST, STARTED_COST};

const OF_MOUNTS: &str = "what to do for the mount layer stands in its row";
const OF_LANDLOCK: &str = "what to do for Landlock stands in its row";

/// What a run in a mode would have here.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModeRow {
    pub(super) mode: SandboxMode,
    pub(super) backend: Option<BackendId>,
    /// Absent when nothing is confined, or no run can be had.
    pub(super) enforcement: Option<&'static str>,
    pub(super) ungoverned: Vec<Effect>,
    /// Why no run can be had, or none in full.
    pub(super) reason: Option<String>,
    /// Absent when it was not measured.
    pub(super) cost: Option<&'static str>,
    /// What to do. Absent when nothing is to be done.
    pub(super) advice: Option<String>,
}

/// The row of a mode: a run is planned as `run` would on captured streams.
pub(super) fn row(selection: &Selection, mode: SandboxMode, observe: Observe) -> ModeRow {
    let mut row = ModeRow {
        mode,
        backend: None,
        enforcement: None,
        ungoverned: Vec::new(),
        reason: None,
        cost: None,
        advice: None,
    };
    match plan(selection, mode, observe) {
        Ok(plan) => {
            row.backend = Some(plan.backend);
            row.enforcement = plan.enforcement.as_ref().map(word);
            row.ungoverned = plan.enforcement.as_ref().map(left_open).unwrap_or_default();
            row.reason = joined(row.ungoverned.iter().map(|effect| missing(*effect).0));
            row.advice = joined(row.ungoverned.iter().map(|effect| missing(*effect).1));
            // The figure is that of a complete host. Nobody measured a partial one, or the other mode.
            row.cost = match (plan.backend, mode) {
                (BackendId::None, _) => Some(STARTED_COST),
                (BackendId::Landlock, SandboxMode::WorkspaceWrite) if row.ungoverned.is_empty() => Some(CONFINED_COST),
                _ => None,
            };
        }
        Err(error) => {
            row.reason = Some(error.to_string());
            row.advice = match error {
                // The hint of this one is to ask doctor.
                Error::SandboxUnavailable { .. } => Some(OF_LANDLOCK.to_owned()),
                other => other.hint(),
            };
        }
    }
    row
}

/// What would govern an effect, and what to do for that.
const fn missing(effect: Effect) -> (&'static str, &'static str) {
    match effect {
        Effect::Truncate => ("truncation takes the mount layer, or Linux 6.2", OF_LANDLOCK),
        Effect::DeviceIoctl => ("device ioctls take Linux 6.10", OF_LANDLOCK),
        Effect::Metadata => (
            "metadata takes the mount layer, or a user without privilege whose calls are watched",
            OF_MOUNTS,
        ),
        Effect::Devices => (
            "device nodes that lie in a writable root already take the mount layer",
            OF_MOUNTS,
        ),
        Effect::ProtectedPaths => ("protected paths take the mount layer", OF_MOUNTS),
        Effect::Content | Effect::Tree | Effect::ProcessMemory | Effect::InheritedDescriptors => {
            ("Landlock does not govern all that it should", OF_LANDLOCK)
        }
    }
}

/// Each of the texts once.
fn joined(texts: impl Iterator<Item = &'static str>) -> Option<String> {
    let mut once = Vec::new();
    for text in texts {
        if !once.contains(&text) {
            once.push(text);
        }
    }
    (!once.is_empty()).then(|| once.join("; "))
}

fn plan(selection: &Selection, mode: SandboxMode, observe: Observe) -> Result<LaunchPlan, Error> {
    // Any directory but `/` gives the same answer, and this one is everywhere.
    let path = Path::new("/dev");
    let root = WorkspaceRoot::open(path).map_err(|source| Error::Workdir {
        path: path.to_owned(),
        source,
    })?;
    let workdir = root.pinned().clone();
    let surroundings = Surroundings::of(root);
    let policy = resolve(
        &Deployment {
            mode,
            ..Deployment::default()
        },
        None,
        None,
        &surroundings,
    )?;
    let command = CommandSpec {
        argv: vec!["true".into()],
        env: Vec::new(),
        workdir,
        scratch: None,
        stdio: [StdioKind::Stream, StdioKind::Stream, StdioKind::Stream],
        observe,
        log: false,
        accelerator: None,
    };
    Ok(selection.choose(&policy, &command, None)?.plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_access_is_never_called_enforced() {
        let row = row(
            &Selection::of_this_system(None, None),
            SandboxMode::DangerFullAccess,
            Observe::No,
        );
        assert_eq!(
            (row.backend, row.enforcement, row.reason, row.advice),
            (Some(BackendId::None), None, None, None)
        );
    }

    #[test]
    fn what_is_left_open_has_a_reason_and_a_way_out_each_once() {
        let open = [Effect::Devices, Effect::Metadata, Effect::DeviceIoctl];
        assert_eq!(
            joined(open.into_iter().map(|effect| missing(effect).1)).as_deref(),
            Some("what to do for the mount layer stands in its row; what to do for Landlock stands in its row")
        );
        assert_eq!(joined(std::iter::empty()), None);
    }
}
