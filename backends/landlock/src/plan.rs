//! What to do for a policy on a host with this support. Pure.

use std::path::{Path, PathBuf};

use ringfence_backend::{
    Accelerator, BackendId, CommandSpec, Coverage, Door, Effect, HostSupport, LandlockRule, LaunchPlan, Observe,
    PlanError, PlanStep, Protected, Require, SandboxExecutionPolicy, SandboxMode, StdioKind,
};

use crate::ruleset::SIGNALS;

/// Device nodes that change no file of the host.
const SINKS: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// Terminals: the run's own, and those it makes.
const TERMINALS: [&str; 3] = ["/dev/tty", "/dev/ptmx", "/dev/pts"];
/// Where programs look for shared memory; part of the temp area.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// The first Landlock ABI that writes to the kernel's audit log.
const LOGGING: u8 = 7;

/// How a refusal by the mount layer reads, and one by Landlock.
const EROFS: &str = "Read-only file system";
const EACCES: &str = "Permission denied";

pub(crate) fn plan(
    host: &HostSupport,
    policy: &SandboxExecutionPolicy,
    command: &CommandSpec,
) -> Result<LaunchPlan, PlanError> {
    let mode = policy.mode();
    if !mode.confines() {
        return Err(PlanError::NothingToConfine {
            backend: BackendId::Landlock,
            mode,
        });
    }
    let everything = policy.writable().iter().any(|root| root.path() == Path::new("/"));
    let metadata_filter = mode == SandboxMode::ReadOnly && !host.mounts;
    // Where neither mounts nor a filter can tell inside from outside, the runner makes the changes.
    // In read-only nearly nothing is inside, so that works without its rights, too.
    let emulates = !host.mounts
        && !everything
        && (host.unprivileged || mode == SandboxMode::ReadOnly)
        && command.observe != Observe::No;
    let observe = match command.observe {
        Observe::IfFree if emulates && !metadata_filter && policy.require() == Require::Full => Observe::Required,
        asked => asked,
    };
    let mut steps = Vec::new();
    // With `/` itself writable there is nothing outside that a mount could protect.
    if host.mounts && !everything {
        steps.extend(namespaces(host.user_namespace, host.pid_namespace));
        steps.extend(policy.writable().iter().cloned().map(PlanStep::Writable));
        if let Some(scratch) = &command.scratch {
            steps.push(PlanStep::Writable(scratch.clone()));
            if host.shared_memory {
                steps.push(PlanStep::Shown {
                    from: scratch.clone(),
                    at: PathBuf::from(SHARED_MEMORY),
                });
            }
        }
    }
    let protected = policy.protected();
    if steps.contains(&PlanStep::ReadOnlyMounts) {
        steps.extend(nested(protected));
    }
    let accelerator = command.accelerator.as_ref().filter(|_| command.observe != Observe::No);
    let accelerator = accelerator.filter(|_| steps.contains(&PlanStep::ReadOnlyMounts));
    if let Some(Accelerator { copy, library, .. }) = accelerator {
        steps.push(PlanStep::Replaced {
            by: copy.clone(),
            at: library.clone(),
        });
    }
    steps.push(PlanStep::DropCapabilities);
    let handed = command.stdio.contains(&StdioKind::Handed);
    steps.push(PlanStep::Landlock {
        abi: host.landlock_abi,
        rules: rules(policy, command),
        // A stream that was handed over stands on the caller's mount, which is not read-only.
        truncation: handed || !steps.contains(&PlanStep::ReadOnlyMounts),
        lasting: command.scratch.is_none(),
        log: command.log && host.landlock_abi >= LOGGING,
    });
    steps.push(PlanStep::Seccomp {
        observe,
        cookie: accelerator.map(|it| it.cookie),
        metadata: emulates,
        closed: policy.closed().clone(),
    });
    if emulates {
        steps.push(PlanStep::SeccompInodeRequests);
    }
    if metadata_filter {
        steps.push(PlanStep::SeccompMetadata);
    }
    let coverage = coverage(
        host.landlock_abi,
        host.mounts || everything,
        metadata_filter || emulates,
    )
    // Inside a writable root only a mount can close the nodes that stand there.
    .with(
        Effect::Devices,
        mode == SandboxMode::ReadOnly || (host.mounts && !everything),
    )
    .without(Effect::InheritedDescriptors, handed)
    .with(
        Effect::ProtectedPaths,
        protected.is_empty()
            || steps.contains(&PlanStep::ReadOnlyMounts)
                && protected.iter().all(|path| path.target.is_some() && !path.linked),
    );
    let dialect: &[&str] = if host.mounts { &[EROFS] } else { &[EACCES, EROFS] };
    Ok(LaunchPlan {
        backend: BackendId::Landlock,
        enforcement: Some(coverage.enforcement()),
        not_confined: doors(host.landlock_abi, steps.contains(&PlanStep::PidNamespace))
            .into_iter()
            .filter(|door| !policy.closed().contains(door))
            .collect(),
        steps,
        dialect,
    })
}

/// What is mounted inside the writable roots, each after what stands above it.
fn nested(protected: &[Protected]) -> Vec<PlanStep> {
    let mut steps: Vec<PlanStep> = Vec::new();
    for path in protected {
        for above in path.above.iter().cloned().map(PlanStep::Held) {
            if !steps.contains(&above) {
                steps.push(above);
            }
        }
        steps.extend(path.target.clone().map(PlanStep::Protected));
    }
    steps
}

/// The namespaces of the mount layer.
pub(crate) fn namespaces(user: bool, pids: bool) -> Vec<PlanStep> {
    let mut steps = Vec::new();
    if user {
        steps.push(PlanStep::UserNamespace);
    }
    if pids {
        steps.push(PlanStep::PidNamespace);
    }
    steps.push(PlanStep::ReadOnlyMounts);
    steps
}

/// The doors that stay open.
fn doors(abi: u8, pids: bool) -> Vec<Door> {
    let mut doors = vec![Door::Network, Door::UnixSockets];
    // In a PID namespace the caller's group could still be reached from within it (kill(2), 0).
    if abi < SIGNALS {
        doors.push(Door::Signals);
    }
    if !pids {
        doors.push(Door::ProcessVisibility);
    }
    doors
}

fn rules(policy: &SandboxExecutionPolicy, command: &CommandSpec) -> Vec<LandlockRule> {
    let roots = policy
        .writable()
        .iter()
        .chain(&command.scratch)
        .cloned()
        .map(LandlockRule::Everything);
    let sinks = SINKS.into_iter().map(LandlockRule::Device);
    let terminals = TERMINALS.into_iter().map(LandlockRule::Terminal);
    roots.chain(sinks).chain(terminals).collect()
}

/// What these layers govern together (docs/adr/0002-layers.md).
///
/// `metadata` holds where mounts are read-only, or a filter refuses the calls that change it.
pub(crate) fn coverage(abi: u8, mounts: bool, metadata: bool) -> Coverage {
    let landlock = abi >= 1;
    Coverage::none()
        .with(Effect::Content, landlock)
        .with(Effect::Tree, landlock)
        .with(Effect::ProcessMemory, landlock)
        // Only the launch closes inherited descriptors, and it fails when it cannot.
        .with(Effect::InheritedDescriptors, true)
        .with(Effect::Truncate, abi >= 3 || mounts)
        .with(Effect::DeviceIoctl, abi >= 5)
        .with(Effect::Metadata, mounts || metadata)
}
