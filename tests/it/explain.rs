//! What is told of a run before it takes place.

use ringfence::SandboxMode::WorkspaceWrite;

use serde_json::Value;

use crate::support::{Case, Outcome, World, for_each_user};

/// What `explain` says with these words, in this environment.
fn explain(world: &World, words: &[&str], env: &[(&str, &str)]) -> Outcome {
    let mut command = world.command(world.program());
    command.arg("explain").args(words).envs(env.iter().copied());
    let outcome = world.outcome(command);
    eprintln!("{outcome}");
    outcome.assert_no_panic();
    outcome
}

fn document(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout()).unwrap_or_else(|error| panic!("no document: {error}\n{outcome}"))
}

#[test]
fn each_backend_says_what_it_would_do_and_nothing_is_run() {
    for_each_user(|world| {
        world.prepare("mkdir $W/keep");
        let options = ["--json", "-m", "workspace-write", "--protect", "keep"];
        let outcome = explain(world, &[&options[..], &["-c", "echo ran > ran"]].concat(), &[]);
        let document = document(&outcome);
        assert!(!world.inside("ran").exists());
        let backends = document["backends"].as_array().expect("a list of backends");
        let names: Vec<_> = backends.iter().map(|it| it["backend"].as_str().unwrap()).collect();
        assert!(names.contains(&"landlock") && names.contains(&"bwrap"), "{names:?}");
        for backend in backends.iter().filter(|it| it["backend"] != "seatbelt") {
            assert_eq!(backend["enforcement"], "full", "{backend}");
            let steps = backend["steps"].to_string();
            let keep = world.inside("keep");
            assert!(steps.contains(&format!("make {} read-only", keep.display())), "{steps}");
        }
        let serving: Vec<_> = backends.iter().filter(|it| it["serves"] == true).collect();
        assert_eq!(serving.len(), 1);
        assert_eq!(serving[0]["backend"], document["backend"]);
        let bwrap = backends.iter().find(|it| it["backend"] == "bwrap").unwrap();
        let options = bwrap["rendered"].to_string();
        let protected = format!("--ro-bind {0} {0}", world.inside("keep").display());
        assert!(
            options.contains("--ro-bind / /") && options.contains(&protected),
            "{options}"
        );
    });
}

#[test]
fn variables_that_are_withheld_are_named_and_their_values_are_not() {
    for_each_user(|world| {
        let outcome = explain(world, &[], &[("MY_TOKEN", "hunter2")]);
        assert!(outcome.stdout().contains("MY_TOKEN"), "{outcome}");
        assert!(!outcome.stdout().contains("hunter2"), "{outcome}");
        assert!(outcome.stdout().contains("Nothing was run."), "{outcome}");
    });
}

#[test]
fn a_run_that_no_backend_can_serve_is_unavailable_with_every_reason() {
    for_each_user(|world| {
        let outcome = explain(world, &["--json", "--backend", "none", "true"], &[]);
        assert_eq!(outcome.status(), 5, "{outcome}");
        assert_eq!(document(&outcome)["error"]["code"], "SANDBOX_UNAVAILABLE");
    });
}

#[test]
fn a_run_after_it_goes_as_was_said() {
    Case::new(WorkspaceWrite)
        .options(["--backend", "bwrap"])
        .shell("echo ran > ran")
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_full();
            assert_eq!(report.field("/sandbox/backend"), "bwrap");
            assert!(world.inside("ran").exists());
        });
}
