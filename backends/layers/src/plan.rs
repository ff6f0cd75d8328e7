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
pub const SHARED_MEMORY: &str = "/dev/shm";

/// The first Landlock ABI that writes to the kernel's audit log.
const LOGGING: u8 = 7;

/// How a refusal by the mount layer reads, and one by Landlock.
const EROFS: &str = "Read-only file system";
const EACCES: &str = "Permission denied";

/// What a backend stands on here.
#[derive(Debug)]
pub struct Ground<'a> {
    /// The backend.
    pub backend: BackendId,
    /// What the host gives it.
    pub host: &'a HostSupport,
    /// The steps that make the mounts read-only; none where there are none to be had, or nothing is outside.
    pub mounts: Vec<PlanStep>,
    /// Whether the run has a /dev of its own, with sinks and terminals and nothing else.
    pub own_devices: bool,
}

/// What to do for a policy and a command.
///
/// # Errors
/// [`PlanError`] for a mode that confines nothing.
pub fn plan(
    ground: Ground<'_>,
    policy: &SandboxExecutionPolicy,
    command: &CommandSpec,
) -> Result<LaunchPlan, PlanError> {
    let Ground {
        backend,
        host,
        mounts: mut steps,
        own_devices,
    } = ground;
    let mode = policy.mode();
    if !mode.confines() {
        return Err(PlanError::NothingToConfine { backend, mode });
    }
    let everything = policy.opens_everything();
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
    let mounts = steps.contains(&PlanStep::ReadOnlyMounts);
    if mounts {
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
        if own_devices {
            steps.extend(devices(command));
        }
    }
    let protected = policy.protected();
    if mounts {
        steps.extend(nested(protected));
    }
    let accelerator = command.accelerator.as_ref().filter(|_| command.observe != Observe::No);
    let accelerator = accelerator.filter(|_| mounts);
    if let Some(Accelerator { copy, library, .. }) = accelerator {
        steps.push(PlanStep::Replaced {
            by: copy.clone(),
            at: library.clone(),
        });
    }
    steps.push(PlanStep::DropCapabilities);
    let handed = command.stdio.contains(&StdioKind::Handed);
    if host.landlock_abi > 0 || !mounts {
        steps.push(PlanStep::Landlock {
            abi: host.landlock_abi,
            rules: rules(policy, command, &steps),
            sockets: policy.closed().contains(&Door::UnixSockets),
            lasting: command.scratch.is_none(),
            log: command.log && host.landlock_abi >= LOGGING,
        });
    }
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
    // What another process passes over a socket stands on that process's mounts, where Landlock alone looks.
    let passed = host.landlock_abi == 0 && !policy.closed().contains(&Door::UnixSockets);
    // Its owner could change the mode of a terminal that is shown on a writable mount.
    let shown = steps.iter().any(|step| matches!(step, PlanStep::ShownDevice { .. }));
    let coverage = coverage(
        host.landlock_abi,
        mounts || everything,
        metadata_filter || emulates,
        own_devices && mounts,
    )
    // Inside a writable root only a mount can close the nodes that stand there.
    .with(Effect::Devices, mode == SandboxMode::ReadOnly || mounts)
    .without(Effect::Metadata, own_devices && !host.sealed)
    // Where nobody looks at the object, a file that was handed over can be opened again, for writing.
    .without(Effect::Content, handed && host.landlock_abi == 0)
    .without(Effect::Truncate, handed && host.landlock_abi == 0)
    .without(Effect::InheritedDescriptors, handed || passed || shown && !host.sealed)
    .with(
        Effect::ProtectedPaths,
        protected.is_empty() || mounts && protected.iter().all(|path| path.target.is_some() && !path.linked),
    );
    let dialect: &[&str] = if host.mounts { &[EROFS] } else { &[EACCES, EROFS] };
    Ok(LaunchPlan {
        backend,
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

/// The devices behind the command's streams that a /dev of the run's own lacks, and where they are shown in it.
fn devices(command: &CommandSpec) -> Vec<PlanStep> {
    let mut steps = Vec::new();
    for stream in &command.stdio {
        let StdioKind::Device(device) = stream else { continue };
        let known = SINKS.iter().chain(&TERMINALS).any(|known| device == Path::new(known));
        // A file system of its own stands at /dev/pts, in which nothing can be shown.
        let at = match device.strip_prefix("/dev/pts") {
            Ok(number) => PathBuf::from(format!("/dev/pts-{}", number.display())),
            Err(_) => device.clone(),
        };
        let step = PlanStep::ShownDevice {
            device: device.clone(),
            at,
        };
        if !known && !steps.contains(&step) {
            steps.push(step);
        }
    }
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

fn rules(policy: &SandboxExecutionPolicy, command: &CommandSpec, steps: &[PlanStep]) -> Vec<LandlockRule> {
    let roots = policy
        .writable()
        .iter()
        .chain(&command.scratch)
        .cloned()
        .map(LandlockRule::Everything);
    let sinks = SINKS.into_iter().map(|path| LandlockRule::Device(path.into()));
    let terminals = TERMINALS.into_iter().map(|path| LandlockRule::Terminal(path.into()));
    let shown = steps.iter().filter_map(|step| match step {
        PlanStep::ShownDevice { at, .. } => Some(LandlockRule::Terminal(at.clone())),
        _ => None,
    });
    roots.chain(sinks).chain(terminals).chain(shown).collect()
}

/// What these layers govern together (docs/adr/0002-layers.md).
///
/// `metadata` holds where mounts are read-only, or a filter refuses the calls that change it;
/// `own` where the run has namespaces and a /dev of its own, in which nothing of the host is left to reach.
#[must_use]
pub fn coverage(abi: u8, mounts: bool, metadata: bool, own: bool) -> Coverage {
    let landlock = abi >= 1;
    Coverage::none()
        .with(Effect::Content, landlock || mounts)
        .with(Effect::Tree, landlock || mounts)
        .with(Effect::ProcessMemory, landlock || own)
        // Only the launch closes inherited descriptors, and it fails when it cannot.
        .with(Effect::InheritedDescriptors, true)
        .with(Effect::Truncate, abi >= 3 || mounts)
        .with(Effect::DeviceIoctl, abi >= 5 || own)
        .with(Effect::Metadata, mounts || metadata)
}
