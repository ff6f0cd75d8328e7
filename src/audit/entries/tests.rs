//! What a run leaves in the trail.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use nix::errno::Errno;
use ringfence_backend::{BackendId, Containment, Enforcement, SandboxMode};

use super::*;
use crate::facts::{Exit, Loosening, Observed, Operation, SandboxFacts, Source};

fn report(denied: Denied) -> RunReport {
    RunReport {
        run_id: "run".to_owned(),
        argv: vec!["true".into()],
        command: None,
        workdir: "/w".into(),
        session: Some("s".to_owned()),
        exit: Exit::Signal(9),
        timed_out: true,
        aborted: false,
        limit: None,
        timeout_ms: None,
        duration_ms: 5,
        stdout: None,
        stderr: None,
        merged: false,
        recorded: crate::facts::Recorded::NotAsked,
        sandbox: SandboxFacts {
            mode: SandboxMode::WorkspaceWrite,
            denied,
            enforcement: Some(Enforcement::Full),
            runner_failed: false,
            backend: BackendId::Landlock,
            not_confined: Vec::new(),
            survivors: None,
            containment: Containment::PidNamespace,
            loosening: Loosening {
                protected: Vec::new(),
                mode: SandboxMode::WorkspaceWrite,
                workspace_root: "/w".into(),
            },
        },
    }
}

fn denial(path: impl Into<PathBuf>) -> Denial {
    Denial {
        op: Operation::Write,
        path: path.into(),
        program: "sh".to_owned(),
        pid: 7,
        errno: Errno::EACCES,
        count: 2,
    }
}

fn observed(denials: Vec<Denial>, omitted: u64) -> Vec<Entry> {
    ended(&report(Denied::Observed(Observed {
        source: Source::Notify,
        denials,
        omitted,
        unseen: 0,
    })))
}

#[test]
fn denials_of_one_kind_are_one_record_and_the_end_comes_last() {
    let odd = PathBuf::from(OsString::from_vec(b"/\xff".to_vec()));
    let entries = observed(vec![denial("/a"), denial(odd), denial("/a")], 0);
    assert_eq!(entries.len(), 3);
    assert!(matches!(&entries[0].event, Event::Denial { path, count: 4, path_bytes: None, .. } if path == "/a"));
    assert!(matches!(&entries[1].event, Event::Denial { path_bytes: Some(it), .. } if it == "L/8="));
    assert!(matches!(
        &entries[2].event,
        Event::RunEnd { exit_code: None, signal: Some(signal), timed_out: true, denied: Some(true), .. } if signal == "SIGKILL"
    ));
    assert!(
        entries
            .iter()
            .all(|it| it.run.as_deref() == Some("run") && it.session.as_deref() == Some("s"))
    );
}

#[test]
fn however_much_is_denied_the_records_have_a_bound_and_name_what_is_left_out() {
    let many = (0..5000).map(|n| denial(format!("/{n}"))).collect();
    let entries = observed(many, 70);
    assert_eq!(entries.len(), 1002);
    assert!(matches!(entries[1000].event, Event::Gap { omitted: 4070, .. }));
    let long = (0..900)
        .map(|n| denial(format!("/{n}{}", "\u{1}".repeat(4000))))
        .collect();
    let entries = observed(long, 0);
    let bytes = serde_json::to_string(&entries).unwrap().len();
    assert!(bytes < MOST_BYTES + 4096, "{bytes}");
    let kept = entries.len() as u64 - 2;
    assert!(matches!(entries[entries.len() - 2].event, Event::Gap { omitted, .. } if omitted == 900 - kept));
}

#[test]
fn a_run_that_did_not_happen_is_told_from_one_that_could_not_be_confined() {
    let tried = Vec::new();
    let unavailable = refused("run", None, &Error::SandboxUnavailable { tried });
    assert!(matches!(unavailable.event, Event::SandboxUnavailable { .. }));
    let failed = refused("run", None, &Error::CommandNotFound { program: "x".into() });
    assert!(matches!(
        failed.event,
        Event::RunnerFailed {
            code: crate::ErrorCode::CommandNotFound,
            ..
        }
    ));
}
