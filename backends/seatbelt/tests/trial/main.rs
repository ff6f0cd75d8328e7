//! The trial against stand-ins for `sandbox-exec`: they have its command line, and confine nothing, or
//! something by bubblewrap.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ringfence_backend::{Coverage, Effect};
use ringfence_seatbelt::trial::trial;

/// The program that stands between a runner and its command.
const PROGRAM: &str = env!("CARGO_BIN_EXE_seatbelt-stand-in");

/// What the trial finds with this script in place of `sandbox-exec`, which has the profile in `$2`, the
/// directory of the trial in `$W`, and the program behind it.
fn tried(script: &str) -> Result<Coverage, String> {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("sandbox-exec");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = -p ] || exit 64\n\
         W=$(printf '%s\\n' \"$2\" | sed -n 's/^(allow file-write\\* file-link (subpath \"\\(.*\\)\\/in\"))$/\\1/p')\n\
         shift 2\n{script}\n"
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    trial(&path, Some(Path::new(PROGRAM)))
}

/// bubblewrap with everything read-only but what these words add.
fn confined(but: &str) -> Result<Coverage, String> {
    tried(&format!(
        "exec bwrap --ro-bind / / --dev /dev --proc /proc {but} -- \"$@\""
    ))
}

#[test]
fn a_boundary_that_confines_nothing_is_not_used() {
    let error = tried("exec \"$@\"").unwrap_err();
    assert!(error.contains("changed files"), "{error}");
}

#[test]
fn a_boundary_that_lets_nothing_change_is_not_used() {
    let error = confined("").unwrap_err();
    assert!(error.contains("could not change"), "{error}");
}

#[test]
fn a_boundary_that_holds_is_said_to_govern_what_was_tried() {
    let coverage = confined(
        "--bind \"$W/in\" \"$W/in\" --bind \"$W/in/a\" \"$W/in/a\" --ro-bind \"$W/in/a/locked\" \"$W/in/a/locked\"",
    )
    .unwrap();
    for effect in Coverage::PROMISED {
        let untried = matches!(effect, Effect::Devices | Effect::DeviceIoctl | Effect::ProcessMemory);
        assert_eq!(coverage.governs(effect), !untried, "{effect:?}");
    }
}

#[test]
fn a_boundary_that_protects_nothing_inside_is_not_said_to() {
    let coverage = confined("--bind \"$W/in\" \"$W/in\"").unwrap();
    assert!(coverage.governs(Effect::Content) && coverage.governs(Effect::Metadata));
    assert!(!coverage.governs(Effect::ProtectedPaths));
}

#[test]
fn a_sandbox_exec_that_refuses_is_quoted() {
    let error = tried("echo 'unbound variable: file-graft' >&2; exit 65").unwrap_err();
    assert!(error.contains("unbound variable: file-graft"), "{error}");
}
