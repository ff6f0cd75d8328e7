//! `ringfence audit export`: where it goes, and what is said of what was left out.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use ringfence::SandboxMode::ReadOnly;

use super::{Trail, names, objects, segments};
use crate::support::{Case, Outcome, for_each_user};

impl Trail {
    fn export(&self, words: &[&str]) -> Outcome {
        let mut command = self.world.command(self.world.program());
        command.args(["audit", "export"]).args(words);
        self.world.outcome(command)
    }

    fn append_line(&self, line: &str) {
        let state = self.world.state();
        let newest = state.join("audit").join(names(&state).pop().unwrap());
        let mut file = fs::File::options().append(true).open(newest).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

#[test]
fn a_file_has_what_standard_output_would_have_and_is_readable_by_its_owner_alone() {
    let trail = Trail::new();
    let file = trail.place("export");
    let outcome = trail.export(&["--format", "jsonl", "--output", file.to_str().unwrap()]);
    assert_eq!(
        (outcome.status(), outcome.stdout(), outcome.stderr()),
        (0, String::new(), String::new())
    );
    assert_eq!(fs::read(&file).unwrap(), segments(&trail.world.state()));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_export_never_goes_to_where_the_trail_is() {
    let trail = Trail::new();
    let state = trail.world.state();
    let audit = state.join("audit");
    let before = (crate::support::names(&audit), segments(&state));
    for name in [names(&state)[0].as_str(), "new.jsonl"] {
        let way_around = audit.join("../audit").join(name);
        let outcome = trail.export(&["--format", "csv", "--output", way_around.to_str().unwrap()]);
        assert_eq!(outcome.status(), 2, "{}", outcome.stderr());
        assert!(
            outcome.stderr().contains("name a file elsewhere"),
            "{}",
            outcome.stderr()
        );
    }
    assert_eq!((crate::support::names(&audit), segments(&state)), before);
}

#[test]
fn what_was_left_out_is_said_and_a_newer_record_is_told_by_the_exit_status() {
    let trail = Trail::new();
    trail.append_line("{\"v\":1,\"se");
    let torn = trail.export(&["--format", "ocsf"]);
    assert_eq!(torn.status(), 0, "{}", torn.stderr());
    assert!(
        torn.stderr().contains("left out: 1; `ringfence audit verify`"),
        "{}",
        torn.stderr()
    );
    let number = trail.lines.len() + 1;
    trail.append_line(&format!(
        "{{\"v\":1,\"seq\":{number},\"type\":\"of.tomorrow\",\"prev\":\"{}\"}}",
        "0".repeat(64)
    ));
    let newer = trail.export(&["--format", "ocsf"]);
    assert_eq!(newer.status(), 1, "{}", newer.stderr());
    assert!(
        newer.stderr().contains(&format!("number {number}")),
        "{}",
        newer.stderr()
    );
    assert_eq!(newer.stdout(), torn.stdout());
}

#[test]
fn only_what_is_young_enough_is_given_out() {
    let trail = Trail::new();
    let all = trail.export(&["--format", "jsonl", "--since", "1h"]);
    assert_eq!(all.stdout().into_bytes(), segments(&trail.world.state()));
    let none = trail.export(&["--format", "jsonl", "--since", "2199-01-01"]);
    assert_eq!((none.status(), none.stdout()), (0, String::new()));
}

#[test]
fn a_format_that_is_none_and_a_missing_trail_are_told() {
    let trail = Trail::new();
    let outcome = trail.export(&["--format", "xml"]);
    assert_eq!(outcome.status(), 2);
    assert!(outcome.stderr().contains("syslog-octets"), "{}", outcome.stderr());
    fs::remove_dir_all(trail.world.state().join("audit")).unwrap();
    assert_eq!(trail.export(&["--format", "ocsf"]).status(), 1);
    assert!(!trail.world.state().join("audit").exists(), "nothing is made");
}

#[test]
fn what_a_run_was_denied_is_an_event_of_ocsf() {
    for_each_user(|world| {
        let report = Case::new(ReadOnly).shell("echo x > $W/f").run_in(world);
        let mut command = world.command(world.program());
        command.args(["audit", "export", "--format", "ocsf"]);
        let events = objects(&world.outcome(command).output.stdout);
        let of_run: Vec<_> = events
            .iter()
            .filter(|event| event["metadata"]["correlation_uid"] == *report.field("/runId"))
            .collect();
        let classes: Vec<_> = of_run
            .iter()
            .map(|event| event["type_name"].as_str().unwrap())
            .collect();
        let expected = [
            "Process Activity: Launch",
            "File System Activity: Create",
            "Process Activity: Terminate",
        ];
        assert_eq!(classes, expected, "{report}");
        assert_eq!(of_run[1]["file"]["path"], world.inside("f").to_str().unwrap());
        assert_eq!(of_run[1]["disposition"], "Blocked");
        assert_eq!(of_run[2]["exit_code"], report.status());
    });
}

#[test]
fn an_export_is_not_written_to_a_terminal() {
    let trail = Trail::new();
    let shown = trail
        .world
        .prepare("script -qec '$BIN audit export --format csv && echo done' /dev/null || true");
    assert!(shown.contains("`ringfence audit list` is for reading"), "{shown}");
    assert!(!shown.contains("approval.asked") && !shown.contains("done"), "{shown}");
}
