//! What a run left behind: its streams, its status, and the document it printed.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use serde_json::Value;

use super::User;

/// How a program ended and what it printed.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// As whom it ran.
    pub(crate) user: User,
    /// What is known of it.
    pub(crate) output: Output,
}

impl Outcome {
    /// Its exit status; a program that died by a signal has failed the test.
    pub(crate) fn status(&self) -> i32 {
        self.output
            .status
            .code()
            .unwrap_or_else(|| panic!("it died by a signal:\n{self}"))
    }

    /// Its standard output, as text.
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// Its standard error, as text.
    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Asserts that Ringfence refused in an orderly way: 125, a sentence that holds each of `words`, no panic.
    pub(crate) fn assert_refused(&self, words: &[&str]) {
        self.assert_no_panic();
        assert_eq!(self.status(), 125, "{self}");
        let said = self.stdout() + &self.stderr();
        for word in words {
            assert!(said.contains(word), "nothing says `{word}`:\n{self}");
        }
    }

    /// Asserts that the program did not panic, in whatever way panics are built to end it.
    pub(crate) fn assert_no_panic(&self) {
        let status = self.output.status;
        let panicked = status.code() == Some(101) || status.signal().is_some() || self.stderr().contains("panicked at");
        assert!(!panicked, "it panicked:\n{self}");
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}, {}", self.user, self.output.status)?;
        writeln!(f, "stdout: {}", self.stdout())?;
        write!(f, "stderr: {}", self.stderr())
    }
}

/// The one document that `run --json` prints.
#[derive(Debug)]
pub(crate) struct Report {
    outcome: Outcome,
    document: Value,
}

impl Report {
    /// Reads the document, and asserts what must hold of every one.
    pub(crate) fn read(outcome: Outcome) -> Self {
        outcome.assert_no_panic();
        let text = outcome.stdout();
        let line = text
            .strip_suffix('\n')
            .unwrap_or_else(|| panic!("no document, or no end of line:\n{outcome}"));
        assert!(
            !line.contains('\n'),
            "the document is on more than one line:\n{outcome}"
        );
        let document: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("no document: {error}\n{outcome}"));
        let report = Self { outcome, document };
        assert_eq!(report.field("/schema"), 1);
        assert_eq!(report.text("/runId").len(), 36, "{report}");
        if report.document.get("error").is_some() {
            assert!(matches!(report.status(), 125..=127), "{report}");
            assert!(!report.text("/error/message").is_empty(), "{report}");
        } else {
            assert_eq!(report.field("/sandbox/runnerFailed"), false, "{report}");
            assert_eq!(
                report.field("/exitCode").is_null(),
                report.field("/signal").is_string(),
                "{report}"
            );
            report.assert_enforcement_is_honest();
        }
        report
    }

    /// `full` goes with nothing left open, `partial` with something; unconfined runs claim neither.
    fn assert_enforcement_is_honest(&self) {
        let open = self
            .document
            .pointer("/sandbox/ungoverned")
            .and_then(Value::as_array)
            .map(Vec::len);
        match self.document.pointer("/sandbox/enforcement").and_then(Value::as_str) {
            Some("full") => assert_eq!(open, Some(0), "{self}"),
            Some("partial") => assert!(open > Some(0), "{self}"),
            None => assert_eq!(self.field("/sandbox/mode"), "danger-full-access", "{self}"),
            Some(other) => panic!("enforcement `{other}`:\n{self}"),
        }
    }

    /// The program's own exit status.
    pub(crate) fn status(&self) -> i32 {
        self.outcome.status()
    }

    /// A field, by JSON pointer; a field that is not there has failed the test.
    pub(crate) fn field(&self, pointer: &str) -> &Value {
        self.document
            .pointer(pointer)
            .unwrap_or_else(|| panic!("no {pointer}:\n{self}"))
    }

    /// Whether the document has a field.
    pub(crate) fn has(&self, pointer: &str) -> bool {
        self.document.pointer(pointer).is_some()
    }

    /// A field of text.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.field(pointer)
            .as_str()
            .unwrap_or_else(|| panic!("{pointer} is no text:\n{self}"))
    }

    /// The command's standard output.
    pub(crate) fn stdout(&self) -> &str {
        self.text("/stdout/text")
    }

    /// The command's standard error.
    pub(crate) fn stderr(&self) -> &str {
        self.text("/stderr/text")
    }

    /// Asserts that the command ran and ended with a status of its own.
    pub(crate) fn assert_exit(&self, code: i32) -> &Self {
        assert_eq!(self.field("/exitCode"), code, "{self}");
        assert_eq!(
            self.status(),
            code,
            "the program passes the command's status on:\n{self}"
        );
        self
    }

    /// Asserts that every file effect was governed.
    pub(crate) fn assert_full(&self) -> &Self {
        assert_eq!(self.field("/sandbox/enforcement"), "full", "{self}");
        self
    }

    /// Asserts that exactly these effects were left open, and named.
    pub(crate) fn assert_partial(&self, ungoverned: &[&str]) -> &Self {
        assert_eq!(self.field("/sandbox/enforcement"), "partial", "{self}");
        assert_eq!(
            self.field("/sandbox/ungoverned"),
            &serde_json::json!(ungoverned),
            "{self}"
        );
        self
    }

    /// Asserts what is said of denials.
    pub(crate) fn assert_denied(&self, denied: bool) -> &Self {
        assert_eq!(self.field("/sandbox/denied"), denied, "{self}");
        self
    }

    /// Asserts that no command ran, for this reason.
    pub(crate) fn assert_error(&self, code: &str) -> &Self {
        assert_eq!(self.field("/error/code"), code, "{self}");
        let status = match code {
            "COMMAND_NOT_FOUND" => 127,
            "COMMAND_NOT_EXECUTABLE" => 126,
            _ => 125,
        };
        assert_eq!(self.status(), status, "{self}");
        self
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:#}", self.document)?;
        write!(f, "{}", self.outcome)
    }
}
