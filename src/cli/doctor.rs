//! `ringfence doctor`: what this host can confine, by trying it, and how to make it better.

use std::path::Path;

use ringfence::evidence::accelerator_missing;
use ringfence::facts::SCHEMA;
use ringfence::selection::Selection;
use ringfence::{BackendId, Deployment, Effect, Error, SandboxMode, Surroundings, WorkspaceRoot, resolve};
use ringfence_backend::{CommandSpec, HostSupport, Missing, Observe, Probe, StdioKind};
use serde::Serialize;

use super::dry_run::{left_open, word};
use super::policy::state_dir;

const NEWER_KERNEL: &str = "a newer kernel governs more: truncation from Linux 6.2, device ioctls from 6.10";
const NO_LANDLOCK: &str =
    "run Linux 5.13 or newer with Landlock in it, and with `landlock` in the list of the `lsm=` boot parameter";
const NO_MOUNTS: &str = "let this user make user namespaces (user.max_user_namespaces, \
    kernel.unprivileged_userns_clone, an AppArmor profile with `userns`, or the container's own profile), \
    or give Ringfence CAP_SYS_ADMIN";

const EVERY_CALL: &str = "every call";
const SLOWER: &str = "denials are as exact without it, and programs that change many files run slower";
const ONLY_WORDS: &str = "denials are read from the command's own words";
const WORDS: &str = "denials are read from the command's words: start Ringfence outside of what watches it";

/// The document of `doctor`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Findings {
    schema: u32,
    pub(crate) layers: Vec<LayerRow>,
    pub(crate) evidence: Vec<LayerRow>,
    pub(crate) backends: Vec<BackendRow>,
    pub(crate) modes: Vec<ModeRow>,
}

/// One layer of confinement.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LayerRow {
    pub(crate) layer: &'static str,
    /// Absent when it was not tried.
    pub(crate) available: Option<bool>,
    pub(crate) detail: Option<String>,
    pub(crate) advice: Option<&'static str>,
}

/// One backend.
#[derive(Debug, Serialize)]
pub(crate) struct BackendRow {
    pub(crate) backend: BackendId,
    pub(crate) usable: bool,
    pub(crate) reason: Option<String>,
}

/// What a run in a mode would have here.
#[derive(Debug, Serialize)]
pub(crate) struct ModeRow {
    pub(crate) mode: SandboxMode,
    pub(crate) backend: Option<BackendId>,
    /// Absent when nothing is confined, or no run can be had.
    pub(crate) enforcement: Option<&'static str>,
    pub(crate) ungoverned: Vec<Effect>,
    /// Why no run can be had.
    pub(crate) reason: Option<String>,
}

impl Findings {
    /// Whether a mode is enforced in full here.
    pub(crate) fn in_full(&self, mode: SandboxMode) -> bool {
        self.modes
            .iter()
            .any(|row| row.mode == mode && row.enforcement == Some("full"))
    }
}

/// Examines the host.
pub(crate) fn examine() -> Findings {
    let selection = Selection::asked_afresh();
    let probes: Vec<_> = selection
        .backends()
        .map(|backend| (backend.id(), backend.probe()))
        .collect();
    let of = |id| probes.iter().find(|(known, _)| *known == id).map(|(_, probe)| probe);
    let evidence = evidence(&selection, of(BackendId::Landlock));
    let watched = evidence
        .iter()
        .any(|row| row.layer == EVERY_CALL && row.available == Some(true));
    let observe = if watched { Observe::IfFree } else { Observe::No };
    Findings {
        schema: SCHEMA,
        layers: layers(of(BackendId::Landlock)),
        evidence,
        backends: BackendId::ALL.into_iter().map(|id| backend(id, of(id))).collect(),
        modes: SandboxMode::ALL
            .into_iter()
            .map(|mode| enforced(&selection, mode, observe))
            .collect(),
    }
}

fn backend(id: BackendId, probe: Option<&Probe>) -> BackendRow {
    let (usable, reason) = match probe {
        Some(Probe::Usable(_)) if id == BackendId::None => (true, Some("for danger-full-access alone".to_owned())),
        Some(Probe::Usable(_)) => (true, None),
        Some(Probe::Unusable { reason }) => (false, Some(reason.clone())),
        None => (
            false,
            Some("this build of Ringfence does not have it on this system".to_owned()),
        ),
    };
    BackendRow {
        backend: id,
        usable,
        reason,
    }
}

/// What the probe of the backend `landlock` found, layer by layer.
fn layers(probe: Option<&Probe>) -> Vec<LayerRow> {
    let row = |layer, available, detail, advice| LayerRow {
        layer,
        available,
        detail,
        advice,
    };
    match probe {
        Some(Probe::Usable(host)) => {
            let abi = Some(format!("ABI {}", host.landlock_abi));
            let mounts = (!host.mounts)
                .then(|| reasons(&host.missing))
                .filter(|text| !text.is_empty());
            let newer = (!host.coverage.governs(Effect::Truncate) || !host.coverage.governs(Effect::DeviceIoctl))
                .then_some(NEWER_KERNEL);
            vec![
                row("landlock", Some(true), abi, newer),
                row(
                    "mount layer",
                    Some(host.mounts),
                    mounts,
                    (!host.mounts).then_some(NO_MOUNTS),
                ),
                user_namespace(host),
                // A host on which the filter cannot be installed is not usable at all.
                row("seccomp", Some(true), None, None),
            ]
        }
        Some(Probe::Unusable { reason }) => vec![
            row("landlock", Some(false), Some(reason.clone()), Some(NO_LANDLOCK)),
            row("mount layer", None, None, None),
            row("user namespace", None, None, None),
            row("seccomp", None, None, None),
        ],
        None => Vec::new(),
    }
}

