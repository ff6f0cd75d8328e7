//! `ringfence doctor`: what this host can confine, by trying it, what stands beside a run, and how
//! to make it better. Here is the document; each part of it has a file.

mod backends;
mod brokers;
mod deployment;
mod evidence;
mod hard_links;
mod layers;
mod modes;
mod words;

use std::path::Path;

use ringfence::facts::SCHEMA;
use ringfence::policy::open_root;
use ringfence::selection::Selection;
use ringfence::{BackendId, Error, SandboxMode};
use ringfence_backend::{Observe, Probe};
use serde::Serialize;

use backends::BackendRow;
use brokers::BrokerRow;
use deployment::DeploymentRow;
use hard_links::HardLinks;
use layers::LayerRow;
use modes::ModeRow;

use super::text::twin;

pub(super) use words::text;

/// The document of `doctor`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Findings {
    schema: u32,
    layers: Vec<LayerRow>,
    evidence: Vec<LayerRow>,
    backends: Vec<BackendRow>,
    modes: Vec<ModeRow>,
    brokers: Vec<BrokerRow>,
    /// Whether every place was asked in time.
    brokers_complete: bool,
    hard_links: HardLinks,
    deployment: DeploymentRow,
}

impl Findings {
    /// Whether a mode is enforced in full here.
    pub(crate) fn in_full(&self, mode: SandboxMode) -> bool {
        self.modes
            .iter()
            .any(|row| row.mode == mode && row.enforcement == Some("full"))
    }
}

/// Examines the host, and the workspace: the directory named, else the one the caller is in.
///
/// # Errors
/// [`Error::Policy`] for a named directory that cannot be opened. It is never left out in silence.
pub(crate) fn examine(workspace: Option<&Path>) -> Result<Findings, Error> {
    let root = match workspace {
        Some(path) => Ok(open_root(path)?),
        None => open_root(Path::new(".")).map_err(|error| error.to_string()),
    };
    let selection = Selection::asked_afresh(std::env::var_os("PATH"));
    let probes: Vec<_> = selection
        .backends()
        .map(|backend| (backend.id(), backend.probe()))
        .collect();
    let of = |id| probes.iter().find(|(known, _)| *known == id).map(|(_, probe)| probe);
    let landlock: Option<&Probe> = of(BackendId::Landlock);
    let evidence = evidence::rows(&selection, landlock);
    let observe = if evidence::watched(&evidence) {
        Observe::IfFree
    } else {
        Observe::No
    };
    let found = brokers::search();
    Ok(Findings {
        schema: SCHEMA,
        layers: layers::rows(landlock),
        evidence,
        backends: BackendId::ALL.into_iter().map(|id| backends::row(id, of(id))).collect(),
        modes: SandboxMode::ALL
            .into_iter()
            .map(|mode| modes::row(&selection, mode, observe))
            .collect(),
        brokers: found.rows,
        brokers_complete: found.complete,
        deployment: deployment::examine(root.as_ref().ok()),
        hard_links: hard_links::examine(root),
    })
}
