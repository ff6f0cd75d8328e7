//! Sessions: a directory that never changes, and a mode that holds from one run to the next.

mod commands;
mod confined;
mod crashes;
mod records;
mod runs;
mod state;

use std::ffi::OsStr;

use serde_json::Value;

use crate::support::{Case, Outcome, Report, World, text};

/// What `ringfence session` answers to these words.
pub(crate) fn session<S: AsRef<OsStr>>(world: &World, words: impl IntoIterator<Item = S>) -> Outcome {
    let mut command = world.command(world.program());
    command.arg("session").args(words);
    let outcome = world.outcome(command);
    eprintln!("{outcome}");
    outcome.assert_no_panic();
    outcome
}

/// The same with `--json`: the exit status, and the one document.
pub(crate) fn document(world: &World, words: &[&str]) -> (i32, Value) {
    let outcome = session(world, words.iter().chain(&["--json"]));
    let text = outcome.stdout();
    assert_eq!(text.matches('\n').count(), 1, "one line: {outcome}");
    let document = serde_json::from_str(&text).unwrap_or_else(|error| panic!("no document: {error}\n{outcome}"));
    (outcome.status(), document)
}

/// Makes a session in the workspace.
pub(crate) fn make(world: &World, id: &str, mode: Option<&str>) {
    let mode = mode.map(|mode| ["-m", mode]);
    let outcome = session(world, ["new", "--id", id].iter().chain(mode.iter().flatten()));
    assert_eq!(
        (outcome.status(), outcome.stdout()),
        (0, format!("{id}\n")),
        "{outcome}"
    );
}

/// The session as it is kept.
fn log(world: &World, id: &str) -> String {
    text(world.state().join(format!("sessions/{id}.jsonl")))
}

/// A run in a session.
fn run(id: &str) -> Case {
    Case::without_a_mode().options(["--session", id])
}

/// What a run in a session writes to the workspace, and whether that stands.
fn writes(world: &World, id: &str) -> (Report, bool) {
    let report = run(id).shell("echo x > \"$W/new\"; exit 0").run_in(world);
    let written = world.inside("new").exists();
    if written {
        std::fs::remove_file(world.inside("new")).unwrap();
    }
    (report, written)
}
