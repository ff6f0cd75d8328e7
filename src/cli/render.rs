//! The only file that prints. What it prints is made safe for a terminal by `text`.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use ringfence::approval::{NotAnswered, Request};
use ringfence::facts::LongCommand;
use ringfence::{Error, RunReport};

use super::doctor::Findings;
use super::dry_run::DryRun;
use super::explanation::Explained;
use super::text::{Rows, listed, milliseconds, quoted, shown, visible, word};

/// Prints a document on stdout, as it is.
pub(crate) fn document(line: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line)?;
    out.flush()
}

/// Says on stderr that a request waits, and how it is answered.
pub(crate) fn waits(request: &Request) {
    to_stderr(&format!(
        "ringfence: waiting until {} for an answer to {}; `ringfence approve {}` shows it and asks\n",
        visible(request.expires_at()),
        visible(request.id()),
        visible(request.code()),
    ));
}

/// Says on stderr that something went wrong beside the run.
pub(crate) fn trouble(text: &str) {
    to_stderr(&format!("ringfence: {}\n", visible(text)));
}

/// Says on stderr what to do about it.
pub(crate) fn hint(text: &str) {
    to_stderr(&format!("hint: {}\n", visible(text)));
}

/// Says on stderr why no command ran.
pub(crate) fn error(error: &Error) {
    to_stderr(&error_text(error));
}

fn error_text(error: &Error) -> String {
    let mut text = format!("ringfence: [{}] {}\n", word(&error.code()), visible(&error.to_string()));
    if let Some(hint) = error.hint() {
        let _ = writeln!(text, "hint: {}", visible(&hint));
    }
    text
}

/// Says on stderr what was wrong with the command line.
pub(crate) fn usage(error: &clap::Error) {
    to_stderr(
        &error
            .render()
            .to_string()
            .lines()
            .map(|line| visible(line) + "\n")
            .collect::<String>(),
    );
}

/// Prints the help or the version on stdout.
pub(crate) fn help(answer: &clap::Error) {
    let _ = answer.print();
}

/// Says on stderr what happened in a run, when something did.
pub(crate) fn notes(report: &RunReport) {
    to_stderr(&super::notes::text(report));
}

/// Prints in words what a run would do.
pub(crate) fn dry_run(plan: &DryRun<'_>) {
    let _ = document(dry_run_text(plan).as_bytes());
}

/// Prints in words what each backend would do.
pub(crate) fn explanation(explained: &Explained<'_>) {
    // The steps come with each backend.
    let mut text = rows_of_run(&explained.run).text;
    for (backend, considered) in explained.backends.iter().zip(explained.considered) {
        text.push('\n');
        text.push_str(&super::explanation::text(backend, considered));
    }
    let _ = document((text + "\nNothing was run.\n").as_bytes());
}

fn dry_run_text(plan: &DryRun<'_>) -> String {
    let mut rows = rows_of_run(plan);
    for (number, step) in (1..).zip(&plan.steps) {
        rows.row(if number == 1 { "steps" } else { "" }, &format!("{number}. {step}"));
    }
    rows.text + "\nNothing was run.\n"
}

