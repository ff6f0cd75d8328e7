//! Links that were planted beforehand, and names that change while a run starts.

use std::fs;
use std::process::Stdio;

use ringfence::SandboxMode::WorkspaceWrite;
use serde_json::Value;

use crate::escapes::{KEEP, untouched};
use crate::support::{Case, World, for_each_user, names, text};

use super::compile;

const STARTS: usize = 120;

/// Exchanges a directory and a link that leads outside for as long as `starts` goes on.
fn while_exchanging(world: &World, starts: impl FnOnce()) {
    compile(world, "cc", "exchange", include_str!("../programs/exchange.c"));
    world.prepare(&format!("{KEEP}; mkdir a; ln -s $OUT l"));
    let mut command = world.command(world.home().join("exchange"));
    let mut exchange = command.args(["a", "l"]).stdin(Stdio::piped()).spawn().unwrap();
    starts();
    assert!(exchange.try_wait().unwrap().is_none(), "it went on all the while");
    drop(exchange.stdin.take());
    assert!(exchange.wait().unwrap().success());
}

const WRITE: &str = "echo x > here; echo x > \"$OUT/new\"; echo x > \"$OUT/f\"; chmod 777 \"$OUT/f\"; exit 0";

#[test]
fn a_workspace_that_is_exchanged_while_runs_start_in_it_lets_nothing_out() {
    for_each_user(|world| {
        while_exchanging(world, || {
            // The directory is entered before its name changes; Ringfence has to learn its name.
            // The shell's own idea of where it is may be wrong by then; the inode is not.
            let script = format!(
                "until cd -P a && ! [ . -ef \"$OUT\" ]; do cd \"$W\"; done 2> /dev/null; \
                 for i in $(seq {STARTS}); do \"$BIN\" run -m workspace-write -c '{WRITE}' 2> /dev/null && echo ran; \
                 if [ -e $OUT/new ] || [ -e $OUT/here ]; then echo OUT; fi; done"
            );
            let mut command = world.command("bash");
            command.args(["-c", &script]);
            let outcome = world.outcome(command);
            assert!(!outcome.stdout().contains("OUT"), "{outcome}");
            assert!(outcome.stdout().contains("ran"), "not one run began: {outcome}");
        });
        untouched(world);
        assert_eq!(names(world.beside()), ["f"]);
    });
}

#[test]
fn a_workspace_named_by_a_path_that_changes_is_one_or_the_other_and_never_both() {
    for_each_user(|world| {
        while_exchanging(world, || {
            let mut began = 0;
            let case = Case::new(WorkspaceWrite).options(["-C", "$W/a"]);
            let case = case.shell("echo x > here; echo x > \"$OUT/new\"; exit 0");
            for _ in 0..STARTS {
                let report = case.run_in(world);
                if report.has("/error") {
                    assert!(names(world.beside()) == ["f"], "{report}");
                    continue;
                }
                if report.text("/workdir") == world.beside().to_str().unwrap() {
                    // The link was followed, as it says; then this is the workspace.
                    fs::remove_file(world.outside("new")).unwrap();
                    fs::remove_file(world.outside("here")).unwrap();
                } else {
                    began += 1;
                }
                assert_eq!(names(world.beside()), ["f"], "{report}");
            }
            assert!(began > 0, "not one run began in the directory");
        });
        untouched(world);
    });
}

#[test]
fn a_report_is_not_written_through_a_planted_link() {
    for_each_user(|world| {
        world.prepare(&format!("{KEEP}; mkdir d"));
        let plant = "ln -s \"$OUT/f\" final; ln -s \"$OUT\" way; ln -s \"$OUT/new\" dangling; ln -s ../way d/deeper";
        Case::new(WorkspaceWrite).shell(plant).run_in(world).assert_exit(0);
        for path in [
            "final",
            "way/f",
            "way/new",
            "dangling",
            "d/deeper/f",
            "$W/final",
            "d/../way/new",
        ] {
            let case = Case::new(WorkspaceWrite).options(["--report", path]);
            let report = case.shell("echo ran > ran").run_in(world);
            report.assert_error("INPUT_INVALID");
            assert!(report.text("/error/message").contains("--report"), "{report}");
            untouched(world);
            assert_eq!(names(world.beside()), ["f"], "{report}");
            assert!(!world.inside("ran").exists(), "{report}");
        }
        let plain = Case::new(WorkspaceWrite).options(["--report", "d/plain"]);
        plain.argv(["true"]).run_in(world).assert_exit(0);
        assert!(text(world.inside("d/plain")).starts_with('{'));
    });
}

#[test]
fn what_a_command_writes_into_its_report_file_is_not_in_the_report() {
    for_each_user(|world| {
        for forge in [
            "echo forged > report",
            "head -c 100000 /dev/zero | tr '\\0' x >> report; echo >> report",
            "exec 5>> report; for i in $(seq 100); do echo forged >&5; done",
            "exec 5> report; echo forged >&5; truncate -s 1000000 report",
            "truncate -s 1000000000 report",
        ] {
            let options = ["--report", "report"];
            let case = Case::new(WorkspaceWrite)
                .options(options)
                .shell(&format!("{forge}; exit 3"));
            case.run_in(world).assert_exit(3);
            let said = text(world.inside("report"));
            assert_eq!(said.lines().count(), 1, "{forge}: {said}");
            let document: Value = serde_json::from_str(&said).expect("the report alone");
            assert_eq!(document["exitCode"], 3, "{forge}");
        }
    });
}

#[test]
fn a_temp_directory_or_grant_in_the_workspace_that_leads_out_is_refused() {
    for_each_user(|world| {
        world.prepare(&format!("{KEEP}; mkdir d"));
        let plant = "ln -s \"$OUT\" way; ln -s \"$OUT/f\" final; ln -s ../way d/deeper";
        Case::new(WorkspaceWrite).shell(plant).run_in(world).assert_exit(0);
        let attack = "echo x > \"$OUT/new\"; echo x > \"$OUT/f\"; echo ran > ran";
        for path in ["$W/way", "$W/d/deeper", "$W/d/../way"] {
            let case = Case::new(WorkspaceWrite).env("TMPDIR", path).shell(attack);
            case.run_in(world).assert_error("POLICY_INVALID");
        }
        for path in ["way", "$W/way", "final", "d/deeper", "way/f", "./d/deeper/f"] {
            let case = Case::new(WorkspaceWrite).options(["--write", path]).shell(attack);
            case.run_in(world).assert_error("POLICY_INVALID");
        }
        untouched(world);
        assert_eq!(names(world.beside()), ["f"]);
        assert!(!world.inside("ran").exists());
        // Named by itself it is a grant like any other, and so is a link that stays inside.
        world.prepare("ln -s d stays");
        let granted = Case::new(WorkspaceWrite).options(["--write", "$OUT", "--write", "stays"]);
        let granted = granted.env("TMPDIR", "$W/stays").shell("echo x > \"$OUT/new\"");
        granted.run_in(world).assert_exit(0);
        assert_eq!(text(world.outside("new")), "x\n");
    });
}
