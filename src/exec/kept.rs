//! From a run to what is kept of it.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::request::{Capture, Evidence, Input};
use super::spec::ExecSpec;
use crate::bytes::sha256;
use crate::facts::{Denial, Denied, RunReport};
use crate::runs::{Executable, KeptDenial, KeptEnv, KeptInput, KeptOutcome, KeptPolicy, KeptRun, Place};

/// The most that the paths of a run's denials come to in its record.
const MOST_BYTES: usize = 128 << 10;

/// What a run is known by before it starts, so that it cannot change what is kept.
pub(super) fn before(spec: &ExecSpec) -> io::Result<KeptRun> {
    let policy = spec.policy();
    let pinned = |path| Place::of(path);
    Ok(KeptRun {
        v: 1,
        run: spec.run_id().to_owned(),
        argv: spec.argv().iter().map(Into::into).collect(),
        whole: spec.long_command().is_none(),
        workdir: Place::at(spec.workdir(), spec.workdir_id()),
        policy: KeptPolicy {
            mode: policy.mode(),
            root: pinned(policy.workspace_root().pinned()),
            writable: policy.writable().iter().map(pinned).collect(),
            protected: policy.protected().iter().map(|it| it.path.as_os_str().into()).collect(),
            temp: policy.temp(),
            closed: policy.closed().clone(),
            require: policy.require(),
            session: policy.session().map(str::to_owned),
        },
        env: KeptEnv::of(spec.asked_env())?,
        executable: Executable::first_of(spec.candidates(), spec.workdir()),
        input: input(spec),
        timeout_ms: spec.timeout().map(milliseconds),
        grace_ms: milliseconds(spec.grace()),
        backend: spec.asked_backend(),
        evidence: match spec.evidence() {
            Evidence::Auto => "auto",
            Evidence::Strict => "strict",
            Evidence::Off => "off",
        }
        .to_owned(),
        limits: spec
            .limits()
            .iter()
            .map(|(name, value)| (name.name().to_owned(), *value))
            .collect(),
        approval: spec.origin().map(|origin| origin.approval.clone()),
        outcome: KeptOutcome::default(),
    })
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What the command reads.
pub(super) fn input(spec: &ExecSpec) -> KeptInput {
    match (spec.input(), spec.capture()) {
        (Input::Default, Capture::Captured { .. }) => KeptInput::Nothing,
        (Input::Default, Capture::Passthrough) | (Input::Callers, _) => KeptInput::Callers,
        (Input::Bytes(bytes), _) => KeptInput::Bytes { sha256: sha256(bytes) },
        (Input::File(path), _) => file(path),
    }
}

fn file(path: &Path) -> KeptInput {
    Executable::at(path).map_or(KeptInput::Unknown, |state| KeptInput::File { state })
}

/// How it ended.
pub(super) fn after(report: &RunReport) -> KeptOutcome {
    let seen = match &report.sandbox.denied {
        Denied::Observed(seen) => Some(seen),
        _ => None,
    };
    let listed: Vec<_> = seen.into_iter().flat_map(|seen| fitting(&seen.denials)).collect();
    let all = seen.map_or(0, |seen| seen.denials.len());
    KeptOutcome {
        exit_code: report.exit.code(),
        signal: report.exit.signal(),
        duration_ms: report.duration_ms,
        evidence: report.sandbox.denied.evidence().map(str::to_owned),
        omitted: seen.map_or(0, |seen| seen.omitted) + (all - listed.len()) as u64,
        denials: listed
            .into_iter()
            .map(|denial| KeptDenial {
                op: denial.op,
                path: denial.path.as_os_str().into(),
                program: denial.program.clone(),
                pid: denial.pid,
                errno: format!("{:?}", denial.errno),
                count: denial.count,
            })
            .collect(),
    }
}

/// As many denials as a person may look at, and as a disk can hold of every run: the trail has more.
fn fitting(denials: &[Denial]) -> &[Denial] {
    let mut bytes = 0;
    let fit = denials.iter().take_while(|denial| {
        bytes += denial.path.as_os_str().len() + denial.program.len();
        bytes <= MOST_BYTES
    });
    let count = fit.count();
    &denials[..count]
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;
    use crate::facts::Operation;

    #[test]
    fn what_is_kept_of_the_denials_of_one_run_has_a_bound() {
        let denial = |path: &str| Denial {
            op: Operation::Write,
            path: path.into(),
            program: "sh".to_owned(),
            pid: 1,
            errno: Errno::EACCES,
            count: 1,
        };
        let few = vec![denial("/a"); 1000];
        assert_eq!(fitting(&few).len(), 1000);
        let long = vec![denial(&"x".repeat(4000)); 1000];
        let kept = fitting(&long);
        assert!(!kept.is_empty() && kept.len() * 4000 <= MOST_BYTES);
    }
}
