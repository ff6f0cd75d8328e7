//! The limits of a command: those it has without being asked, and those that were asked for.

use std::fs;

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use crate::support::{Case, Report, for_each_user};

/// Soft and hard limit of one row of /proc/self/limits.
fn row<'a>(report: &'a Report, name: &str) -> (&'a str, &'a str) {
    report.assert_exit(0);
    let line = report.stdout().lines().find_map(|line| line.strip_prefix(name));
    let mut words = line
        .unwrap_or_else(|| panic!("no {name}:\n{report}"))
        .split_whitespace();
    (words.next().unwrap(), words.next().unwrap())
}

/// A run that shows its limits.
fn limits() -> Case {
    Case::new(ReadOnly).argv(["cat", "/proc/self/limits"])
}

#[test]
fn the_command_has_the_callers_limit_of_open_files_and_makes_no_core_dumps() {
    limits()
        .inside(["prlimit", "--nofile=100:200", "--core=1024:2048", "--"])
        .run_as_each_user(|_, report| {
            assert_eq!(row(report, "Max open files"), ("100", "200"));
            assert_eq!(row(report, "Max core file size"), ("0", "2048"));
        });
}

#[test]
fn a_limit_that_was_asked_for_cannot_be_raised_again() {
    limits()
        .inside(["prlimit", "--core=1024:2048", "--"])
        .options(["--limit", "core=1k", "--limit", "nofile=64", "--limit", "fsize=1m"])
        .options(["--limit", "as=8g", "--limit", "nproc=500", "--limit", "cpu=10m"])
        .run_as_each_user(|_, report| {
            assert_eq!(row(report, "Max core file size"), ("1024", "1024"));
            assert_eq!(row(report, "Max open files"), ("64", "64"));
            assert_eq!(row(report, "Max file size"), ("1048576", "1048576"));
            assert_eq!(row(report, "Max address space"), ("8589934592", "8589934592"));
            assert_eq!(row(report, "Max processes"), ("500", "500"));
            assert_eq!(row(report, "Max cpu time"), ("600", "601"));
        });
}

#[test]
fn a_file_is_cut_at_the_limit_and_its_writer_ended_by_the_signal_for_it() {
    Case::new(WorkspaceWrite)
        .options(["--limit", "fsize=4k"])
        .argv(["dd", "if=/dev/zero", "of=f", "bs=10000", "count=1"])
        .run_as_each_user(|world, report| {
            assert_eq!(report.field("/signal"), "SIGXFSZ", "{report}");
            report.assert_denied(false);
            assert_eq!(fs::metadata(world.inside("f")).unwrap().len(), 4096);
        });
}

#[test]
fn a_command_that_only_computes_is_ended_by_its_processor_time() {
    Case::new(ReadOnly)
        .options(["--limit", "cpu=1s"])
        .shell("while :; do :; done")
        .run_as_each_user(|_, report| {
            assert_eq!(report.field("/signal"), "SIGXCPU", "{report}");
            assert_eq!(report.field("/timedOut"), false);
        });
}

#[test]
fn a_command_that_ignores_the_warning_of_its_processor_time_is_killed() {
    Case::new(ReadOnly)
        .options(["--limit", "cpu=1s"])
        .shell("trap '' XCPU; while :; do :; done")
        .run_as_each_user(|_, report| {
            assert_eq!(report.field("/signal"), "SIGKILL", "{report}");
            assert_eq!(report.field("/timedOut"), false);
        });
}

#[test]
fn an_allocation_beyond_the_address_space_fails() {
    let script = "
try: bytearray(1 << 30)
except MemoryError: print('refused')";
    Case::new(ReadOnly)
        .options(["--limit", "as=256m"])
        .argv(["python3", "-I", "-c", script])
        .run_as_each_user(|_, report| {
            assert_eq!(report.assert_exit(0).stdout(), "refused\n");
        });
}

#[test]
fn a_command_that_forks_without_end_is_held_to_its_number_of_processes() {
    // Each child waits for the end of the pipe, so all are there at once. Without a limit there would be 100.
    let script = "
import os
r, w = os.pipe()
made = 0
try:
    while made < 100:
        if os.fork() == 0:
            os.close(w); os.read(r, 1); os._exit(0)
        made += 1
    print('all')
except BlockingIOError: print('held')
os.close(w)
print(made)";
    let case = Case::new(ReadOnly).options(["--limit", "nproc=20", "-t", "60s"]);
    for_each_user(|world| {
        let report = case.clone().argv(["python3", "-I", "-c", script]).run_in(world);
        report.assert_exit(0);
        let (what, made) = report.stdout().split_once('\n').unwrap();
        let made: u32 = made.trim().parse().unwrap();
        // The kernel does not hold root to it, as the documentation says.
        if world.uid() != 0 {
            assert_eq!(what, "held", "{report}");
            assert!(made < 20, "{report}");
        }
    });
}

#[test]
fn few_descriptors_do_not_get_in_the_way_of_the_boundary() {
    for mode in [ReadOnly, WorkspaceWrite] {
        for evidence in ["auto", "strict"] {
            Case::new(mode)
                .options(["--limit", "nofile=4", "--evidence", evidence])
                .argv(["cat", "/dev/null"])
                .run_as_each_user(|_, report| {
                    report.assert_exit(0).assert_full();
                });
        }
    }
}

#[test]
fn a_limit_above_the_hard_one_starts_nothing_and_names_both() {
    for_each_user(|world| {
        for value in ["201", "unlimited"] {
            let asked = format!("nofile={value}");
            let report = Case::new(WorkspaceWrite)
                .inside(["prlimit", "--nofile=100:200", "--"])
                .options(["--limit", &asked])
                .shell("echo ran > ran")
                .run_in(world);
            report.assert_error("INPUT_INVALID");
            let message = report.text("/error/message");
            assert!(message.contains(&asked) && message.contains("is 200 here"), "{report}");
            assert!(report.text("/error/hint").contains("at most 200"), "{report}");
        }
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn the_limits_that_were_asked_for_are_shown_beforehand() {
    for_each_user(|world| {
        let asked = ["--dry-run", "--limit", "cpu=2m", "--limit", "fsize=1k"];
        let outcome = Case::new(ReadOnly).options(asked).argv(["true"]).outcome_in(world);
        let document: serde_json::Value = serde_json::from_str(&outcome.stdout()).unwrap();
        assert_eq!(document["limits"], serde_json::json!({"cpu": "120", "fsize": "1024"}));
        let mut words = world.command(world.program());
        words.arg("run").args(asked).args(["--", "true"]);
        let outcome = world.outcome(words);
        assert!(outcome.stdout().contains("cpu=120, fsize=1024"), "{outcome}");
    });
}

#[test]
fn a_limit_that_makes_no_sense_is_refused_and_named() {
    for_each_user(|world| {
        for limit in ["", "cpu", "cpu=5", "memory=1g", "nproc=many", "fsize=-1", "as=1.5g"] {
            let case = Case::new(WorkspaceWrite).options(["--limit", limit]);
            case.shell("echo ran > ran")
                .outcome_in(world)
                .assert_refused(&["--limit"]);
        }
        let case = Case::new(WorkspaceWrite).options(["--limit", "cpu=1s", "--limit", "cpu=2s"]);
        case.shell("echo ran > ran")
            .outcome_in(world)
            .assert_refused(&["twice"]);
        assert!(!world.inside("ran").exists());
    });
}
