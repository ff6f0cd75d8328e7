//! What this host gives, by trying it: a confined child attempts to break out.

use std::collections::BTreeSet;
use std::path::Path;

use nix::errno::Errno;
use ringfence_backend::{
    Attempt, ChildStdio, Effect, HostSupport, Launch, LaunchError, Missing, Observe, PinnedPath, PlanStep,
    PrepareError, Probe, Session, Tried, attempt,
};

use ringfence_layers::{
    Breakout, Rulesets, SHARED_MEMORY, all_refused, coverage, landlock_abi, nothing_covered_in_proc,
};

use crate::boundary::LandlockBoundary;
use crate::plan::namespaces;

/// One set of layers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layer {
    MountsAndPids,
    Mounts,
    MountsAndPidsInUserNamespace,
    MountsInUserNamespace,
    LandlockOnly,
}

impl Layer {
    /// Every set, the most complete and the cheapest first.
    const ALL: [Self; 5] = [
        Self::MountsAndPids,
        Self::Mounts,
        Self::MountsAndPidsInUserNamespace,
        Self::MountsInUserNamespace,
        Self::LandlockOnly,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::MountsAndPids => "mounts and a PID namespace",
            Self::Mounts => "mounts",
            Self::MountsAndPidsInUserNamespace => "mounts and a PID namespace in a user namespace",
            Self::MountsInUserNamespace => "mounts in a user namespace",
            Self::LandlockOnly => "landlock",
        }
    }

    fn has_mounts(self) -> bool {
        self != Self::LandlockOnly
    }

    const fn has_pids(self) -> bool {
        matches!(self, Self::MountsAndPids | Self::MountsAndPidsInUserNamespace)
    }

    const fn has_user(self) -> bool {
        matches!(self, Self::MountsInUserNamespace | Self::MountsAndPidsInUserNamespace)
    }

    /// Whether what a container covers in /proc stays covered.
    ///
    /// # Errors
    /// What is covered, in a sentence.
    fn shows_nothing_covered(self) -> Result<(), String> {
        if !self.has_pids() || self.has_user() {
            return Ok(());
        }
        nothing_covered_in_proc(false)
    }
}

pub(crate) fn probe() -> Probe {
    let abi = match landlock_abi() {
        Ok(abi) => abi,
        Err(errno) => {
            return Probe::Unusable {
                reason: no_landlock(errno),
            };
        }
    };
    let privileged = caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_SYS_ADMIN).unwrap_or(false);
    let possible = |layer: &Layer| privileged || layer.has_user() || !layer.has_mounts();
    let mut missing = Vec::new();
    for layer in Layer::ALL.into_iter().filter(possible) {
        match canary(abi, layer) {
            Ok(()) => return Probe::Usable(support(abi, layer, missing)),
            Err(reason) => missing.push(Missing {
                layer: layer.name().to_owned(),
                reason,
            }),
        }
    }
    let reasons: Vec<_> = missing.iter().map(|m| format!("{}: {}", m.layer, m.reason)).collect();
    Probe::Unusable {
        reason: reasons.join("; "),
    }
}

/// What the layers give that were proved on this boot.
pub(crate) fn recall(layers: &str) -> Option<HostSupport> {
    let layer = Layer::ALL.into_iter().find(|layer| layer.name() == layers)?;
    layer.shows_nothing_covered().ok()?;
    Some(support(landlock_abi().ok()?, layer, Vec::new()))
}

fn support(abi: u8, layer: Layer, missing: Vec<Missing>) -> HostSupport {
    let mounts = layer.has_mounts();
    HostSupport {
        layers: layer.name().to_owned(),
        program: None,
        landlock_abi: abi,
        mounts,
        unprivileged: caps::read(None, caps::CapSet::Permitted).is_ok_and(|held| held.is_empty()),
        shared_memory: Path::new(SHARED_MEMORY).is_dir(),
        sealed: true,
        user_namespace: layer.has_user(),
        pid_namespace: layer.has_pids(),
        missing,
        coverage: coverage(abi, mounts, false, false)
            .with(Effect::Devices, mounts)
            .with(Effect::ProtectedPaths, mounts),
    }
}

