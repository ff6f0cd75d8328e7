//! No confinement: serves `danger-full-access` and refuses every confining mode.
//!
//! The smallest backend, and so the example of one.
#![forbid(unsafe_code)]

use ringfence_backend::{
    Backend, BackendId, Boundary, CommandSpec, Door, HostSupport, LaunchPlan, PlanError, PrepareError, Prepared, Probe,
    SandboxExecutionPolicy,
};
#[cfg(target_os = "linux")]
use {ringfence_backend::status::Failure, std::os::fd::RawFd};

/// The backend `none`.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBackend;

impl Backend for NoBackend {
    fn id(&self) -> BackendId {
        BackendId::None
    }

    fn probe(&self) -> Probe {
        Probe::Usable(HostSupport::default())
    }

    fn plan(
        &self,
        _host: &HostSupport,
        policy: &SandboxExecutionPolicy,
        _command: &CommandSpec,
    ) -> Result<LaunchPlan, PlanError> {
        if policy.mode().confines() {
            return Err(PlanError::ModeNotServed {
                backend: self.id(),
                mode: policy.mode(),
            });
        }
        Ok(LaunchPlan {
            backend: self.id(),
            enforcement: None,
            not_confined: vec![Door::Network, Door::UnixSockets, Door::Signals, Door::ProcessVisibility],
            steps: Vec::new(),
            dialect: &[],
        })
    }

    fn prepare(&self, _plan: &LaunchPlan) -> Result<Prepared, PrepareError> {
        Ok(Prepared::Direct(Box::new(NoBoundary)))
    }
}

#[derive(Debug)]
struct NoBoundary;

#[cfg(target_os = "linux")]
impl Boundary for NoBoundary {
    fn clone_flags(&self) -> i32 {
        0
    }

    fn isolate(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn confine(&self) -> Result<Option<RawFd>, Failure> {
        Ok(None)
    }
}

#[cfg(not(target_os = "linux"))]
impl Boundary for NoBoundary {
    fn profile(&self) -> Option<&str> {
        None
    }
}
