//! Without `--json`: the command's own streams and status, and few words beside them.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use crate::support::{World, for_each_user, text};

/// `ringfence run -m workspace-write` with further words.
fn run(world: &World, words: &[&str]) -> Command {
    let mut command = world.command(world.program());
    command.args(["run", "-m", "workspace-write"]).args(words);
    command
}

/// The document that `--report FILE` or `--report-fd` wrote into a file of the workspace.
fn report(world: &World, file: &str) -> serde_json::Value {
    serde_json::from_str(&text(world.inside(file))).unwrap()
}

#[test]
fn the_streams_of_the_command_are_the_callers() {
    for_each_user(|world| {
        let mut command = run(world, &["-c", "cat; echo err >&2"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"in\0\xff\n").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stdout, b"in\0\xff\n");
        assert_eq!(output.stderr, b"err\n", "nothing happened, so nothing is said");
        assert_eq!(output.status.code(), Some(0));
    });
}

#[test]
fn every_exit_status_is_passed_on() {
    for_each_user(|world| {
        let script = r#"for n in {0..255}; do "$BIN" run -c "exit $n"; s=$?; [ $s = $n ] || echo "$n became $s"; done"#;
        let mut command = world.command("bash");
        command.args(["-c", script]);
        let outcome = world.outcome(command);
        assert_eq!(outcome.stdout(), "", "{outcome}");
        assert_eq!(outcome.stderr(), "", "{outcome}");
    });
}

#[test]
fn a_death_by_signal_is_128_and_its_number() {
    for_each_user(|world| {
        for number in [1, 2, 6, 9, 11, 13, 15, 31, 34, 64] {
            let outcome = world.outcome(run(world, &["-c", &format!("kill -{number} $$")]));
            assert_eq!(outcome.status(), 128 + number, "{outcome}");
        }
    });
}

#[test]
fn a_deadline_is_124_and_there_is_none_unless_asked() {
    for_each_user(|world| {
        let outcome = world.outcome(run(
            world,
            &["--timeout", "300ms", "--report", "report", "--", "sleep", "60"],
        ));
        assert_eq!(outcome.status(), 124, "{outcome}");
        assert_eq!(report(world, "report")["timedOut"], true);
        world.outcome(run(world, &["--report", "report", "--", "true"]));
        assert!(report(world, "report")["timeoutMs"].is_null());
    });
}

#[test]
fn a_program_that_is_not_there_is_127_and_one_that_is_none_126() {
    for_each_user(|world| {
        world.prepare("echo hi > plain");
        for (program, status) in [("/no/such/program", 127), ("./plain", 126)] {
            let outcome = world.outcome(run(world, &["--", program]));
            assert_eq!(outcome.status(), status, "{outcome}");
            assert!(outcome.stderr().contains(program), "{outcome}");
            assert_eq!(outcome.stdout(), "");
        }
    });
}

#[test]
fn what_goes_to_a_closed_stream_lands_in_no_file() {
    for_each_user(|world| {
        for closed in [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"] {
            let script = format!(
                "$BIN run -m workspace-write --report report -c 'echo text > file; echo out; echo err >&2; exit 7' {closed}"
            );
            let mut command = world.command("bash");
            command.args(["-c", &script]);
            let outcome = world.outcome(command);
            outcome.assert_no_panic();
            assert_eq!(outcome.status(), 7, "{closed}: {outcome}");
            assert_eq!(text(world.inside("file")), "text\n", "{closed}");
            assert_eq!(report(world, "report")["exitCode"], 7, "{closed}");
        }
    });
}

