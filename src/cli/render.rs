//! The only file that prints.
//!
//! Whatever comes from elsewhere (paths, arguments, what the system says) is shown with its
//! control characters escaped, so that no name of a file can drive the reader's terminal.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, Write as _};

use ringfence::{Enforcement, Error, RunReport};

use super::doctor::Findings;
use super::dry_run::{DryRun, left_open};

/// Text that is safe to print on one line.
pub(crate) fn visible(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        // Besides control characters: separators of lines, and what turns the direction of text.
        let steers =
            matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        if c.is_control() || steers {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// A path or an argument that is safe to print on one line.
pub(crate) fn shown(text: impl AsRef<OsStr>) -> String {
    visible(&text.as_ref().to_string_lossy())
}

/// Several of them, between commas.
pub(crate) fn listed<T: AsRef<OsStr>>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Prints a document on stdout, as it is.
pub(crate) fn document(line: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line)?;
    out.flush()
}

/// Says on stderr that something went wrong beside the run.
pub(crate) fn trouble(text: &str) {
    to_stderr(&format!("ringfence: {}\n", visible(text)));
}

/// Says on stderr why no command ran.
pub(crate) fn error(error: &Error) {
    to_stderr(&error_text(error));
}

fn error_text(error: &Error) -> String {
    // The code's stable spelling is the one of the documents.
    let code = serde_json::to_string(&error.code()).unwrap_or_default();
    let mut text = format!(
        "ringfence: [{}] {}\n",
        code.trim_matches('"'),
        visible(&error.to_string())
    );
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
    to_stderr(&notes_text(report));
}

fn notes_text(report: &RunReport) -> String {
    let mut text = String::new();
    let mut say = |line: &str| {
        let _ = writeln!(text, "ringfence: {line}");
    };
    if let Some(enforcement @ Enforcement::Partial { .. }) = &report.sandbox.enforcement {
        let open: Vec<_> = left_open(enforcement).iter().map(|effect| effect.word()).collect();
        say(&format!(
            "this host enforces {} in part; not governed: {}",
            report.sandbox.mode,
            open.join(", ")
        ));
    }
    if report.sandbox.denied.verdict() == Some(true) {
        say(&format!(
            "{} refused a change that the command tried to make",
            report.sandbox.mode
        ));
    }
    if report.timed_out {
        let limit = report
            .timeout_ms
            .map(|ms| format!(" of {}", milliseconds(ms)))
            .unwrap_or_default();
        say(&format!("the command was stopped: its time limit{limit} had passed"));
    }
    if report.aborted {
        say("the command was stopped, because Ringfence was told to stop");
    }
    if let Some(survivors) = report.sandbox.survivors.filter(|survivors| survivors.found > 0) {
        let left = survivors.found.saturating_sub(survivors.killed);
        let were = if survivors.found == 1 {
            "process was"
        } else {
            "processes were"
        };
        say(&format!(
            "{} {were} still running when the command ended, and {} killed",
            survivors.found, survivors.killed
        ));
        if left > 0 {
            say(&format!("{left} of them could not be killed and may still run"));
        }
    }
    text
}

/// Prints in words what a run would do.
pub(crate) fn dry_run(plan: &DryRun<'_>) {
    let _ = document(dry_run_text(plan).as_bytes());
}

fn dry_run_text(plan: &DryRun<'_>) -> String {
    let mut rows = Rows::default();
    let argv: Vec<_> = plan.command.argv.iter().map(|word| quoted(word)).collect();
    rows.row("command", &argv.join(" "));
    rows.row("starts in", &shown(&plan.command.workdir));
    rows.row("mode", plan.policy.mode.name());
    rows.row("workspace", &visible(&plan.policy.workspace_root));
    if plan.policy.mode.confines() {
        let writable = if plan.policy.writable.is_empty() {
            "nothing".to_owned()
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
    if !plan.command.withheld.is_empty() {
        rows.row("withheld", &listed(plan.command.withheld));
    }
    for (number, step) in (1..).zip(&plan.steps) {
        rows.row(if number == 1 { "steps" } else { "" }, &format!("{number}. {step}"));
    }
    rows.text + "\nNothing was run.\n"
}

/// Prints in words what this host can confine.
pub(crate) fn doctor(findings: &Findings) {
    let _ = document(doctor_text(findings).as_bytes());
}

fn doctor_text(findings: &Findings) -> String {
    let mut rows = Rows::default();
    rows.text.push_str("Layers\n");
    for layer in &findings.layers {
        let state = match layer.available {
            Some(true) => "yes",
            Some(false) => "no",
            None => "not tried",
        };
        let detail = layer
            .detail
            .as_deref()
            .map(|detail| format!(" ({})", visible(detail)))
            .unwrap_or_default();
        rows.row(&format!("  {}", layer.layer), &format!("{state}{detail}"));
        rows.advice(layer.advice);
    }
    rows.text.push_str("\nBackends\n");
    for backend in &findings.backends {
        let state = if backend.usable {
            "usable".to_owned()
        } else {
            "not usable".to_owned()
        };
        let reason = backend
            .reason
            .as_deref()
            .map(|reason| format!(": {}", visible(reason)))
            .unwrap_or_default();
        rows.row(&format!("  {}", backend.backend), &format!("{state}{reason}"));
    }
    rows.text.push_str("\nModes\n");
    for mode in &findings.modes {
        let open: Vec<_> = mode.ungoverned.iter().map(|effect| effect.word()).collect();
        let detail = match (mode.enforcement, &mode.reason) {
            (Some(enforcement), _) if open.is_empty() => format!("{enforcement} enforcement"),
            (Some(enforcement), _) => format!("{enforcement} enforcement; not governed: {}", open.join(", ")),
            (None, Some(reason)) => visible(reason),
            (None, None) => "nothing is confined".to_owned(),
        };
        rows.row(&format!("  {}", mode.mode), &detail);
    }
    rows.text
}

/// A table of two columns.
#[derive(Default)]
struct Rows {
    text: String,
}

impl Rows {
    const WIDTH: usize = 20;

    fn row(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.text, "{name:width$} {value}", width = Self::WIDTH);
    }

    fn advice(&mut self, advice: Option<&str>) {
        if let Some(advice) = advice {
            self.row("", &format!("-> {}", visible(advice)));
        }
    }
}

/// The word that documents use for a value.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value)
        .unwrap_or_default()
        .trim_matches('"')
        .to_owned()
}

/// An argument as it could be typed to a shell.
fn quoted(argument: &OsStr) -> String {
    let text = shown(argument);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// A length of time, in the unit that suits it.
fn milliseconds(ms: u64) -> String {
    match ms {
        ms if ms % 60_000 == 0 && ms > 0 => format!("{} min", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}

/// There is nobody to tell when stderr is closed.
fn to_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use ringfence::facts::{Containment, Survivors};
    use ringfence::{BackendId, Denied, Effect, Exit, SandboxFacts, SandboxMode};

    use super::*;

    /// A report of a run in which all went well.
    pub(crate) fn report() -> RunReport {
        RunReport {
            run_id: "run".to_owned(),
            argv: vec!["true".into()],
            workdir: "/w".into(),
            session: None,
            exit: Exit::Code(0),
            timed_out: false,
            aborted: false,
            timeout_ms: None,
            duration_ms: 1,
            stdout: None,
            stderr: None,
            sandbox: SandboxFacts {
                mode: SandboxMode::WorkspaceWrite,
                denied: Denied::Inferred(false),
                enforcement: Some(Enforcement::Full),
                runner_failed: false,
                backend: BackendId::Landlock,
                not_confined: Vec::new(),
                survivors: None,
                containment: Containment::ProcessGroup,
            },
        }
    }

    #[test]
    fn control_characters_are_shown_and_not_sent() {
        assert_eq!(visible("a\u{1b}[2Jb\nc\r\u{7f}\u{9b}"), r"a\u{1b}[2Jb\nc\r\u{7f}\u{9b}");
        assert_eq!(visible("x\u{202e}gpj"), r"x\u{202e}gpj");
        assert_eq!(visible("naïve 文件 \\n"), "naïve 文件 \\n");
        assert_eq!(shown(OsString::from_vec(b"a\xff\x1b".to_vec())), "a\u{fffd}\\u{1b}");
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

    #[test]
    fn nothing_is_said_when_nothing_happened() {
        assert_eq!(notes_text(&report()), "");
        let signalled = RunReport {
            exit: Exit::Signal(9),
            ..report()
        };
        assert_eq!(notes_text(&signalled), "", "the shell tells that by itself");
    }

    #[test]
    fn partial_enforcement_names_what_is_open_in_one_line() {
        let mut partial = report();
        partial.sandbox.enforcement = Some(Enforcement::Partial {
            ungoverned: [Effect::Metadata, Effect::Truncate].into(),
        });
        let text = notes_text(&partial);
        assert_eq!(text.lines().count(), 1);
        assert!(text.contains("truncate") && text.contains("metadata"), "{text}");
    }

    #[test]
    fn what_happened_is_said_and_nothing_suggests_less_confinement() {
        let mut eventful = RunReport {
            timed_out: true,
            timeout_ms: Some(1500),
            ..report()
        };
        eventful.sandbox.denied = Denied::Inferred(true);
        eventful.sandbox.survivors = Some(Survivors { found: 3, killed: 2 });
        let text = notes_text(&eventful);
        for word in ["refused", "1500 ms", "3 processes", "2 killed", "1 of them"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!text.contains("danger"), "{text}");
        assert!(
            notes_text(&RunReport {
                aborted: true,
                ..report()
            })
            .contains("told to stop")
        );
    }

    #[test]
    fn lengths_of_time_are_said_in_their_own_unit() {
        let said: Vec<_> = [120_000, 90_000, 1500, 0].into_iter().map(milliseconds).collect();
        assert_eq!(said, ["2 min", "90 s", "1500 ms", "0 s"]);
    }

    #[test]
    fn arguments_are_shown_as_one_would_type_them() {
        let typed: Vec<_> = ["make", "a b", "", "it's", "--x=1"]
            .iter()
            .map(|word| quoted(word.as_ref()))
            .collect();
        assert_eq!(typed, ["make", "'a b'", "''", r"'it'\''s'", "--x=1"]);
    }
}
