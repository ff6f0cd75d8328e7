//! State directories that are not as they should be.

use std::fs;

use super::{document, log, make, run, session};
use crate::support::{Outcome, World, for_each_user};

fn through(world: &World, wrapper: &[&str], words: &[&str]) -> Outcome {
    let mut command = world.command(wrapper[0]);
    command.args(&wrapper[1..]).arg(world.program()).args(words);
    let outcome = world.outcome(command);
    eprintln!("{outcome}");
    outcome.assert_no_panic();
    outcome
}

#[test]
fn a_state_directory_that_others_may_write_keeps_no_sessions() {
    for_each_user(|world| {
        make(world, "a", None);
        for spoil in ["", "/sessions"] {
            world.prepare(&format!("chmod 777 {}{spoil}", world.state().display()));
            run("a").argv(["true"]).run_in(world).assert_error("INTERNAL");
            let (status, refused) = document(world, &["mode", "a", "workspace-write"]);
            assert_eq!(status, 5);
            assert!(
                refused["error"]["hint"]
                    .as_str()
                    .unwrap()
                    .contains("RINGFENCE_STATE_DIR")
            );
            world.prepare(&format!("chmod 755 {}{spoil}", world.state().display()));
        }
        assert_eq!(log(world, "a").lines().count(), 1);
        run("a").argv(["true"]).run_in(world).assert_exit(0);
    });
}

#[test]
fn a_read_only_state_directory_serves_runs_and_keeps_nothing_new() {
    let read_only = "mount --bind $1 $1; mount -o remount,ro,bind $1; shift; exec \"$@\"";
    for_each_user(|world| {
        make(world, "a", Some("workspace-write"));
        let before = log(world, "a");
        let state = world.state();
        let state = state.to_str().unwrap();
        let wrapper = ["unshare", "-rm", "bash", "-euc", read_only, "-", state];
        let run = through(world, &wrapper, &["run", "--session", "a", "-c", "echo x > new"]);
        assert_eq!(run.status(), 0);
        assert!(world.inside("new").exists());
        let switched = through(world, &wrapper, &["session", "mode", "a", "read-only"]);
        assert_eq!(switched.status(), 5);
        assert_eq!(through(world, &wrapper, &["session", "new", "--id", "b"]).status(), 5);
        assert_eq!(log(world, "a"), before);
    });
}

#[test]
fn a_full_state_directory_loses_nothing_that_was_there() {
    // One page for the log that is there, and none for another.
    let full = "mount -t tmpfs -o size=4k,mode=700 t $1; mkdir -m 700 $1/sessions; cp $2 $1/sessions/a.jsonl; shift 2; exec \"$@\"";
    for_each_user(|world| {
        make(world, "a", None);
        let kept = world.outside("kept.jsonl");
        let line = "{\"type\":\"mode\",\"to\":\"workspace-write\",\"time\":\"2026-01-01T00:00:00Z\"}\n";
        let room = 4096 - log(world, "a").len();
        let text = log(world, "a") + &line.repeat(room / line.len());
        fs::write(&kept, &text).unwrap();
        let state = world.state();
        let wrapper = [
            "unshare",
            "-rm",
            "bash",
            "-euc",
            full,
            "-",
            state.to_str().unwrap(),
            kept.to_str().unwrap(),
        ];
        let script = "$BIN session mode a read-only; echo $?; $BIN session show a --json; cat $RINGFENCE_STATE_DIR/sessions/a.jsonl";
        let mut command = world.command(wrapper[0]);
        command.args(&wrapper[1..]).args(["bash", "-c", script]);
        let said = world.outcome(command).stdout();
        let (status, rest) = said.split_once('\n').unwrap();
        let (shown, content) = rest.split_once('\n').unwrap();
        assert_eq!(status, "5", "{said}");
        assert!(shown.contains("\"mode\":\"workspace-write\""), "{shown}");
        assert_eq!(content, text, "what did not fit is not there in part");
    });
}

#[test]
fn without_a_state_directory_there_are_no_sessions_and_that_is_said() {
    for_each_user(|world| {
        let mut command = world.command(world.program());
        command
            .args(["session", "list"])
            .env_remove("RINGFENCE_STATE_DIR")
            .env_remove("HOME");
        let outcome = world.outcome(command);
        assert_eq!(outcome.status(), 5, "{outcome}");
        assert!(outcome.stderr().contains("no state directory is known"), "{outcome}");
    });
}

#[test]
fn a_corrupt_line_closes_its_session_and_no_other() {
    for_each_user(|world| {
        make(world, "a", Some("read-only"));
        make(world, "b", Some("read-only"));
        session(world, ["mode", "a", "workspace-write"]);
        let path = world.state().join("sessions/a.jsonl");
        let good = log(world, "a");
        let bad = good.replace("\"workspace-write\"", "\"workspace-wrote\"");
        for (text, word) in [
            (bad, "line 2: `workspace-wrote`"),
            (good.replacen('{', "", 1), "line 1, cannot be read"),
        ] {
            fs::write(&path, text).unwrap();
            let report = run("a").argv(["true"]).run_in(world);
            report.assert_error("POLICY_INVALID");
            assert!(report.text("/error/message").contains(word), "{report}");
            assert!(
                report.text("/error/message").contains(path.to_str().unwrap()),
                "{report}"
            );
            let (status, all) = document(world, &["list"]);
            assert_eq!(status, 0);
            assert_eq!(all[0]["error"]["code"], "POLICY_INVALID", "{all}");
            assert_eq!(all[1]["id"], "b");
        }
        run("b").argv(["true"]).run_in(world).assert_exit(0);
        // A line that a crash tore is no such line.
        fs::write(&path, good + "{\"type\":\"mode\",\"to\":\"danger").unwrap();
        let report = run("a").argv(["true"]).run_in(world);
        assert_eq!(report.assert_exit(0).text("/sandbox/mode"), "workspace-write");
    });
}
