//! The steps of this backend's own: namespaces and read-only mounts.

use ringfence_backend::{BackendId, CommandSpec, HostSupport, LaunchPlan, PlanError, PlanStep, SandboxExecutionPolicy};
use ringfence_layers::Ground;

pub(crate) fn plan(
    host: &HostSupport,
    policy: &SandboxExecutionPolicy,
    command: &CommandSpec,
) -> Result<LaunchPlan, PlanError> {
    // With `/` itself writable there is nothing outside that a mount could protect.
    let mounts = if host.mounts && !policy.opens_everything() {
        namespaces(host.user_namespace, host.pid_namespace)
    } else {
        Vec::new()
    };
    let ground = Ground {
        backend: BackendId::Landlock,
        host,
        mounts,
        own_devices: false,
    };
    ringfence_layers::plan(ground, policy, command)
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
