//! The trail from outside: written by runs, read by the program, and looked at on the disk.

mod confined;
mod places;
mod program;
mod proof;
mod writers;

use std::path::PathBuf;

use ringfence::SandboxMode::WorkspaceWrite;
use serde_json::Value;

use crate::support::{Case, Outcome, Report, World, names};

/// Runs a subcommand of `ringfence audit`.
fn audit(world: &World, words: &[&str]) -> Outcome {
    let mut command = world.command(world.program());
    command
        .arg("audit")
        .args(words.iter().map(|word| world.expand(word.as_ref())));
    let outcome = world.outcome(command);
    eprintln!("{outcome}");
    outcome.assert_no_panic();
    outcome
}

/// Runs a command that is recorded.
fn run(world: &World, script: &str) -> Report {
    Case::new(WorkspaceWrite).shell(script).run_in(world)
}

/// The lines that a subcommand printed, as JSON.
fn objects(outcome: &Outcome) -> Vec<Value> {
    assert_eq!(outcome.status(), 0, "{outcome}");
    outcome
        .stdout()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The one segment of a trail that has not grown large.
fn segment(world: &World) -> PathBuf {
    let directory = world.state().join("audit");
    let mut segments = names(&directory);
    segments.retain(|name| name != "lock");
    assert_eq!(segments.len(), 1, "{segments:?}");
    directory.join(&segments[0])
}
