//! Runs in the background.

use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use ringfence::exec::background::{Background, Lifetime, Output, Status};
use ringfence::{Capture, Error, Exit, Runner, SandboxMode};

use crate::{Place, alone, request};

/// Starts a run of a shell text.
fn start(place: &Place, text: &str, lifetime: Lifetime) -> Background {
    let runner = Runner::new(None);
    let policy = place.policy(SandboxMode::WorkspaceWrite);
    let spec = runner.resolve(request(&policy, text)).unwrap();
    runner.start(spec, lifetime).unwrap()
}

/// A named pipe in the workspace, on which a run and its test wait for one another.
fn pipe(place: &Place, name: &str) {
    mkfifo(&place.root().join(name), Mode::from_bits_truncate(0o666)).unwrap();
}

/// Waits until the run says something on a pipe.
fn hear(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.root().join(name)).unwrap()
}

/// Says something to the run.
fn say(place: &Place, name: &str) {
    std::fs::write(place.root().join(name), "go\n").unwrap();
}

#[test]
fn a_start_returns_at_once_and_output_is_read_as_it_comes_and_never_twice() {
    let _alone = alone();
    let place = Place::new();
    pipe(&place, "said");
    pipe(&place, "go");
    let text = "echo one; echo bad >&2; echo > said; read x < go; echo two; echo > said; read x < go; echo three";
    let run = start(&place, text, Lifetime::default());
    assert!(run.outcome().is_none());
    hear(&place, "said");
    let mut first = run.read_output();
    // What was written is in the pipe before the run says so, and is read from there a moment later.
    while first.stdout.text.is_empty() || first.stderr.text.is_empty() {
        let more = run.read_output();
        first.stdout.text += &more.stdout.text;
        first.stderr.text += &more.stderr.text;
    }
    assert_eq!(
        (first.stdout.text.as_str(), first.stderr.text.as_str()),
        ("one\n", "bad\n")
    );
    assert_eq!(run.status(), Status::Running);
    say(&place, "go");
    hear(&place, "said");
    say(&place, "go");
    let outcome = run.wait();
    assert_eq!(run.status(), Status::Completed);
    assert_eq!(run.read_output().stdout.text, "two\nthree\n");
    assert_eq!(run.read_output().stdout.text, "");
    assert_eq!(
        outcome.as_ref().as_ref().unwrap().stdout.as_ref().unwrap().text,
        "one\ntwo\nthree\n"
    );
}

#[test]
fn a_kill_is_true_once_and_ends_every_process_of_the_run() {
    let _alone = alone();
    let place = Place::new();
    pipe(&place, "said");
    let text = "trap 'echo cleaned; exit 3' TERM; setsid sleep 600 & echo up > said; wait; sleep 600";
    let run = start(&place, text, Lifetime::default());
    assert_eq!(hear(&place, "said"), "up\n");
    assert!(run.kill());
    assert!(matches!(run.status(), Status::Stopping | Status::Killed));
    let outcome = run.wait();
    let report = outcome.as_ref().as_ref().unwrap();
    assert!(!run.kill(), "it has ended");
    assert_eq!(run.status(), Status::Killed);
    assert!(report.aborted && !report.timed_out);
    assert_eq!(report.exit, Exit::Code(3), "its own last word");
    assert_eq!(run.read_output().stdout.text, "cleaned\n");
    assert!(report.sandbox.survivors.is_some());
}

#[test]
fn a_second_kill_does_not_wait_for_the_grace_period() {
    let _alone = alone();
    let place = Place::new();
    pipe(&place, "said");
    let runner = Runner::new(None);
    let text = "trap '' TERM; trap 'echo asked > said' CONT; echo up > said; while :; do sleep 0.05; done";
    let mut request = request(&place.policy(SandboxMode::WorkspaceWrite), text);
    request.grace = Some(Duration::from_hours(1));
    let run = runner
        .start(runner.resolve(request).unwrap(), Lifetime::default())
        .unwrap();
    assert_eq!(hear(&place, "said"), "up\n");
    assert!(run.kill());
    assert_eq!(hear(&place, "said"), "asked\n");
    assert!(!run.kill());
    let outcome = run.wait();
    assert_eq!(outcome.as_ref().as_ref().unwrap().exit, Exit::Signal(9));
}

#[test]
fn a_run_without_a_lifetime_has_no_deadline_and_one_with_it_is_timed_out() {
    let _alone = alone();
    let place = Place::new();
    let unlimited = start(&place, "exit 4", Lifetime::default()).wait();
    let report = unlimited.as_ref().as_ref().unwrap();
    assert_eq!((report.timeout_ms, report.exit), (None, Exit::Code(4)));
    let lifetime = Lifetime {
        most: Some(Duration::from_millis(50)),
        ..Lifetime::default()
    };
    let run = start(&place, "sleep 600", lifetime);
    let outcome = run.wait();
    let report = outcome.as_ref().as_ref().unwrap();
    assert!(report.timed_out && !report.aborted);
    assert_eq!((report.timeout_ms, run.status()), (Some(50), Status::Killed));
}

