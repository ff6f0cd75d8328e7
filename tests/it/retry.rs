//! One looser run of a finished one: what it may do, what it is refused for, and that it happens once.

mod binding;
mod crowds;
mod refused;
mod runs;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use ringfence::SandboxMode::WorkspaceWrite;
use serde_json::Value;

use crate::config::of_the_user;
use crate::support::{Case, Outcome, World};

/// A hook that says yes to whatever it is asked.
const YES: &str = r#"print(json.dumps({"decision": "allow-once", "digest": asked["digest"], "by": "a test"}))"#;
/// A hook that says no.
const NO: &str =
    r#"print(json.dumps({"decision": "reject", "digest": asked["digest"], "reason": "use the fixture instead"}))"#;

/// Deploys a program that answers; what it does is said in Python, with the request in `asked`.
fn deploy_hook(world: &World, does: &str, more: &str) -> PathBuf {
    let hook = world.home().join("hook");
    let text =
        format!("#!/usr/bin/python3 -B\nimport json, os, subprocess, sys\nasked = json.load(sys.stdin)\n{does}\n");
    fs::write(&hook, text).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let approval = format!(
        "[approval]\nanswerers = [\"hook\"]\nhook = [{:?}]\n{more}",
        hook.to_str().unwrap()
    );
    of_the_user(world, &approval);
    hook
}

/// Runs a text in `workspace-write`, and gives the name of the run.
fn finished(world: &World, text: &str) -> String {
    let report = Case::new(WorkspaceWrite).shell(text).run_in(world);
    report.field("/runId").as_str().unwrap().to_owned()
}

/// `ringfence retry`, not yet started.
fn retry_command(world: &World, run: &str, options: &[&str]) -> Command {
    let mut command = world.command(world.program());
    command.args(["retry", run, "--json"]);
    if !options.contains(&"--justification") {
        command.args(["--justification", "the test needs it"]);
    }
    let options = options.iter().map(|word| world.expand(word.as_ref()));
    command.args(options);
    command
}

/// Asks for a looser run, and gives the outcome and the document.
fn retry(world: &World, run: &str, options: &[&str]) -> (Outcome, Value) {
    let outcome = world.outcome(retry_command(world, run, options));
    eprintln!("{outcome}");
    outcome.assert_no_panic();
    let document = serde_json::from_str(&outcome.stdout()).unwrap_or_else(|error| panic!("{error}: {outcome}"));
    (outcome, document)
}

/// Asserts that nothing ran, with this exit status, code and detail.
fn assert_refused((outcome, document): &(Outcome, Value), status: i32, code: &str, detail: Option<&str>) {
    assert_eq!(outcome.status(), status, "{outcome}");
    assert_eq!(document["error"]["code"], code, "{outcome}");
    assert_eq!(document["error"]["detail"].as_str(), detail, "{outcome}");
    assert!(
        !document["error"]["hint"].as_str().unwrap_or_default().is_empty(),
        "{outcome}"
    );
}

/// The records of the trail, in their order, once it was verified.
fn trail(world: &World) -> Vec<Value> {
    let mut command = world.command(world.program());
    command.args(["audit", "verify", "--json"]);
    let verified = world.outcome(command);
    assert_eq!(verified.status(), 0, "{verified}");
    let mut segments: Vec<_> = fs::read_dir(world.state().join("audit"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    segments.sort();
    let text: String = segments.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The records of one type.
fn of_type<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["type"] == kind).collect()
}
