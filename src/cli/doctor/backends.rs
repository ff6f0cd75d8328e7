//! The backends, and whether each can be used.

use ringfence::BackendId;
use ringfence_backend::{HostSupport, Probe};
use serde::Serialize;

use super::layers::NO_LANDLOCK;

/// Measured over the bare command; docs/evidence.md says on which machine.
pub(super) const CONFINED_COST: &str = "about 1.2 ms at a start";
/// The same: what is started and awaited, but not confined.
pub(super) const STARTED_COST: &str = "about 0.7 ms at a start";

/// The same, through bubblewrap.
const BWRAP_COST: &str = "about 4.6 ms at a start";
const NO_BWRAP: &str = "install bubblewrap for the whole system, let it make user namespaces (its AppArmor profile, \
    user.max_user_namespaces), and give Ringfence a /proc of which nothing is covered";

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
        Some(Probe::Usable(host)) => (true, lesser(host)),
        Some(Probe::Unusable { reason }) => (false, Some(reason.clone())),
        None => (
            false,
            Some("this build of Ringfence does not have it on this system".to_owned()),
        ),
    };
    let cost = match (id, probe) {
        // Measured with every layer.
        (BackendId::Landlock, Some(Probe::Usable(host))) if host.mounts => Some(CONFINED_COST),
        (BackendId::Bwrap, Some(Probe::Usable(_))) => Some(BWRAP_COST),
        (BackendId::None, Some(Probe::Usable(_))) => Some(STARTED_COST),
        _ => None,
    };
    let advice = match (id, probe) {
        (BackendId::Landlock, Some(Probe::Unusable { .. })) => Some(NO_LANDLOCK),
        (BackendId::Bwrap, Some(Probe::Unusable { .. })) => Some(NO_BWRAP),
        _ => None,
    };
    BackendRow {
        backend: id,
        usable,
        reason,
        cost,
        advice,
    }
}

/// What a backend that can be used does without, and why.
fn lesser(host: &HostSupport) -> Option<String> {
    let missing: Vec<_> = host
        .missing
        .iter()
        .map(|it| format!("without {}: {}", it.layer, it.reason))
        .collect();
    (!missing.is_empty()).then(|| missing.join("; "))
}
