//! One run in another: only one can watch, and each says what it knows.

use ringfence::SandboxMode::WorkspaceWrite;
use serde_json::Value;

use super::{WATCHED, attempts, watched};
use crate::support::{Case, World, for_each_user, names, text};

/// The report that an inner run left in the workspace.
fn inner(world: &World) -> Value {
    serde_json::from_str(&text(world.inside("inner"))).unwrap()
}

#[test]
fn a_run_inside_a_run_says_that_it_did_not_observe_and_the_outer_one_did() {
    for evidence in WATCHED {
        for_each_user(|world| {
            let script = "\"$BIN\" run --json -m workspace-write -c 'echo x > $OUT/new; echo in > in' > inner; \
                 \"$BIN\" run --json -m workspace-write -c 'exit 0' > quiet; exit 0";
            let report = watched(&Case::new(WorkspaceWrite).shell(script), evidence, world).run_in(world);
            let inner = inner(world);
            assert_ne!(inner["sandbox"]["evidence"], "observed", "{inner:#}");
            assert!(inner["sandbox"].get("denials").is_none(), "{inner:#}");
            assert_eq!(text(world.inside("in")), "in\n");
            assert!(
                attempts(world, &report).contains(&"create out/new".to_owned()),
                "{report}"
            );
            assert_eq!(names(world.beside()), [""; 0]);
        });
    }
}

#[test]
fn a_run_inside_a_run_whose_output_is_not_captured_makes_no_statement() {
    for_each_user(|world| {
        let script = "\"$BIN\" run -m workspace-write --report inner -c 'echo x > $OUT/new'; exit 0";
        let report = watched(&Case::new(WorkspaceWrite).shell(script), "auto", world).run_in(world);
        let inner = inner(world);
        assert_eq!(inner["sandbox"]["evidence"], "unavailable", "{inner:#}");
        assert!(inner["sandbox"]["denied"].is_null(), "{inner:#}");
        report.assert_denied(true);
    });
}

#[test]
fn a_demand_for_strict_evidence_inside_a_run_is_refused() {
    for evidence in WATCHED {
        for_each_user(|world| {
            let script =
                "\"$BIN\" run --json -m workspace-write --evidence strict -c 'echo ran > ran' > inner; echo $?";
            let report = watched(&Case::new(WorkspaceWrite).shell(script), evidence, world).run_in(world);
            assert_eq!(report.stdout(), "125\n");
            let inner = inner(world);
            assert_eq!(inner["error"]["code"], "SANDBOX_UNAVAILABLE", "{inner:#}");
            assert!(!inner["error"]["message"].as_str().unwrap().is_empty(), "{inner:#}");
            assert_eq!(names(world.workspace()), ["inner"], "the command ran");
        });
    }
}
