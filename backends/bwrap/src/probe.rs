//! What bubblewrap gives on this host, by trying it: a child inside attempts to break out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ringfence_backend::{
    ChildStdio, Effect, HostSupport, Launch, Missing, Observe, PinnedPath, PlanStep, Session, attempt_through,
};
use ringfence_layers::{all_refused, coverage, landlock_abi, nothing_covered_in_proc, own_process};

use crate::{program, through};

/// The steps that bubblewrap takes for every run.
pub(crate) fn outer(program: PathBuf, user: bool, sealed: bool) -> Vec<PlanStep> {
    let mut steps = vec![PlanStep::Bubblewrap { program, sealed }];
    if user {
        steps.push(PlanStep::UserNamespace);
    }
    steps.extend([PlanStep::PidNamespace, PlanStep::ReadOnlyMounts]);
    steps
}

/// # Errors
/// Why nothing can be confined with this program, in a sentence.
pub(crate) fn probe(program: &Path) -> Result<HostSupport, String> {
    if !ringfence_backend::serves_as_launcher() {
        return Err("this program does not serve as a launcher, which bubblewrap has to start inside: it has to call ringfence::launcher first in main".to_owned());
    }
    shows_nothing_covered()?;
    let abi = landlock_abi().unwrap_or(0);
    if abi == 0 && is_privileged() {
        no_other_proc()?;
    }
    // Without Landlock the rest stands alone; without a seal only Landlock keeps later mounts from being written.
    let ways = [(abi, true), (0, true), (abi, false)];
    let mut first = None;
    for (number, (abi, sealed)) in ways.into_iter().enumerate() {
        let (again, open) = (number == 1 && ways[0].0 == 0, number == 2 && abi == 0);
        if again || open {
            continue;
        }
        match (canary(program, abi, sealed), first.take()) {
            (Ok(()), None) => return Ok(support(program, abi, sealed)),
            (Ok(()), Some(reason)) => {
                let layer = if sealed { "landlock" } else { "sealed mounts" };
                return Ok(HostSupport {
                    missing: vec![Missing {
                        layer: layer.to_owned(),
                        reason,
                    }],
                    ..support(program, abi, sealed)
                });
            }
            (Err(reason), before) => first = before.or(Some(reason)),
        }
    }
    Err(first.unwrap_or_default())
}

/// What was proved for this very program before.
pub(crate) fn recall(program: &Path, layers: &str) -> Option<HostSupport> {
    shows_nothing_covered().ok()?;
    let known = ringfence_backend::serves_as_launcher() && word(program, landlock_abi().unwrap_or(0)) == layers;
    known.then(|| support(program, landlock_abi().unwrap_or(0), true))
}

/// That what a container covers in /proc stays covered where the kernel does not see to that.
fn shows_nothing_covered() -> Result<(), String> {
    if is_privileged() {
        nothing_covered_in_proc(true)
    } else {
        Ok(())
    }
}

/// That no other /proc can be seen: without Landlock, root could reach what is confined elsewhere through it.
fn no_other_proc() -> Result<(), String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").map_err(|e| format!("/proc/self/mountinfo: {e}"))?;
    let shows = mounts.lines().filter(|line| line.contains(" - proc "));
    // proc_pid_mountinfo(5): the fifth field is where a mount is attached.
    let mut at = shows.filter_map(|line| line.split(' ').nth(4));
    at.find(|at| !Path::new(at).starts_with("/proc")).map_or(Ok(()), |at| {
        Err(format!(
            "a second /proc is mounted at {at}, and without Landlock a command of root's could reach other processes through it"
        ))
    })
}

/// What a verdict rests on.
fn word(program: &Path, abi: u8) -> String {
    let identity = program::identity(program).unwrap_or_default();
    format!("bubblewrap {identity} with Landlock {abi}")
}

fn support(program: &Path, abi: u8, sealed: bool) -> HostSupport {
    HostSupport {
        layers: word(program, abi),
        program: Some(program.to_owned()),
        landlock_abi: abi,
        mounts: true,
        pid_namespace: true,
        // Without privilege bubblewrap makes one.
        user_namespace: !is_privileged(),
        sealed,
        // It is made in a /dev of the run's own.
        shared_memory: true,
        coverage: coverage(abi, true, false, true)
            .with(Effect::Devices, true)
            .with(Effect::ProtectedPaths, true)
            .with(Effect::Metadata, sealed)
            // What another process passes over a socket stands on that process's mounts.
            .without(Effect::InheritedDescriptors, abi == 0),
        ..HostSupport::default()
    }
}

/// Whether this process may mount.
fn is_privileged() -> bool {
    caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_SYS_ADMIN).unwrap_or(false)
}

/// Confines a child as a run would be and lets it try to write outside.
fn canary(program: &Path, abi: u8, sealed: bool) -> Result<(), String> {
    let mut steps = outer(program.to_owned(), !is_privileged(), sealed);
    // A run keeps roots writable; the same is tried here, on a tree that nobody writes to.
    steps.push(PlanStep::Held(pin("/etc")?));
    steps.push(PlanStep::DropCapabilities);
    if abi > 0 {
        steps.push(PlanStep::Landlock {
            abi,
            rules: Vec::new(),
            sockets: false,
            lasting: false,
            log: false,
        });
    }
    steps.push(PlanStep::Seccomp {
        observe: Observe::No,
        cookie: None,
        metadata: false,
        closed: BTreeSet::new(),
    });
    let runner = own_process().map_err(|e| format!("a descriptor of the runner's process: {e}"))?;
    let launch = Launch {
        session: Session::Callers,
        stdio: [ChildStdio::Inherit, ChildStdio::Inherit, ChildStdio::Inherit],
        workdir: (c"/", pin("/")?.id()),
        extra: None,
        limits: &[],
    };
    let through = through(&steps, Some(runner)).map_err(|e| e.to_string())?;
    let tried = attempt_through(&through, &launch).map_err(|e| e.to_string())?;
    all_refused(&tried.attempts, abi > 0)
}

fn pin(path: &str) -> Result<PinnedPath, String> {
    PinnedPath::open(Path::new(path)).map_err(|e| format!("{path}: {e}"))
}
