//! Starting a command where processes cannot confine themselves step by step: on macOS, through
//! `sandbox-exec`.
//!
//! Two processes of this very program stand between the runner and the command. The *reaper*, outside
//! the boundary, keeps the run together: it starts the command, tells how it ended, and kills what is
//! left of it when it has ended or the runner is gone. The *launcher* is what `sandbox-exec` executes
//! inside the boundary: it enters the working directory, sets up the streams, closes every other
//! descriptor, says that the boundary stands, sets the limits and becomes the command. What they are
//! to do reaches them through descriptors; only those who share the user's rights could read
//! arguments and the environment, but those are many.
//!
//! Nothing here is particular to macOS but for the table of processes, so that all of it is tested on
//! Linux with a stand-in for `sandbox-exec`.

mod frame;
mod launcher;
mod order;
mod raw;
mod reaper;
mod running;
mod start;
mod table;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::OnceLock;

pub use running::{Launched, Listener};
pub use start::{LaunchError, Sandbox, Start, start};

/// The program of macOS that confines what it executes, by its whole name: a run's own `PATH` has no say.
pub const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// Starts a command inside the boundary, and a reaper that keeps its run together.
///
/// # Errors
/// [`LaunchError`]; the command has then not run.
#[cfg(not(target_os = "linux"))]
pub fn launch(
    prepared: &crate::Prepared,
    launch: &crate::Launch<'_>,
    image: &crate::ExecImage,
) -> Result<Launched, LaunchError> {
    let crate::Prepared::Direct(boundary) = prepared;
    let sandbox = boundary.profile().map(|profile| Sandbox {
        program: std::path::Path::new(SANDBOX_EXEC),
        profile,
    });
    let how = Start {
        sandbox,
        program: None,
        session: launch.session,
        stdio: &launch.stdio,
        workdir: launch.workdir,
        extra: launch.extra,
        limits: launch.limits,
    };
    start(&how, image)
}

/// The first word of the process that keeps a run together.
const REAPER: &str = "--ringfence-reaper";
/// The first word of the process that becomes the command.
const LAUNCHER: &str = "--ringfence-launcher";

/// The program that knows these words, once it has said so.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The program that stands between runs and their commands, once it has said so. Who could write it could
/// act outside of every boundary.
#[must_use]
pub fn program() -> Option<&'static std::path::Path> {
    PROGRAM.get().map(PathBuf::as_path)
}

/// Does what this program was started for, if a run started it, and returns its exit status. Otherwise
/// runs can be started from now on: this program is what stands between them and their commands.
///
/// For the beginning of `main`, before there is a second thread.
pub fn enter(words: &[OsString]) -> Option<u8> {
    match words.get(1).map(OsString::as_os_str) {
        Some(word) if word == OsStr::new(REAPER) => Some(reaper::main()),
        Some(word) if word == OsStr::new(LAUNCHER) => Some(launcher::main(words.get(2).map(OsString::as_os_str))),
        _ => {
            if let Ok(program) = std::env::current_exe() {
                PROGRAM.get_or_init(|| program);
            }
            None
        }
    }
}