fn rows_of_run(plan: &DryRun<'_>) -> Rows {
    let mut rows = Rows::default();
    let argv: Vec<_> = plan.command.argv.iter().map(|word| quoted(word)).collect();
    rows.row("command", &argv.join(" "));
    if let Some(long) = plan.command.long {
        let LongCommand { bytes, shown } = long;
        rows.row("", &format!("(the first {shown} of {bytes} bytes)"));
    }
    rows.row("starts in", &shown(&plan.command.workdir));
    if let Some(session) = &plan.policy.session {
        rows.row("session", &visible(session));
    }
    let from = visible(&plan.policy.mode_from);
    rows.row("mode", &format!("{}, from {from}", plan.policy.mode));
    if let Some(from) = &plan.policy.ceiling_from {
        rows.row("ceiling", &format!("{}, from {}", plan.policy.ceiling, visible(from)));
    }
    rows.row("workspace", &visible(&plan.policy.workspace_root));
    if plan.policy.mode.confines() {
        let writable = if plan.policy.writable.is_empty() {
            "nothing on the host".to_owned()
        } else {
            listed(&plan.policy.writable)
        };
        rows.row("may change", &writable);
    } else {
        rows.row("may change", "everything");
    }
    rows.row("temp area", word(&plan.policy.temp).as_str());
    rows.row("backend", plan.backend.name());
    if let Some(enforcement) = plan.enforcement {
        let open: Vec<_> = plan.ungoverned.iter().map(|effect| effect.word()).collect();
        let but = if open.is_empty() {
            String::new()
        } else {
            format!("; not governed: {}", open.join(", "))
        };
        rows.row("enforcement", &format!("{enforcement}{but}"));
    }
    rows.row(
        "not confined",
        &plan.not_confined.iter().map(word).collect::<Vec<_>>().join(", "),
    );
    let limit = plan.command.timeout.map_or_else(
        || "none".to_owned(),
        |limit| milliseconds(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
    );
    rows.row("time limit", &limit);
    rows.row("recorded", plan.policy.audit);
    if !plan.limits.is_empty() {
        let limits: Vec<_> = plan
            .limits
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        rows.row("limits", &limits.join(", "));
    }
    if !plan.command.withheld.is_empty() {
        rows.row("withheld", &listed(plan.command.withheld));
    }
    rows
}

/// Prints what is told of sessions, in words.
pub(crate) fn sessions(text: &str) {
    let _ = document(text.as_bytes());
}

/// Prints what is told of requests, in words.
pub(crate) fn requests(text: &str) {
    let _ = document(text.as_bytes());
}

/// Says on stderr why a request was not shown or answered.
pub(crate) fn not_answered(refusal: &NotAnswered) {
    if let NotAnswered::Failed(failed) = refusal {
        return error(failed);
    }
    let mut text = format!("ringfence: {}\n", visible(&refusal.to_string()));
    if let Some(hint) = refusal.hint() {
        let _ = writeln!(text, "hint: {}", visible(hint));
    }
    to_stderr(&text);
}

/// Prints in words what this host can confine.
pub(crate) fn doctor(findings: &Findings) {
    let _ = document(super::doctor::text(findings).as_bytes());
}

/// There is nobody to tell when stderr is closed.
fn to_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    use ringfence::Containment;
    use ringfence::facts::{Loosening, Survivors};
    use ringfence::{BackendId, Denied, Enforcement, Exit, SandboxFacts, SandboxMode};

    use super::*;

    /// A report of a run in which all went well.
    pub(crate) fn report() -> RunReport {
        RunReport {
            run_id: "run".to_owned(),
            command: None,
            argv: vec!["true".into()],
            workdir: "/w".into(),
            session: None,
            exit: Exit::Code(0),
            timed_out: false,
            aborted: false,
            limit: None,
            timeout_ms: None,
            duration_ms: 1,
            stdout: None,
            stderr: None,
            merged: false,
            recorded: ringfence::facts::Recorded::NotAsked,
            sandbox: SandboxFacts {
                mode: SandboxMode::WorkspaceWrite,
                denied: Denied::Inferred {
                    denied: false,
                    why: String::new(),
                },
                enforcement: Some(Enforcement::Full),
                runner_failed: false,
                backend: BackendId::Landlock,
                not_confined: Vec::new(),
                survivors: Some(Survivors::default()),
                containment: Containment::PidNamespace,
                loosening: Loosening {
                    protected: Vec::new(),
                    mode: SandboxMode::WorkspaceWrite,
                    workspace_root: "/w".into(),
                },
            },
        }
    }

    #[test]
    fn an_error_shows_its_code_its_message_and_the_way_out() {
        let text = error_text(&Error::CommandNotFound {
            program: "no\u{1b}such".into(),
        });
        assert!(
            text.starts_with("ringfence: [COMMAND_NOT_FOUND] the program "),
            "{text}"
        );
        assert!(text.contains("\nhint: "), "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn a_hostile_reason_stays_on_its_line() {
        let error = Error::Input {
            field: "--report".to_owned(),
            value: "x".into(),
            reason: "bad\nringfence: all is well".to_owned(),
            hint: "none\r\nat all".to_owned(),
        };
        assert_eq!(error_text(&error).lines().count(), 2);
    }
}
