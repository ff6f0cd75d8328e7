//! An approval is for one exact command: whatever changes between the question and the start is found out.

use std::fs;

use ringfence::SandboxMode::WorkspaceWrite;

use super::{YES, assert_refused, deploy_hook, of_type, retry, trail};
use crate::support::{Case, World, for_each_user};

/// Puts a script into the workspace that touches a file outside, and runs it.
fn tool(world: &World) -> String {
    world.prepare("printf '#!/bin/sh\\ntouch \"$OUT/new\"\\n' > tool; chmod 755 tool");
    let report = Case::new(WorkspaceWrite).argv(["./tool"]).run_in(world);
    report.field("/runId").as_str().unwrap().to_owned()
}

#[test]
fn what_changes_while_somebody_is_asked_is_found_and_nothing_runs() {
    for (does, detail) in [
        ("open(W + '/tool', 'a').write('\\n')", "executable-changed"),
        (
            "os.rename(W + '/tool', W + '/old'); import shutil; shutil.copy2(W + '/old', W + '/tool')",
            "executable-changed",
        ),
        (
            "st = os.stat(W + '/tool'); f = open(W + '/tool', 'r+'); f.seek(2); f.write('/bin/cp'); f.close(); os.utime(W + '/tool', ns=(st.st_atime_ns, st.st_mtime_ns))",
            "executable-changed",
        ),
    ] {
        for_each_user(|world| {
            let prepare = format!("W = {:?}\n{does}\n{YES}", world.workspace().to_str().unwrap());
            deploy_hook(world, &prepare, "");
            let run = tool(world);
            assert_refused(
                &retry(world, &run, &["--write", "$OUT"]),
                2,
                "APPROVAL_CHANGED",
                Some(detail),
            );
            assert!(!world.outside("new").exists());
            assert!(of_type(&trail(world), "approval.consumed").is_empty());
        });
    }
}

#[test]
fn a_program_that_is_gone_or_a_directory_that_is_another_runs_nothing() {
    for does in [
        "os.unlink(W + '/tool')",
        "os.rename(W + '/sub', W + '/old'); os.mkdir(W + '/sub')",
    ] {
        for_each_user(|world| {
            let prepare = format!("W = {:?}\n{does}\n{YES}", world.workspace().to_str().unwrap());
            world.prepare("mkdir sub");
            deploy_hook(world, &prepare, "");
            tool(world);
            let report = Case::new(WorkspaceWrite)
                .options(["--workdir", "sub"])
                .argv(["../tool"])
                .run_in(world);
            let run = report.field("/runId").as_str().unwrap().to_owned();
            let (outcome, document) = retry(world, &run, &["--write", "$OUT"]);
            assert_ne!(outcome.status(), 0, "{outcome}");
            assert!(document["error"]["code"].is_string(), "{outcome}");
            assert!(!world.outside("new").exists());
        });
    }
}

#[test]
fn what_is_not_as_it_was_in_the_first_run_is_named_before_anybody_is_asked() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        fs::write(world.inside("input"), "one").unwrap();
        let case = Case::new(WorkspaceWrite).options(["--env", "GIVEN=secret words", "--stdin", "$W/input"]);
        let report = case.shell("touch $OUT/new").run_in(world);
        let run = report.field("/runId").as_str().unwrap().to_owned();
        let refused = retry(world, &run, &["--write", "$OUT"]);
        assert_refused(&refused, 2, "NOT_STRICTLY_LOOSER", None);
        assert!(refused.0.stdout().contains("GIVEN") && !refused.0.stdout().contains("secret words"));
        fs::write(world.inside("input"), "two").unwrap();
        let refused = retry(world, &run, &["--write", "$OUT", "--env", "GIVEN=secret words"]);
        assert_refused(&refused, 2, "NOT_STRICTLY_LOOSER", None);
        assert!(of_type(&trail(world), "approval.asked").is_empty());
        assert!(!world.outside("new").exists());
    });
}

#[test]
fn input_that_cannot_be_told_from_another_is_not_taken_from_whoever_asks() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        let mut command = world.command("bash");
        command.args([
            "-c",
            "\"$BIN\" run --json -m workspace-write --stdin <(echo first) -- bash -c 'cat > read'",
        ]);
        let outcome = world.outcome(command);
        assert_eq!(
            fs::read_to_string(world.inside("read")).unwrap(),
            "first\n",
            "{outcome}"
        );
        let report: serde_json::Value = serde_json::from_str(&outcome.stdout()).unwrap();
        let run = report["runId"].as_str().unwrap();
        assert_refused(&retry(world, run, &["--write", "$OUT"]), 2, "NOT_STRICTLY_LOOSER", None);
        assert_eq!(fs::read_to_string(world.inside("read")).unwrap(), "first\n");
        assert!(of_type(&trail(world), "approval.asked").is_empty());
    });
}

