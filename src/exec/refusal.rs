//! Why a command did not run, as the caller's error.

use std::io;

use nix::errno::Errno;
use ringfence_backend::{LaunchError, status::Stage};

use super::spawn::SpawnError;
use super::spec::ExecSpec;
use crate::error::{Error, Tried};

/// A launch that failed.
pub(super) fn of(spec: &ExecSpec, error: SpawnError) -> Error {
    let backend = spec.plan().backend;
    let unavailable = |reason| Error::SandboxUnavailable {
        tried: vec![Tried { backend, reason }],
    };
    match error {
        SpawnError::Refused(error) => error,
        SpawnError::Prepare(error) => unavailable(error.to_string()),
        SpawnError::Launch(LaunchError::Failed(failure)) => match failure.stage {
            Stage::Exec => not_executed(spec, failure.errno),
            Stage::WorkingDirectory => Error::Workdir {
                path: spec.workdir().to_owned(),
                source: io::Error::from_raw_os_error(failure.errno),
            },
            Stage::Limits => Error::Host {
                doing: "could not set the command's limits",
                source: io::Error::from_raw_os_error(failure.errno),
            },
            _ => unavailable(failure.to_string()),
        },
        #[cfg(target_os = "linux")]
        SpawnError::Launch(LaunchError::Interrupted(why)) => Error::Lost {
            source: io::Error::other(why),
        },
        SpawnError::Launch(other) => unavailable(other.to_string()),
    }
}

/// The error for a program that the kernel did not execute.
fn not_executed(spec: &ExecSpec, errno: i32) -> Error {
    let program = spec.argv().first().cloned().unwrap_or_default();
    match Errno::from_raw(errno) {
        Errno::ENOENT | Errno::ENOTDIR if !interpreter_missing(spec) => Error::CommandNotFound { program },
        Errno::E2BIG => {
            let strings = spec.strings();
            Error::CommandTooLarge {
                bytes: strings.clone().map(|len| len + 1).sum(),
                longest: strings.max().unwrap_or(0),
            }
        }
        Errno::ENOENT => Error::CommandNotExecutable {
            program,
            source: io::Error::other("the interpreter that its first line or its header names does not exist"),
        },
        errno => Error::CommandNotExecutable {
            program,
            source: errno.into(),
        },
    }
}

/// Whether the program is there after all, so that what is missing is what would interpret it.
fn interpreter_missing(spec: &ExecSpec) -> bool {
    spec.candidates()
        .iter()
        .any(|candidate| spec.workdir().join(candidate).is_file())
}