/// How a denial can be known here, the best source first.
fn evidence(selection: &Selection, probe: Option<&Probe>) -> Vec<LayerRow> {
    let landlock = selection.backends().find(|backend| backend.id() == BackendId::Landlock);
    let Some(landlock) = landlock else {
        return vec![LayerRow {
            layer: EVERY_CALL,
            available: Some(false),
            detail: Some("this system lets nobody watch them".to_owned()),
            advice: Some(ONLY_WORDS),
        }];
    };
    let watched = landlock.watch();
    let mounts = matches!(probe, Some(Probe::Usable(host)) if host.mounts);
    let refused_only = match (&watched, mounts) {
        (Err(_), _) => Some("calls cannot be watched".to_owned()),
        (_, false) => Some("it needs the mount layer".to_owned()),
        _ => match state_dir() {
            Ok(place) => accelerator_missing(place.as_deref()),
            Err(error) => Some(error.to_string()),
        },
    };
    let row = |layer, missing: Option<String>, advice| LayerRow {
        layer,
        available: Some(missing.is_none()),
        advice: missing.is_some().then_some(advice),
        detail: missing,
    };
    vec![
        row("refused calls", refused_only, SLOWER),
        row(EVERY_CALL, watched.err(), WORDS),
    ]
}

/// The probe asks for a user namespace only where mounting needs one.
fn user_namespace(host: &HostSupport) -> LayerRow {
    let (available, detail) = match (host.mounts, host.user_namespace) {
        (true, false) => (None, Some("not needed: this user may mount without one".to_owned())),
        (_, available) => (Some(available), None),
    };
    LayerRow {
        layer: "user namespace",
        available,
        detail,
        advice: None,
    }
}

fn reasons(missing: &[Missing]) -> String {
    missing
        .iter()
        .map(|it| format!("{}: {}", it.layer, it.reason))
        .collect::<Vec<_>>()
        .join("; ")
}

/// Plans a run in the mode, as `run` would on captured streams. Nothing is started.
fn enforced(selection: &Selection, mode: SandboxMode, observe: Observe) -> ModeRow {
    let mut row = ModeRow {
        mode,
        backend: None,
        enforcement: None,
        ungoverned: Vec::new(),
        reason: None,
    };
    match plan(selection, mode, observe) {
        Ok(plan) => {
            row.backend = Some(plan.backend);
            row.enforcement = plan.enforcement.as_ref().map(word);
            row.ungoverned = plan.enforcement.as_ref().map(left_open).unwrap_or_default();
        }
        Err(error) => row.reason = Some(error.to_string()),
    }
    row
}

fn plan(selection: &Selection, mode: SandboxMode, observe: Observe) -> Result<ringfence_backend::LaunchPlan, Error> {
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
    use ringfence::Coverage;

    use super::*;

    fn available(rows: &[LayerRow]) -> Vec<Option<bool>> {
        rows.iter().map(|row| row.available).collect()
    }

    #[test]
    fn a_complete_host_needs_no_advice() {
        let coverage = Coverage::PROMISED
            .into_iter()
            .fold(Coverage::none(), |sum, effect| sum.with(effect, true));
        let host = HostSupport {
            landlock_abi: 7,
            mounts: true,
            user_namespace: true,
            coverage,
            ..HostSupport::default()
        };
        let rows = layers(Some(&Probe::Usable(host)));
        assert_eq!(available(&rows), [Some(true); 4]);
        assert!(rows.iter().all(|row| row.advice.is_none()));
    }

    #[test]
    fn a_host_without_mounts_is_told_why_and_what_to_do() {
        let missing = vec![Missing {
            layer: "mounts".to_owned(),
            reason: "EPERM".to_owned(),
        }];
        let host = HostSupport {
            landlock_abi: 2,
            missing,
            ..HostSupport::default()
        };
        let rows = layers(Some(&Probe::Usable(host)));
        assert_eq!(available(&rows), [Some(true), Some(false), Some(false), Some(true)]);
        assert_eq!(rows[0].advice, Some(NEWER_KERNEL));
        assert_eq!(
            (rows[1].detail.as_deref(), rows[1].advice),
            (Some("mounts: EPERM"), Some(NO_MOUNTS))
        );
    }

    #[test]
    fn what_was_not_tried_is_not_called_missing() {
        let rows = layers(Some(&Probe::Unusable {
            reason: "no Landlock".to_owned(),
        }));
        assert_eq!(available(&rows), [Some(false), None, None, None]);
    }

    #[test]
    fn full_access_is_never_called_enforced() {
        let row = enforced(
            &Selection::of_this_system(None),
            SandboxMode::DangerFullAccess,
            Observe::No,
        );
        assert_eq!(
            (row.backend, row.enforcement, row.reason),
            (Some(BackendId::None), None, None)
        );
    }
}
