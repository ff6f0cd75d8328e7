//! What is asked of somebody: what happened, what would run, what would be looser and what stays.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringfence_backend::{Door, Require, SandboxExecutionPolicy, Temp};
use std::os::unix::ffi::OsStrExt;

use crate::approval::{Binding, Question, Refused};
use crate::config::Looseness;
use crate::policy::Difference;
use crate::runs::{KeptDenial, KeptOutcome, KeptRun};

/// The question about one retry.
pub(super) fn question(
    kept: &KeptRun,
    policy: &SandboxExecutionPolicy,
    difference: &Difference,
    binding: &Binding,
    asker: &str,
    justification: &str,
) -> Question {
    let before = kept.executable.as_ref();
    let now = &binding.executable;
    Question {
        run: kept.run.clone(),
        session: kept.policy.session.clone(),
        asker: asker.to_owned(),
        argv: binding.argv.clone(),
        executable: now.path.clone(),
        executable_changed: before.map(|before| {
            let file = &before.file;
            (
                file.path(),
                file.device,
                file.inode,
                before.size,
                i128::from(before.mtime_ns),
            ) != (now.path.as_path(), now.device, now.inode, now.size, now.modified)
        }),
        workdir: binding.workdir.path.clone(),
        difference: difference.to_string().lines().map(str::to_owned).collect(),
        difference_data: difference.document(),
        looseness: match difference.mode {
            Some((_, to)) if !to.confines() => Looseness::FullAccess,
            Some(_) => Looseness::Mode,
            None => Looseness::ExtraRoots,
        },
        mode: policy.mode(),
        opens: difference.opened.clone(),
        keeps: keeps(policy),
        denials: kept.outcome.denials.iter().map(refused).collect(),
        denials_omitted: Some(kept.outcome.omitted),
        justification: justification.to_owned(),
        notes: vec![first_attempt(&kept.outcome)],
    }
}

/// What stays closed, in words.
#[allow(
    clippy::unnecessary_debug_formatting,
    reason = "a path may have any characters, and the quotes show where it ends"
)]
fn keeps(policy: &SandboxExecutionPolicy) -> Vec<String> {
    if !policy.mode().confines() {
        return vec!["nothing is confined".to_owned()];
    }
    let mut keeps = vec![policy.mode().to_string()];
    let protected = policy
        .protected()
        .iter()
        .map(|it| format!("{:?} stays as it is", it.path));
    keeps.extend(protected);
    for door in [Door::Network, Door::UnixSockets] {
        let word = if policy.closed().contains(&door) {
            "closed"
        } else {
            "open, as before"
        };
        keeps.push(format!("{} {word}", door.name()));
    }
    keeps.push(match policy.temp() {
        Temp::None => "no temp area".to_owned(),
        Temp::Private => "a temp area of its own".to_owned(),
        Temp::Host => "the host's temp area".to_owned(),
    });
    if policy.require() == Require::Full {
        keeps.push("enforcement must be full".to_owned());
    }
    keeps
}

fn first_attempt(outcome: &KeptOutcome) -> String {
    let time = Duration::from_millis(outcome.duration_ms);
    let end = match (&outcome.exit_code, &outcome.signal) {
        (Some(code), _) => format!("ended with status {code}"),
        (None, Some(signal)) => format!("was ended by {signal}"),
        (None, None) => "ended, nobody knows how".to_owned(),
    };
    format!("the first run took {time:?} and {end}")
}

fn refused(denial: &KeptDenial) -> Refused {
    let path = &denial.path.0;
    let known = denial.pid != 0;
    Refused {
        op: denial.op,
        path: path.to_string_lossy().into_owned(),
        path_bytes: path.to_str().is_none().then(|| STANDARD.encode(path.as_bytes())),
        errno: denial.errno.clone(),
        program: known.then(|| denial.program.clone()),
        pid: known.then_some(denial.pid),
        count: denial.count,
        evidence: "observed".to_owned(),
    }
}