#[test]
fn a_workspace_that_was_replaced_is_another_one() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        world.prepare("mkdir sub");
        let report = Case::new(WorkspaceWrite)
            .options(["--workspace", "$W/sub"])
            .shell("touch $OUT/new")
            .run_in(world);
        let run = report.field("/runId").as_str().unwrap().to_owned();
        world.prepare("mv sub old; mkdir sub");
        assert_refused(
            &retry(world, &run, &["--write", "$OUT"]),
            2,
            "NOT_STRICTLY_LOOSER",
            None,
        );
    });
}

#[test]
fn no_value_of_the_environment_is_written_anywhere() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        let report = Case::new(WorkspaceWrite)
            .options(["--env", "GIVEN=hunter2hunter2"])
            .env("ALSO", "swordfish99")
            .shell("touch $OUT/new")
            .run_in(world);
        let run = report.field("/runId").as_str().unwrap().to_owned();
        let mut command = super::retry_command(world, &run, &["--write", "$OUT", "--env", "GIVEN=hunter2hunter2"]);
        command.env("ALSO", "swordfish99");
        assert_eq!(world.outcome(command).status(), 0);
        let found = world.prepare("grep -rlaE 'hunter2hunter2|swordfish99' $RINGFENCE_STATE_DIR || true");
        assert_eq!(found, "");
    });
}

#[test]
fn a_directory_that_was_replaced_before_the_question_is_not_the_one_of_the_first_run() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        world.prepare("mkdir sub other");
        let case = Case::new(WorkspaceWrite).options(["--workdir", "sub"]);
        let report = case.shell("touch $OUT/new").run_in(world);
        let run = report.field("/runId").as_str().unwrap().to_owned();
        world.prepare("mv sub gone; mv other sub");
        assert_refused(
            &retry(world, &run, &["--write", "$OUT"]),
            2,
            "NOT_STRICTLY_LOOSER",
            None,
        );
        assert!(of_type(&trail(world), "approval.asked").is_empty());
        assert!(!world.outside("new").exists());
    });
}

#[test]
fn an_input_file_with_another_content_and_the_same_times_is_found_out() {
    for_each_user(|world| {
        let change = "st = os.stat(W + '/input'); f = open(W + '/input', 'r+'); f.write('touch $OUT/bad\\n'); f.close(); \
            os.utime(W + '/input', ns=(st.st_atime_ns, st.st_mtime_ns))";
        let does = format!("W = {:?}\n{change}\n{YES}", world.workspace().to_str().unwrap());
        deploy_hook(world, &does, "");
        world.prepare("echo 'touch $OUT/new' > input");
        let case = Case::new(WorkspaceWrite).options(["--stdin", "$W/input"]);
        let report = case.argv(["sh"]).run_in(world);
        let run = report.field("/runId").as_str().unwrap().to_owned();
        let refused = retry(world, &run, &["--write", "$OUT"]);
        assert_refused(&refused, 2, "APPROVAL_CHANGED", Some("stdin-changed"));
        assert!(!world.outside("bad").exists() && !world.outside("new").exists());
    });
}

#[test]
fn an_input_file_is_read_again_as_it_was() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        for content in ["touch $OUT/new", ""] {
            fs::write(world.inside("input"), content).unwrap();
            let case = Case::new(WorkspaceWrite).options(["--stdin", "$W/input"]);
            let report = case.argv(["sh"]).run_in(world);
            let run = report.field("/runId").as_str().unwrap().to_owned();
            let (outcome, document) = retry(world, &run, &["--write", "$OUT"]);
            assert_eq!(outcome.status(), 0, "{outcome}");
            assert!(world.outside("new").exists());
            // What came of it can be asked for again, too.
            let again = document["runId"].as_str().unwrap().to_owned();
            let (outcome, _) = retry(world, &again, &["--mode", "danger-full-access"]);
            assert_ne!(outcome.status(), 0, "{outcome}");
            assert!(outcome.stdout().contains("APPROVAL_REJECTED"), "{outcome}");
        }
    });
}

#[test]
fn what_was_changed_in_place_before_the_question_is_told_whatever_its_times_say() {
    for_each_user(|world| {
        let look = format!("assert asked['executableChanged'] is True, asked\n{YES}");
        deploy_hook(world, &look, "");
        world.prepare("echo 'touch $OUT/new' > input");
        let run = tool(world);
        let case = Case::new(WorkspaceWrite).options(["--stdin", "$W/input"]);
        let report = case.argv(["sh"]).run_in(world);
        let with_input = report.field("/runId").as_str().unwrap().to_owned();
        world.prepare(
            "for f in input tool; do touch -r $f times; tr e E < $f > x; cat x > $f; touch -r times $f; done; rm x times",
        );
        let refused = retry(world, &with_input, &["--write", "$OUT"]);
        assert_refused(&refused, 2, "NOT_STRICTLY_LOOSER", None);
        let (_, document) = retry(world, &run, &["--write", "$OUT"]);
        assert_ne!(
            document["error"]["code"], "APPROVAL_UNAVAILABLE",
            "the hook saw that it changed"
        );
    });
}
