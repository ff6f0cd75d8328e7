//! Runs in a session: in its directory, in its mode or a stricter one, and never in another's.

use std::fs;

use ringfence::SandboxMode::ReadOnly;

use super::{document, make, run, session, writes};
use crate::support::{Case, for_each_user};

#[test]
fn a_run_has_the_sessions_directory_mode_and_id() {
    for_each_user(|world| {
        make(world, "a", Some("workspace-write"));
        world.prepare("mkdir $OUT/elsewhere");
        let mut command = run("a")
            .shell("echo x > new; pwd; echo $RINGFENCE_SESSION $RINGFENCE_MODE")
            .command_in(world);
        command.current_dir(world.outside("elsewhere"));
        let outcome = world.outcome(command);
        let report = crate::support::Report::read(outcome);
        report.assert_exit(0);
        let workspace = world.workspace();
        assert_eq!(report.stdout(), format!("{}\na workspace-write\n", workspace.display()));
        assert_eq!(report.text("/session"), "a");
        assert_eq!(report.text("/sandbox/mode"), "workspace-write");
        assert!(world.inside("new").exists() && !world.outside("elsewhere/new").exists());
    });
}

#[test]
fn a_run_without_a_session_knows_of_none() {
    Case::new(ReadOnly)
        .env("RINGFENCE_SESSION", "stale")
        .shell("echo [$RINGFENCE_SESSION]")
        .run_as_each_user(|_, report| {
            assert_eq!(report.stdout(), "[]\n", "{report}");
            assert!(report.field("/session").is_null(), "{report}");
        });
}

#[test]
fn switching_holds_from_the_next_run_on() {
    for_each_user(|world| {
        make(world, "a", None);
        make(world, "b", None);
        assert!(!writes(world, "a").1, "the default holds while it has no mode");
        session(world, ["mode", "a", "workspace-write"]);
        assert!(writes(world, "a").1);
        assert!(!writes(world, "b").1, "another session is not switched");
        session(world, ["mode", "a", "read-only"]);
        assert!(!writes(world, "a").1);
    });
}

#[test]
fn a_run_in_flight_keeps_its_mode() {
    // To open the FIFO for writing waits for the run, which opens it for reading.
    let script = "mkfifo $OUT/go; \
        $BIN run --session a -c 'read x < $OUT/go; echo x > $W/new' & p=$!; \
        exec 5> $OUT/go; $BIN session mode a workspace-write; echo >&5; wait $p || echo refused";
    for_each_user(|world| {
        make(world, "a", Some("read-only"));
        let said = world.prepare(script);
        assert!(said.contains("refused"), "{said}");
        assert!(!world.inside("new").exists());
        assert!(writes(world, "a").1, "and the next run has the new one");
    });
}

#[test]
fn stricter_than_the_session_can_be_asked_for_and_looser_takes_an_approval() {
    for_each_user(|world| {
        make(world, "a", Some("workspace-write"));
        let stricter = run("a").options(["-m", "read-only"]).argv(["true"]).run_in(world);
        assert_eq!(stricter.assert_exit(0).text("/sandbox/mode"), "read-only");
        let same = run("a").options(["-m", "workspace-write"]).argv(["true"]).run_in(world);
        same.assert_exit(0);
        for looser in [["-m", "danger-full-access"], ["-p", "danger-full-access"]] {
            let report = run("a").options(looser).shell("echo x > $W/ran").run_in(world);
            report.assert_error("APPROVAL_REQUIRED");
            let hint = report.text("/error/hint");
            assert!(
                hint.contains("ringfence session mode") && hint.contains("ringfence retry"),
                "{report}"
            );
            assert!(!world.inside("ran").exists());
        }
        let profile = run("a").options(["-p", "read-only"]).argv(["true"]).run_in(world);
        assert_eq!(profile.assert_exit(0).text("/sandbox/mode"), "read-only");
        make(world, "b", None);
        let report = run("b").options(["-m", "workspace-write"]).argv(["true"]).run_in(world);
        report.assert_error("APPROVAL_REQUIRED");
        assert!(report.text("/error/message").contains("runs in read-only"), "{report}");
    });
}

#[test]
fn another_directory_than_the_sessions_is_a_mistake() {
    for_each_user(|world| {
        make(world, "a", None);
        world.prepare("ln -s $W $OUT/same");
        let same = world.outside("same");
        run("a")
            .options(["-C".into(), same])
            .argv(["true"])
            .run_in(world)
            .assert_exit(0);
        let other = world.beside();
        let report = run("a").options(["-C".into(), other]).argv(["true"]).run_in(world);
        report.assert_error("INPUT_INVALID");
        assert!(report.text("/error/message").contains("--workspace"), "{report}");
    });
}

#[test]
fn a_session_whose_directory_was_replaced_serves_no_run_and_says_so() {
    for_each_user(|world| {
        world.prepare("mkdir $OUT/d");
        let dir = world.outside("d");
        session(
            world,
            ["new", "--id", "a", "-m", "workspace-write", "-C", dir.to_str().unwrap()],
        );
        run("a").argv(["true"]).run_in(world).assert_exit(0);
        for (change, word) in [
            ("rmdir $OUT/d", "cannot be used"),
            ("mkdir $OUT/d", "another one has taken its place"),
            (
                "rmdir $OUT/d; mkdir $OUT/e; ln -s e $OUT/d",
                "another one has taken its place",
            ),
            ("rm $OUT/d; touch $OUT/d", "cannot be used"),
        ] {
            world.prepare(change);
            let report = run("a").shell("echo x > ran").run_in(world);
            report.assert_error("WORKDIR_UNUSABLE");
            assert!(report.text("/error/message").contains(word), "{report}");
            let (status, shown) = document(world, &["show", "a"]);
            assert_eq!(status, 0, "it can still be looked at");
            assert!(shown["problem"].as_str().unwrap().contains(word), "{shown}");
            let (status, refused) = document(world, &["mode", "a", "read-only"]);
            assert_eq!((status, &refused["error"]["code"]), (2, &"WORKDIR_UNUSABLE".into()));
        }
        assert!(fs::read_dir(world.outside("e")).unwrap().next().is_none());
    });
}

#[test]
fn a_session_that_there_is_not_serves_no_run() {
    for_each_user(|world| {
        for id in ["a", "", "../a"] {
            run(id).argv(["true"]).run_in(world).assert_error("INPUT_INVALID");
        }
    });
}

#[test]
fn explain_and_dry_run_show_the_session_and_where_the_mode_comes_from() {
    for_each_user(|world| {
        make(world, "a", Some("workspace-write"));
        for words in [
            &["explain", "--session", "a"][..],
            &["run", "--dry-run", "--session", "a", "true"],
        ] {
            let mut command = world.command(world.program());
            command.args(words);
            let said = world.outcome(command).stdout();
            assert!(said.contains("workspace-write, from the session a"), "{said}");
            let mut json = world.command(world.program());
            json.arg(words[0]).arg("--json").args(&words[1..]);
            let document: serde_json::Value = serde_json::from_str(&world.outcome(json).stdout()).unwrap();
            assert_eq!(document["policy"]["session"], "a");
            assert_eq!(document["policy"]["modeFrom"], "the session a");
        }
    });
}
