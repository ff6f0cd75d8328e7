//! What is asked of somebody: what happened, what would run, what would be looser and what stays.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringfence_backend::{Door, HOST_TEMP, PinnedPath, Require, SandboxExecutionPolicy, Temp};
use std::os::unix::ffi::OsStrExt;

use super::Looked;
use crate::approval::{Question, Refused};
use crate::config::Looseness;
use crate::policy::Difference;
use crate::runs::{KeptDenial, KeptInput, KeptOutcome, KeptRun};

/// The question about one retry.
pub(super) fn question(
    kept: &KeptRun,
    policy: &SandboxExecutionPolicy,
    difference: &Difference,
    looked: &Looked,
    env: &[(OsString, OsString)],
    asker: &str,
    justification: &str,
) -> Question {
    Question {
        run: kept.run.clone(),
        session: kept.policy.session.clone(),
        asker: asker.to_owned(),
        argv: looked.binding.argv.clone(),
        executable: looked.binding.executable.path.clone(),
        executable_changed: kept.executable.as_ref().map(|before| *before != looked.program),
        workdir: looked.binding.workdir.path.clone(),
        difference: difference.to_string().lines().map(str::to_owned).collect(),
        difference_data: difference.document(),
        looseness: match difference.mode {
            Some((_, to)) if !to.confines() => Looseness::FullAccess,
            Some(_) => Looseness::Mode,
            None => Looseness::ExtraRoots,
        },
        mode: policy.mode(),
        // Full access opens whatever a rule may name.
        opens: match difference.mode {
            Some((_, to)) if !to.confines() => vec![PathBuf::from("/")],
            _ => difference.opened.clone(),
        },
        keeps: keeps(policy, difference),
        denials: kept.outcome.denials.iter().map(refused).collect(),
        denials_omitted: Some(kept.outcome.omitted),
        justification: justification.to_owned(),
        notes: notes(kept, env),
    }
}

/// What cannot be seen in the words of the command.
fn notes(kept: &KeptRun, env: &[(OsString, OsString)]) -> Vec<String> {
    let mut notes = vec![first_attempt(&kept.outcome)];
    if kept.approval.is_some() {
        notes.push(
            "that run was approved as a looser one itself: what was opened for it would be open again".to_owned(),
        );
    }
    notes.extend(match &kept.input {
        KeptInput::Nothing | KeptInput::Unknown => None,
        KeptInput::Callers => {
            Some("what it reads on standard input comes from whoever asks, and nobody has seen it".to_owned())
        }
        KeptInput::File { state } => Some(format!(
            "it reads {} on standard input",
            path_in_quotes(state.file.path())
        )),
        KeptInput::Bytes { .. } => Some("it reads the same on standard input as the first run did".to_owned()),
    });
    let steering: Vec<_> = env.iter().map(|(name, _)| name).filter(|name| steers(name)).collect();
    if !steering.is_empty() {
        let names: Vec<_> = steering.iter().map(|name| name.to_string_lossy()).collect();
        notes.push(format!(
            "its environment has {}, which can make a program run something else",
            names.join(", ")
        ));
    }
    notes
}

/// Whether a variable of this name makes common programs load or run what it names.
fn steers(name: &OsStr) -> bool {
    const BEGINNINGS: [&str; 4] = ["LD_", "DYLD_", "GIT_CONFIG", "BASH_FUNC_"];
    const NAMES: [&str; 22] = [
        "BASH_ENV",
        "ENV",
        "PROMPT_COMMAND",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "PERL5LIB",
        "PERL5OPT",
        "RUBYLIB",
        "RUBYOPT",
        "NODE_OPTIONS",
        "NODE_PATH",
        "JAVA_TOOL_OPTIONS",
        "CLASSPATH",
        "GCONV_PATH",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_EXEC_PATH",
        "GIT_EXTERNAL_DIFF",
        "RUSTC_WRAPPER",
        "MAKEFLAGS",
        "GIT_EDITOR",
    ];
    name.to_str()
        .is_some_and(|name| NAMES.contains(&name) || BEGINNINGS.iter().any(|it| name.starts_with(it)))
}

#[allow(
    clippy::unnecessary_debug_formatting,
    reason = "a path may have any characters, and the quotes show where it ends"
)]
fn path_in_quotes(path: &Path) -> String {
    format!("{path:?}")
}

/// What stays closed, in words.
#[allow(
    clippy::unnecessary_debug_formatting,
    reason = "a path may have any characters, and the quotes show where it ends"
)]
fn keeps(policy: &SandboxExecutionPolicy, difference: &Difference) -> Vec<String> {
    if !policy.mode().confines() {
        return vec!["nothing is confined".to_owned()];
    }
    let mut keeps = vec![policy.mode().to_string()];
    // The workspace and the temp area belong to the mode.
    let named = policy.writable().iter().map(PinnedPath::path).filter(|root| {
        *root != policy.workspace_root().path()
            && !HOST_TEMP.iter().any(|temp| *root == Path::new(temp))
            && !difference.opened.iter().any(|opened| opened == root)
    });
    keeps.extend(named.map(|root| format!("{} can be written, as before", path_in_quotes(root))));
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
