//! The layers of confinement, one by one, as the probe of the backend `landlock` found them.
//!
//! Costs are measured ones (docs/evidence.md and docs/adr/0002-layers.md), of the machine that is
//! described there. What was not measured has none.

use ringfence::Effect;
use ringfence_backend::{HostSupport, Missing, Probe};
use serde::Serialize;

/// What to do where Landlock governs less than it could.
const NEWER_KERNEL: &str = "a newer kernel governs more: truncation from Linux 6.2, device ioctls from 6.10";
/// What to do where there is no Landlock.
pub(super) const NO_LANDLOCK: &str =
    "run Linux 5.13 or newer with Landlock in it, and with `landlock` in the list of the `lsm=` boot parameter";
/// What to do where nothing can be mounted.
const NO_MOUNTS: &str = "let this user make user namespaces (user.max_user_namespaces, \
    kernel.unprivileged_userns_clone, an AppArmor profile with `userns`, or the container's own profile), \
    or give Ringfence CAP_SYS_ADMIN";

const MOUNTS_COST: &str = "0.22 ms a run: 0.15 ms to make the mounts, 0.07 ms to drop them";
const FILTER_COST: &str = "0.04 ms at a start";
const TRUNCATION_COST: &str = "1.1 µs at each opening of a file, for governing truncation";

/// One layer of confinement, or one source of evidence.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LayerRow {
    pub(super) layer: &'static str,
    /// Absent when it was not tried.
    pub(super) available: Option<bool>,
    /// Why, or which.
    pub(super) detail: Option<String>,
    /// Absent when it is not there, or was not measured.
    pub(super) cost: Option<&'static str>,
    /// What to do. Absent when nothing is to be done.
    pub(super) advice: Option<&'static str>,
}

/// A row for each layer.
pub(super) fn rows(probe: Option<&Probe>) -> Vec<LayerRow> {
    let row = |layer, available, detail, cost, advice| LayerRow {
        layer,
        available,
        detail,
        cost,
        advice,
    };
    match probe {
        Some(Probe::Usable(host)) => vec![
            landlock(host),
            mounts(host),
            user_namespace(host),
            // A host on which the filter cannot be installed is not usable at all.
            row("seccomp", Some(true), None, Some(FILTER_COST), None),
        ],
        Some(Probe::Unusable { reason }) => vec![
            row("landlock", Some(false), Some(reason.clone()), None, Some(NO_LANDLOCK)),
            row("mount layer", None, None, None, None),
            row("user namespace", None, None, None, None),
            row("seccomp", None, None, None, None),
        ],
        None => Vec::new(),
    }
}

fn landlock(host: &HostSupport) -> LayerRow {
    let truncate = host.coverage.governs(Effect::Truncate);
    let newer = !truncate || !host.coverage.governs(Effect::DeviceIoctl);
    LayerRow {
        layer: "landlock",
        available: Some(true),
        detail: Some(format!("ABI {}", host.landlock_abi)),
        cost: truncate.then_some(TRUNCATION_COST),
        advice: newer.then_some(NEWER_KERNEL),
    }
}

fn mounts(host: &HostSupport) -> LayerRow {
    LayerRow {
        layer: "mount layer",
        available: Some(host.mounts),
        detail: (!host.mounts)
            .then(|| reasons(&host.missing))
            .filter(|text| !text.is_empty()),
        cost: host.mounts.then_some(MOUNTS_COST),
        advice: (!host.mounts).then_some(NO_MOUNTS),
    }
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
        cost: None,
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
        let rows = rows(Some(&Probe::Usable(host)));
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
        let rows = rows(Some(&Probe::Usable(host)));
        assert_eq!(available(&rows), [Some(true), Some(false), Some(false), Some(true)]);
        assert_eq!(rows[0].advice, Some(NEWER_KERNEL));
        assert_eq!(
            (rows[1].detail.as_deref(), rows[1].advice),
            (Some("mounts: EPERM"), Some(NO_MOUNTS))
        );
    }

    #[test]
    fn what_is_not_there_costs_nothing() {
        let host = HostSupport {
            landlock_abi: 2,
            ..HostSupport::default()
        };
        for probe in [
            Probe::Usable(host),
            Probe::Unusable {
                reason: "no Landlock".to_owned(),
            },
        ] {
            for row in rows(Some(&probe)) {
                assert!(row.cost.is_none() || row.available == Some(true), "{row:?}");
            }
        }
    }

    #[test]
    fn what_was_not_tried_is_not_called_missing() {
        let rows = rows(Some(&Probe::Unusable {
            reason: "no Landlock".to_owned(),
        }));
        assert_eq!(available(&rows), [Some(false), None, None, None]);
    }
}
