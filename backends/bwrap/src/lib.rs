//! Confinement through bubblewrap (Linux): for hosts on which that program alone can make namespaces,
//! and for those without Landlock.
//!
//! bubblewrap makes the namespaces and mounts and starts the launcher inside. The launcher believes
//! nothing: it looks for itself whether the mounts are those that were asked for, and puts on the command
//! what every backend of Linux does. What bubblewrap says or exits with is never taken for a fact of the run.
#![deny(unsafe_code)]
#![cfg(target_os = "linux")]

mod arguments;
mod inside;
mod order;
mod place;
mod probe;
mod program;

use std::ffi::OsString;
use std::path::PathBuf;

use ringfence_backend::{
    Backend, BackendId, CommandSpec, HostSupport, LaunchPlan, PlanError, PlanStep, PrepareError, Prepared, Probe,
    SandboxExecutionPolicy, Through,
};
use ringfence_layers::Ground;

pub use inside::serve;

use order::Order;

/// The backend `bwrap`.
#[derive(Debug, Default)]
pub struct Bwrap {
    path: Option<OsString>,
}

impl Bwrap {
    /// Looks for the program in the directories of this PATH, or in the system's.
    #[must_use]
    pub const fn on(path: Option<OsString>) -> Self {
        Self { path }
    }

    /// The program.
    fn program(&self) -> Result<PathBuf, String> {
        program::find(self.path.as_deref()).and_then(program::out_of_temp)
    }
}

impl Backend for Bwrap {
    fn id(&self) -> BackendId {
        BackendId::Bwrap
    }

    fn probe(&self) -> Probe {
        let found = self.program().and_then(|program| probe::probe(&program));
        found.map_or_else(|reason| Probe::Unusable { reason }, Probe::Usable)
    }

    fn recall(&self, layers: &str) -> Option<HostSupport> {
        probe::recall(&self.program().ok()?, layers)
    }

    fn plan(
        &self,
        host: &HostSupport,
        policy: &SandboxExecutionPolicy,
        command: &CommandSpec,
    ) -> Result<LaunchPlan, PlanError> {
        // A host that was not asked yet has none. Asking it starts the program, so the one that would be
        // started is looked at before.
        let program = host.program.clone().or_else(|| self.program().ok());
        let program = program.unwrap_or_else(|| PathBuf::from("bwrap"));
        if program::is_in_reach(&program, policy) {
            return Err(PlanError::ProgramInReach { program });
        }
        let ground = Ground {
            backend: BackendId::Bwrap,
            host,
            mounts: probe::outer(program, host.user_namespace, host.sealed),
            own_devices: true,
        };
        ringfence_layers::plan(ground, policy, command)
    }

    fn prepare(&self, plan: &LaunchPlan) -> Result<Prepared, PrepareError> {
        Ok(Prepared::Through(through(&plan.steps, None)?))
    }

    fn rendered(&self, plan: &LaunchPlan) -> Vec<String> {
        arguments::shown(&plan.steps)
    }
}

/// The program's words, and the launcher's.
///
/// # Errors
/// [`PrepareError`] for a path that no word can carry.
fn through(steps: &[PlanStep], runner: Option<std::os::fd::OwnedFd>) -> Result<Through, PrepareError> {
    use std::os::fd::AsRawFd;
    let order = Order::new(steps, runner.as_ref().map(AsRawFd::as_raw_fd));
    Ok(Through {
        program: arguments::program(steps)?,
        arguments: Vec::new(),
        more: (c"--args".to_owned(), arguments::words(steps)?),
        boundary: order.encode()?,
        kept: runner.into_iter().collect(),
    })
}
