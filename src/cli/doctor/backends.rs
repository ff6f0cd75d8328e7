//! The backends, and whether each can be used.

use ringfence::BackendId;
use ringfence_backend::Probe;
use serde::Serialize;

use super::layers::NO_LANDLOCK;

/// Measured over the bare command; docs/evidence.md says on which machine.
pub(super) const CONFINED_COST: &str = "about 1.2 ms at a start";
/// The same: what is started and awaited, but not confined.
pub(super) const STARTED_COST: &str = "about 0.7 ms at a start";

/// One backend.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BackendRow {
    pub(super) backend: BackendId,
    pub(super) usable: bool,
    /// Why not, or for what alone.
    pub(super) reason: Option<String>,
    /// Absent when it was not measured.
    pub(super) cost: Option<&'static str>,
    /// What to do. Absent when nothing can be done, or need be.
    pub(super) advice: Option<&'static str>,
}

/// The row of a backend, from what its probe found.
pub(super) fn row(id: BackendId, probe: Option<&Probe>) -> BackendRow {
    let (usable, reason) = match probe {
        Some(Probe::Usable(_)) if id == BackendId::None => (true, Some("for danger-full-access alone".to_owned())),
        Some(Probe::Usable(_)) => (true, None),
        Some(Probe::Unusable { reason }) => (false, Some(reason.clone())),
        None => (
            false,
            Some("this build of Ringfence does not have it on this system".to_owned()),
        ),
    };
    let cost = match (id, probe) {
        // Measured with every layer.
        (BackendId::Landlock, Some(Probe::Usable(host))) if host.mounts => Some(CONFINED_COST),
        (BackendId::None, Some(Probe::Usable(_))) => Some(STARTED_COST),
        _ => None,
    };
    let fixable = id == BackendId::Landlock && matches!(probe, Some(Probe::Unusable { .. }));
    BackendRow {
        backend: id,
        usable,
        reason,
        cost,
        advice: fixable.then_some(NO_LANDLOCK),
    }
}
