//! Confinement by Landlock, completed by the layers that make it whole (Linux).
//!
//! Landlock refuses content and tree changes but never metadata; a read-only mount refuses
//! metadata but not what an old descriptor or root can undo; together they govern every file
//! effect. The order is forced by the kernel: namespaces and mounts, then capabilities, then
//! Landlock (which forbids mounting), then the system call filter.
#![deny(unsafe_code)]
#![cfg(target_os = "linux")]

mod boundary;
mod kernel;
mod plan;
mod probe;

use ringfence_backend::{
    Backend, BackendId, CommandSpec, HostSupport, LaunchPlan, PlanError, PrepareError, Prepared, Probe,
    SandboxExecutionPolicy,
};

use boundary::LandlockBoundary;
use ringfence_layers::Rulesets;

/// The backend `landlock`.
#[derive(Debug, Default)]
pub struct Landlock {
    rulesets: Rulesets,
}

impl Backend for Landlock {
    fn id(&self) -> BackendId {
        BackendId::Landlock
    }

    fn probe(&self) -> Probe {
        probe::probe()
    }

    fn watch(&self) -> Result<(), String> {
        probe::watch()
    }

    fn recall(&self, layers: &str) -> Option<HostSupport> {
        probe::recall(layers)
    }

    fn plan(
        &self,
        host: &HostSupport,
        policy: &SandboxExecutionPolicy,
        command: &CommandSpec,
    ) -> Result<LaunchPlan, PlanError> {
        plan::plan(host, policy, command)
    }

    fn prepare(&self, plan: &LaunchPlan) -> Result<Prepared, PrepareError> {
        let boundary = LandlockBoundary::prepare(&plan.steps, &self.rulesets)?;
        Ok(Prepared::Direct(Box::new(boundary)))
    }
}