fn no_landlock(errno: Errno) -> String {
    match errno {
        Errno::ENOSYS => "this kernel has no Landlock (ENOSYS; Linux 5.13 or newer has it)".to_owned(),
        Errno::EOPNOTSUPP => {
            "Landlock is not enabled on this kernel (EOPNOTSUPP; add `landlock` to the `lsm=` boot parameter)"
                .to_owned()
        }
        other => format!("Landlock does not answer ({other})"),
    }
}

/// Confines a child as a run would be and lets it try to write outside. `Err` says what was
/// refused, or which attempt was not.
fn canary(abi: u8, layer: Layer) -> Result<(), String> {
    layer.shows_nothing_covered()?;
    let mounts = layer.has_mounts();
    let mut steps = Vec::new();
    if mounts {
        steps.extend(namespaces(layer.has_user(), layer.has_pids()));
        // A run keeps roots writable; the same calls are tried here, on a tree that Landlock closes.
        steps.push(PlanStep::Writable(pin("/etc")?));
    }
    steps.push(PlanStep::DropCapabilities);
    steps.push(PlanStep::Landlock {
        abi,
        rules: Vec::new(),
        sockets: false,
        lasting: false,
        log: false,
    });
    steps.push(PlanStep::Seccomp {
        observe: Observe::No,
        cookie: None,
        metadata: false,
        closed: BTreeSet::new(),
    });
    if !mounts {
        steps.push(PlanStep::SeccompMetadata);
    }
    let tried = confined(&steps, &Breakout::of_this_process()?)?.attempts;
    all_refused(&tried, true)
}

/// Starts a child that confines itself by these steps and then makes its attempts.
fn confined(steps: &[PlanStep], attempts: &dyn Attempt) -> Result<Tried, String> {
    let boundary = LandlockBoundary::prepare(steps, &Rulesets::default()).map_err(|e: PrepareError| e.to_string())?;
    let launch = Launch {
        session: Session::Callers,
        stdio: [ChildStdio::Inherit, ChildStdio::Inherit, ChildStdio::Inherit],
        workdir: (c"/", pin("/")?.id()),
        extra: None,
        limits: &[],
    };
    attempt(&boundary, &launch, attempts).map_err(|e: LaunchError| e.to_string())
}

/// Whether a filter of a confined child can have a listener.
///
/// # Errors
/// Why not, in a sentence.
pub(crate) fn watch() -> Result<(), String> {
    struct Nothing;
    impl Attempt for Nothing {
        fn attempt(&self, _: u8) -> Option<i32> {
            None
        }
    }
    let steps = [
        PlanStep::DropCapabilities,
        PlanStep::Seccomp {
            observe: Observe::Required,
            cookie: None,
            metadata: false,
            closed: BTreeSet::new(),
        },
    ];
    let child = confined(&steps, &Nothing)?;
    child
        .listener
        .map(drop)
        .ok_or_else(|| "the listener did not arrive".to_owned())
}

fn pin(path: &str) -> Result<PinnedPath, String> {
    PinnedPath::open(Path::new(path)).map_err(|e| format!("{path}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_can_confine_a_child() {
        match probe() {
            Probe::Usable(host) => assert!(host.landlock_abi >= 1),
            Probe::Unusable { reason } => panic!("{reason}"),
        }
    }

    #[test]
    fn a_boundary_that_lets_a_write_through_is_found_out() {
        // Without the Landlock step nothing refuses the sink.
        let attempts = Breakout::of_this_process().unwrap();
        let tried = confined(&[PlanStep::DropCapabilities], &attempts).unwrap().attempts;
        assert!(
            tried.contains(&(4, 0)),
            "the sink can be opened when nothing confines: {tried:?}"
        );
        assert!(all_refused(&tried, true).is_err());
    }
}
