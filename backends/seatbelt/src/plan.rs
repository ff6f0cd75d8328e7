//! What to do for a policy. Pure.

use ringfence_backend::{
    BackendId, CommandSpec, Door, Effect, HostSupport, LaunchPlan, Observe, PinnedPath, PlanError, PlanStep, Protected,
    SandboxExecutionPolicy, StdioKind,
};

use crate::profile::{self, Named, Rules};

/// How a refusal by Seatbelt reads.
const EPERM: &str = "Operation not permitted";

/// Doors that no profile closes, or that this one leaves as they are.
const OPEN: [Door; 5] = [
    Door::Network,
    Door::UnixSockets,
    Door::Signals,
    Door::ProcessVisibility,
    Door::MachServices,
];

pub(crate) fn plan(
    host: &HostSupport,
    policy: &SandboxExecutionPolicy,
    command: &CommandSpec,
) -> Result<LaunchPlan, PlanError> {
    let mode = policy.mode();
    if !mode.confines() {
        return Err(PlanError::NothingToConfine {
            backend: BackendId::Seatbelt,
            mode,
        });
    }
    if command.observe == Observe::Required {
        return Err(PlanError::CannotWatch {
            backend: BackendId::Seatbelt,
        });
    }
    let text = profile::text(&rules(policy, command)).map_err(|named| PlanError::Unnameable {
        backend: BackendId::Seatbelt,
        field: named.field,
        path: named.path.to_owned(),
        reason: named.reason,
    })?;
    let handed = command.stdio.contains(&StdioKind::Handed);
    // Only what a trial on this host has shown is said to be governed.
    let coverage = host
        .coverage
        .clone()
        .without(Effect::InheritedDescriptors, handed)
        .without(Effect::ProtectedPaths, !policy.protected().iter().all(stays));
    Ok(LaunchPlan {
        backend: BackendId::Seatbelt,
        enforcement: Some(coverage.enforcement()),
        not_confined: OPEN
            .into_iter()
            .filter(|door| !policy.closed().contains(door))
            .collect(),
        steps: steps(policy, command, text),
        dialect: &[EPERM],
    })
}

/// Whether what is protected stays what it is: a link to it, or a name that nothing has yet, could be
/// written in other letters, or be exchanged.
fn stays(protected: &Protected) -> bool {
    protected.target.is_some() && !protected.linked
}

/// The roots, and the run's private temp directory.
fn roots<'a>(policy: &'a SandboxExecutionPolicy, command: &'a CommandSpec) -> impl Iterator<Item = &'a PinnedPath> {
    policy.writable().iter().chain(&command.scratch)
}

fn rules<'a>(policy: &'a SandboxExecutionPolicy, command: &'a CommandSpec) -> Rules<'a> {
    let mut rules = Rules {
        closed: policy.closed().clone(),
        ..Rules::default()
    };
    for root in roots(policy, command) {
        let named = Named {
            field: if root == policy.workspace_root().pinned() {
                "workspace root"
            } else {
                "writable root"
            },
            path: root.path(),
        };
        if root.is_directory() {
            rules.trees.push(named);
        } else {
            rules.files.push(named);
        }
    }
    for protected in policy.protected() {
        rules.protected.push(Named {
            field: "protected path",
            path: &protected.path,
        });
        for above in &protected.above {
            if !rules.held.iter().any(|held| held.path == above.path()) {
                rules.held.push(Named {
                    field: "directory above a protected path",
                    path: above.path(),
                });
            }
        }
    }
    rules
}

/// The roots and what stays as it is, for whoever reads the plan, and the profile that makes it so.
fn steps(policy: &SandboxExecutionPolicy, command: &CommandSpec, text: String) -> Vec<PlanStep> {
    let mut steps: Vec<_> = roots(policy, command).cloned().map(PlanStep::Writable).collect();
    for protected in policy.protected() {
        for held in protected.above.iter().cloned().map(PlanStep::Held) {
            if !steps.contains(&held) {
                steps.push(held);
            }
        }
        steps.extend(protected.target.clone().map(PlanStep::Protected));
    }
    steps.push(PlanStep::SeatbeltProfile(text));
    steps
}

#[cfg(test)]
mod tests;
