//! Confinement by a profile of `sandbox-exec` (macOS).
//!
//! The plan is text: the profile that holds for the command and for everybody it starts. It is made
//! and tested on every system; only macOS can be asked whether it holds.
#![forbid(unsafe_code)]

mod literal;
mod plan;
mod profile;

use ringfence_backend::{
    Backend, BackendId, Boundary, CommandSpec, HostSupport, LaunchPlan, PlanError, PrepareError, Probe,
    SandboxExecutionPolicy,
};

/// The backend `seatbelt`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seatbelt;

impl Backend for Seatbelt {
    fn id(&self) -> BackendId {
        BackendId::Seatbelt
    }

    fn probe(&self) -> Probe {
        Probe::Unusable {
            reason: "only macOS has it".to_owned(),
        }
    }

    fn plan(
        &self,
        host: &HostSupport,
        policy: &SandboxExecutionPolicy,
        command: &CommandSpec,
    ) -> Result<LaunchPlan, PlanError> {
        plan::plan(host, policy, command)
    }

    fn prepare(&self, _plan: &LaunchPlan) -> Result<Box<dyn Boundary>, PrepareError> {
        Err(PrepareError {
            what: "a profile of Seatbelt".to_owned(),
            source: std::io::ErrorKind::Unsupported.into(),
        })
    }
}
