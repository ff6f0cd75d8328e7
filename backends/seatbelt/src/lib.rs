//! Confinement by a profile of `sandbox-exec` (macOS).
//!
//! The plan is text: the profile that holds for the command and for everybody it starts. It is made
//! and tested on every system; only macOS can be asked whether it holds.
#![forbid(unsafe_code)]

#[cfg(target_os = "macos")]
mod boundary;
mod literal;
mod plan;
mod profile;
#[cfg(any(target_os = "macos", feature = "stand-in"))]
pub mod trial;

use ringfence_backend::{
    Backend, BackendId, CommandSpec, HostSupport, LaunchPlan, PlanError, PlanStep, PrepareError, Prepared, Probe,
    SandboxExecutionPolicy,
};

/// The backend `seatbelt`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seatbelt;

impl Backend for Seatbelt {
    fn id(&self) -> BackendId {
        BackendId::Seatbelt
    }

    #[cfg(target_os = "macos")]
    fn probe(&self) -> Probe {
        match trial::trial(std::path::Path::new(ringfence_backend::darwin::SANDBOX_EXEC), None) {
            Ok(coverage) => Probe::Usable(HostSupport {
                layers: "sandbox-exec".to_owned(),
                coverage,
                ..HostSupport::default()
            }),
            Err(reason) => Probe::Unusable { reason },
        }
    }

    #[cfg(not(target_os = "macos"))]
    fn probe(&self) -> Probe {
        Probe::Unusable {
            reason: "only macOS has sandbox-exec".to_owned(),
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

    fn rendered(&self, plan: &LaunchPlan) -> Vec<String> {
        let profiles = plan.steps.iter().filter_map(|step| match step {
            PlanStep::SeatbeltProfile(text) => Some(text.lines()),
            _ => None,
        });
        profiles.flatten().map(str::to_owned).collect()
    }

    #[cfg(target_os = "macos")]
    fn prepare(&self, plan: &LaunchPlan) -> Result<Prepared, PrepareError> {
        Ok(Prepared::Direct(Box::new(boundary::SeatbeltBoundary::prepare(plan)?)))
    }

    #[cfg(not(target_os = "macos"))]
    fn prepare(&self, _plan: &LaunchPlan) -> Result<Prepared, PrepareError> {
        Err(PrepareError {
            what: "a profile of Seatbelt".to_owned(),
            source: std::io::ErrorKind::Unsupported.into(),
        })
    }
}