#[test]
fn silence_and_too_much_talk_end_a_run_that_was_told_so() {
    let _alone = alone();
    let place = Place::new();
    let idle = Lifetime {
        idle: Some(Duration::from_millis(300)),
        ..Lifetime::default()
    };
    let run = start(
        &place,
        "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done; sleep 600",
        idle,
    );
    let outcome = run.wait();
    let report = outcome.as_ref().as_ref().unwrap();
    assert_eq!(serde_json::to_value(report).unwrap()["limit"], "idle");
    assert_eq!(report.stdout.as_ref().unwrap().text, "1\n2\n3\n4\n5\n6\n");
    let talk = Lifetime {
        output: Some(100_000),
        ..Lifetime::default()
    };
    let run = start(&place, "yes; exit 0", talk);
    let outcome = run.wait();
    let report = outcome.as_ref().as_ref().unwrap();
    assert_eq!(serde_json::to_value(report).unwrap()["limit"], "output");
    assert!(report.stdout.as_ref().unwrap().bytes > 100_000);
    assert_eq!(run.status(), Status::Killed);
}

#[test]
fn a_command_that_does_not_exist_is_a_fact_of_its_handle() {
    let _alone = alone();
    let place = Place::new();
    let runner = Runner::new(None);
    let mut request = request(&place.policy(SandboxMode::ReadOnly), "");
    request.argv = vec!["no-such-program".into()];
    let run = runner
        .start(runner.resolve(request).unwrap(), Lifetime::default())
        .unwrap();
    let outcome = run.wait();
    assert!(
        matches!(outcome.as_ref(), Err(Error::CommandNotFound { .. })),
        "{outcome:?}"
    );
    assert_eq!(run.status(), Status::NeverRan);
    assert!(!run.kill());
    assert_eq!(run.read_output(), Output::default());
}

#[test]
fn a_run_that_shares_a_terminal_or_lives_for_no_time_is_refused() {
    let _alone = alone();
    let place = Place::new();
    let runner = Runner::new(None);
    let policy = place.policy(SandboxMode::ReadOnly);
    let nothing = Lifetime {
        idle: Some(Duration::ZERO),
        ..Lifetime::default()
    };
    let spec = runner.resolve(request(&policy, "true")).unwrap();
    assert!(matches!(runner.start(spec, nothing), Err(Error::Input { field, .. }) if field == "lifetime.idle"));
    let mut shared = request(&policy, "true");
    shared.capture = Capture::Passthrough;
    let spec = runner.resolve(shared).unwrap();
    assert!(matches!(runner.start(spec, Lifetime::default()), Err(Error::Input { field, .. }) if field == "capture"));
}

#[test]
fn all_runs_of_a_runner_are_ended_together_and_awaited() {
    let _alone = alone();
    let place = Place::new();
    pipe(&place, "said");
    let runner = Runner::new(None);
    let policy = place.policy(SandboxMode::WorkspaceWrite);
    let start = |text: &str| {
        let spec = runner.resolve(request(&policy, text)).unwrap();
        runner.start(spec, Lifetime::default()).unwrap()
    };
    let over = start("true");
    assert!(over.wait().is_ok());
    let runs: Vec<_> = (0..5)
        .map(|_| {
            let run = start("setsid sleep 600 & echo up > said; sleep 600");
            assert_eq!(hear(&place, "said"), "up\n");
            run
        })
        .collect();
    assert_eq!(runner.stop_all(), 5);
    assert!(runs.iter().all(|run| run.status() == Status::Killed));
    assert_eq!(runner.stop_all(), 0);
}

#[test]
fn a_handle_that_is_dropped_takes_its_run_along() {
    let _alone = alone();
    let place = Place::new();
    pipe(&place, "said");
    pipe(&place, "held");
    let text = "exec 5> held; echo up > said; sleep 600";
    let run = start(&place, text, Lifetime::default());
    let held = std::thread::scope(|scope| {
        let reader = scope.spawn(|| hear(&place, "held"));
        assert_eq!(hear(&place, "said"), "up\n");
        drop(run);
        // The pipe ends when nobody holds its other end any more.
        reader.join().unwrap()
    });
    assert_eq!(held, "");
}

#[test]
fn the_end_can_be_awaited_without_a_thread() {
    let _alone = alone();
    let place = Place::new();
    let run = start(&place, "exit 6", Lifetime::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let outcome = runtime.block_on(run.done());
    assert_eq!(outcome.as_ref().as_ref().unwrap().exit, Exit::Code(6));
}
