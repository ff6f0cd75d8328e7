//! What every confining backend must pass, put to it through its public interface alone.
//!
//! Each case makes a policy, has it planned, prepared and launched, waits for the end and then looks at
//! the state of the world: what a run says of itself decides only whether its attempts were made. The
//! commands are scripts for Python, which reaches every call that changes a file.
//!
//! A case may look at its whole process (descriptors, children, pending signals), so each wants a
//! process of its own, without other threads, that [serves as a launcher](crate::serve_as_launcher).

mod devices;
mod doors;
mod ended;
mod ends;
mod enforcement;
mod failures;
mod files;
mod launch;
mod metadata;
mod protected;
mod run;
mod temp;
mod world;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Backend, HostSupport, Probe, SandboxMode};

/// One thing that a backend must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name, which reads as a sentence about a run.
    pub name: &'static str,
    check: fn(&Bench<'_>) -> Result<(), String>,
}

impl Case {
    /// Puts it to a backend.
    ///
    /// # Errors
    /// What was otherwise than it must be, in words for people.
    pub fn check(&self, bench: &Bench<'_>) -> Result<(), String> {
        (self.check)(bench)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Names cases after their functions.
macro_rules! list {
    ($($check:ident),+ $(,)?) => {
        /// The cases of this page.
        pub(super) const CASES: &[crate::conformance::Case] = &[$(crate::conformance::Case {
            name: stringify!($check),
            check: $check,
        }),+];
    };
}
use list;

/// Every case, in the order of what is promised.
pub fn cases() -> impl Iterator<Item = Case> {
    [
        files::CASES,
        metadata::CASES,
        temp::CASES,
        devices::CASES,
        protected::CASES,
        doors::CASES,
        ends::CASES,
        launch::CASES,
        failures::CASES,
        enforcement::CASES,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// A backend, what its host gives it, and a fresh world for one case.
///
/// The world is a workspace, a directory beside it and a private temp directory. They belong to the user
/// of this process, and are removed with this value.
#[derive(Debug)]
pub struct Bench<'a> {
    backend: &'a dyn Backend,
    host: HostSupport,
    world: TempDir,
}

impl<'a> Bench<'a> {
    /// Asks the host, and makes a world beneath `base`, which no temp area may cover.
    ///
    /// # Errors
    /// Why nothing can be put to the backend here: it is not usable, or the world cannot be made.
    pub fn new(backend: &'a dyn Backend, base: &Path) -> Result<Self, String> {
        let host = match backend.probe() {
            Probe::Usable(host) => host,
            Probe::Unusable { reason } => return Err(format!("{} is not usable: {reason}", backend.id())),
        };
        let world = TempDir::with_prefix_in("world-", base);
        let world = world.map_err(|error| format!("a world in {}: {error}", base.display()))?;
        let bench = Self { backend, host, world };
        for directory in [bench.workspace(), bench.outside(), bench.scratch()] {
            said("a directory of the world", std::fs::create_dir(directory))?;
        }
        Ok(bench)
    }

    /// What the host gives the backend.
    #[must_use]
    pub const fn host(&self) -> &HostSupport {
        &self.host
    }

    /// The workspace.
    fn workspace(&self) -> PathBuf {
        self.world.path().join("w")
    }

    /// The directory beside it.
    fn outside(&self) -> PathBuf {
        self.world.path().join("out")
    }

    /// The directory that runs with a temp area of their own have.
    fn scratch(&self) -> PathBuf {
        self.world.path().join("tmp")
    }
}

/// That a backend refuses every mode that must be confined, as one without a boundary must.
///
/// # Errors
/// The mode that it would serve.
pub fn refuses_to_confine(backend: &dyn Backend, base: &Path) -> Result<(), String> {
    let bench = Bench::new(backend, base)?;
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        if let Ok(plan) = run::Run::new(&bench, mode)?.plan() {
            return Err(format!("{mode} is planned: {plan:?}"));
        }
    }
    run::Run::new(&bench, SandboxMode::DangerFullAccess)?.plan().map(drop)
}

/// A result of the operating system's, and what was being done.
fn said<T>(doing: impl fmt::Display, result: Result<T, impl Into<io::Error>>) -> Result<T, String> {
    result.map_err(|error| format!("{doing}: {}", error.into()))
}

/// What must hold, in words for when it does not.
fn must(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
