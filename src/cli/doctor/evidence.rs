//! How a denial can be known here, the best source first.

use ringfence::BackendId;
use ringfence::evidence::accelerator_missing;
use ringfence::selection::Selection;
use ringfence_backend::{Backend, Probe};

use super::super::places::state_dir;
use super::layers::LayerRow;

const REFUSED_CALLS: &str = "refused calls";
const EVERY_CALL: &str = "every call";

const SLOWER: &str =
    "nothing has to be done: denials are as exact without it, and programs that change many files run slower";
const WORDS: &str = "denials are read from the command's words: start Ringfence outside of what watches it";

/// Measured; docs/evidence.md has more, and on which machine.
const REFUSED_COST: &str = "untar of 4,000 files took 1.16 times as long as unconfined, and 1.12 times unwatched";
const EVERY_COST: &str =
    "about 9 µs for each call that changes files: untar of 4,000 files took 4.4 times as long as unconfined";

/// A row for each source.
pub(super) fn rows(selection: &Selection, probe: Option<&Probe>) -> Vec<LayerRow> {
    let landlock = selection.backends().find(|backend| backend.id() == BackendId::Landlock);
    let watched = landlock.map_or(Err("the backend landlock is not there".to_owned()), Backend::watch);
    let mounts = matches!(probe, Some(Probe::Usable(host)) if host.mounts);
    let refused_only = match (&watched, mounts) {
        (Err(_), _) => Some("calls cannot be watched".to_owned()),
        (_, false) => Some("it needs the mount layer".to_owned()),
        _ => match state_dir() {
            Ok(place) => accelerator_missing(place.as_deref()),
            Err(error) => Some(error.to_string()),
        },
    };
    vec![
        row(REFUSED_CALLS, refused_only, REFUSED_COST, SLOWER),
        row(EVERY_CALL, watched.err(), EVERY_COST, WORDS),
    ]
}

/// Whether every call can be watched.
pub(super) fn watched(rows: &[LayerRow]) -> bool {
    rows.iter()
        .any(|row| row.layer == EVERY_CALL && row.available == Some(true))
}

fn row(layer: &'static str, missing: Option<String>, cost: &'static str, advice: &'static str) -> LayerRow {
    LayerRow {
        layer,
        available: Some(missing.is_none()),
        cost: missing.is_none().then_some(cost),
        advice: missing.is_some().then_some(advice),
        detail: missing,
    }
}