#[test]
fn a_reader_that_goes_away_ends_the_command_as_it_would_without_ringfence() {
    for_each_user(|world| {
        let outcome = world.bash(r#"set +o pipefail; "$BIN" run -c 'yes; echo $? >&2' | head -n 1"#);
        assert_eq!(outcome.stdout(), "y\n");
        assert_eq!(outcome.stderr(), "141\n", "SIGPIPE is at its default: {outcome}");
    });
}

#[test]
fn json_into_a_closed_pipe_is_no_panic() {
    for_each_user(|world| {
        let outcome = world.bash(r#""$BIN" run --json -c 'echo ran > ran' -m workspace-write >&- || true"#);
        outcome.assert_no_panic();
        let outcome = world.bash(r#"set +o pipefail; "$BIN" run --json -- true | true"#);
        outcome.assert_no_panic();
    });
}

#[test]
fn a_report_beside_untouched_streams_goes_to_a_file_or_a_descriptor() {
    for_each_user(|world| {
        let outcome = world.bash("$BIN run -m workspace-write --report-fd 3 -c 'echo out; cat' <<< in 3> report");
        assert_eq!(
            (outcome.stdout().as_str(), outcome.stderr().as_str()),
            ("out\nin\n", "")
        );
        let by_descriptor = report(world, "report");
        let outcome = world.bash("$BIN run -m workspace-write --report $OUT/report -c 'echo out'");
        assert_eq!(outcome.stdout(), "out\n");
        let by_name: serde_json::Value = serde_json::from_str(&text(world.outside("report"))).unwrap();
        for document in [by_descriptor, by_name] {
            assert_eq!(document["exitCode"], 0, "{document:#}");
            assert_eq!(document["sandbox"]["evidence"], "observed", "{document:#}");
            assert_eq!(document["sandbox"]["denied"], false, "{document:#}");
            assert!(document.get("stdout").is_none(), "{document:#}");
        }
    });
}

#[test]
fn nothing_is_said_of_denials_when_nobody_looks() {
    for_each_user(|world| {
        let script = "$BIN run --evidence off --report $OUT/report -c 'echo x > f'";
        assert_eq!(world.bash(script).status(), 1);
        let document: serde_json::Value = serde_json::from_str(&text(world.outside("report"))).unwrap();
        assert_eq!(document["sandbox"]["evidence"], "unavailable", "{document:#}");
        assert!(document["sandbox"]["denied"].is_null(), "{document:#}");
    });
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_command_runs() {
    for_each_user(|world| {
        for option in [
            ["--report-fd", "77"],
            ["--report-fd", "x"],
            ["--report", "/no/such/dir/report"],
        ] {
            let mut command = run(world, &option);
            command.args(["-c", "echo ran > ran"]);
            world.outcome(command).assert_refused(&[]);
        }
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn the_report_descriptor_does_not_reach_the_command() {
    for_each_user(|world| {
        world.bash("$BIN run -m workspace-write --report-fd 3 -c 'echo forged >&3; echo forged > /proc/self/fd/3; true' 3> report");
        assert_eq!(report(world, "report")["exitCode"], 0);
    });
}

#[test]
fn a_file_handed_in_for_reading_is_named_as_what_it_is() {
    for_each_user(|world| {
        world.prepare("echo text > $OUT/f");
        let outcome = world.bash("$BIN run -m workspace-write --report report -- cat < $OUT/f");
        assert_eq!(outcome.stdout(), "text\n");
        let document = report(world, "report");
        assert_eq!(document["sandbox"]["enforcement"], "partial", "{document:#}");
        assert_eq!(
            document["sandbox"]["ungoverned"],
            serde_json::json!(["inherited-descriptors"]),
            "{document:#}"
        );
    });
}

#[test]
fn a_file_opened_for_writing_is_written_and_its_metadata_is_named_as_open() {
    for_each_user(|world| {
        let outcome =
            world.bash("$BIN run -m read-only --report report -c 'echo out; echo err >&2' > $OUT/log 2>> $OUT/err");
        assert_eq!(outcome.status(), 0, "{outcome}");
        assert_eq!(text(world.outside("log")), "out\n");
        let said = text(world.outside("err"));
        assert!(
            said.starts_with("err\nringfence: ") && said.contains("inherited-descriptors"),
            "{said}"
        );
        assert_eq!(report(world, "report")["sandbox"]["enforcement"], "partial");
    });
}

#[test]
fn a_demand_for_everything_refuses_a_handed_in_file() {
    for_each_user(|world| {
        world.prepare("echo text > $OUT/f");
        let mut command = run(world, &["--require", "full", "-c", "cat > ran"]);
        command.stdin(File::open(world.outside("f")).unwrap());
        world
            .outcome(command)
            .assert_refused(&["inherited-descriptors", "--stdin FILE"]);
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn what_is_left_open_is_said_in_a_line() {
    for_each_user(|world| {
        world.prepare("echo text > $OUT/f");
        let mut command = run(world, &["--", "true"]);
        command.stdin(File::open(world.outside("f")).unwrap());
        let outcome = world.outcome(command);
        assert!(outcome.stderr().contains("inherited-descriptors"), "{outcome}");
        assert!(outcome.stderr().lines().count() <= 3, "{outcome}");
    });
}

#[test]
fn ringfence_ends_its_run_when_it_is_told_to_end() {
    for_each_user(|world| {
        let script = "trap 'echo cleaned > cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
        let mut child = run(world, &["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(child.id().cast_signed()),
            nix::sys::signal::Signal::SIGTERM,
        )
        .unwrap();
        let ended = child.wait().unwrap();
        assert!(ended.code().is_some() || ended.signal() == Some(15), "{ended}");
        assert_eq!(text(world.inside("cleaned")), "cleaned\n");
    });
}
