//! Deadlines, and processes that do not end by themselves.

use std::time::{Duration, Instant};

use ringfence::SandboxMode::{DangerFullAccess, WorkspaceWrite};

use crate::support::{Case, for_each_user, text};

#[test]
fn a_deadline_ends_the_command_and_keeps_what_it_said() {
    for_each_user(|world| {
        let started = Instant::now();
        let report = Case::new(WorkspaceWrite)
            .options(["--timeout", "300ms"])
            .shell("echo early; sleep 60; echo late")
            .run_in(world);
        assert!(started.elapsed() < Duration::from_secs(20), "{report}");
        assert_eq!(report.field("/timedOut"), true);
        assert_eq!(report.field("/aborted"), false);
        assert_eq!(report.field("/timeoutMs"), 300);
        assert_eq!(report.field("/signal"), "SIGTERM");
        assert_eq!(report.status(), 124);
        assert_eq!(report.stdout(), "early\n");
        report.assert_denied(false);
    });
}

#[test]
fn a_command_that_cleans_up_after_its_deadline_keeps_its_own_status() {
    Case::new(WorkspaceWrite)
        .options(["--timeout", "300ms"])
        .shell("trap 'echo cleaned > done; exit 0' TERM; while :; do sleep 0.05; done")
        .run_as_each_user(|world, report| {
            assert_eq!(report.field("/timedOut"), true, "{report}");
            assert_eq!(report.field("/exitCode"), 0);
            assert_eq!(report.status(), 124);
            assert_eq!(text(world.inside("done")), "cleaned\n");
        });
}

#[test]
fn a_command_that_will_not_end_is_killed_after_the_grace_period() {
    Case::new(WorkspaceWrite)
        .options(["--timeout", "200ms", "--grace", "300ms"])
        .shell("trap '' TERM; while :; do sleep 0.05; done")
        .run_as_each_user(|_, report| {
            assert_eq!(report.field("/timedOut"), true, "{report}");
            assert_eq!(report.field("/signal"), "SIGKILL");
        });
}

#[test]
fn a_stopped_command_hears_its_deadline() {
    Case::new(WorkspaceWrite)
        .options(["--timeout", "300ms", "--grace", "20s"])
        .shell("kill -STOP $$; echo woken")
        .run_as_each_user(|_, report| {
            assert_eq!(report.field("/timedOut"), true, "{report}");
            assert_eq!(report.field("/signal"), "SIGTERM", "{report}");
        });
}

#[test]
fn whoever_holds_the_pipes_does_not_delay_the_result() {
    for_each_user(|world| {
        let started = Instant::now();
        let report = Case::new(WorkspaceWrite).shell("sleep 60 & echo done").run_in(world);
        assert!(started.elapsed() < Duration::from_secs(20), "{report}");
        report.assert_exit(0);
        assert_eq!(report.field("/timedOut"), false);
        assert_eq!(report.stdout(), "done\n");
    });
}

#[test]
fn whoever_goes_on_writing_into_the_pipes_does_not_delay_the_result() {
    // Out of the group, and busy for half a minute: it writes now and then, or as fast as it can.
    for writer in ["for i in {1..300}; do echo x; sleep 0.1; done", "timeout 30 yes"] {
        for_each_user(|world| {
            let started = Instant::now();
            let shell = format!("setsid bash -c '{writer}' & sleep 0.2; echo done >&2");
            let report = Case::new(WorkspaceWrite).shell(&shell).run_in(world);
            assert!(started.elapsed() < Duration::from_secs(15), "{report}");
            report.assert_exit(0);
            assert_eq!(report.field("/timedOut"), false);
            assert_eq!(report.stderr(), "done\n");
        });
    }
}

#[test]
fn a_captured_run_has_a_deadline_even_when_none_is_given() {
    Case::new(WorkspaceWrite).argv(["true"]).run_as_each_user(|_, report| {
        assert_eq!(report.field("/timeoutMs"), 120_000);
    });
}

#[test]
fn danger_full_access_reports_the_same_facts_about_the_end() {
    Case::new(DangerFullAccess)
        .options(["--timeout", "300ms"])
        .shell("sleep 60")
        .run_as_each_user(|_, report| {
            assert_eq!(report.field("/timedOut"), true, "{report}");
            assert_eq!(report.field("/signal"), "SIGTERM");
        });
}
