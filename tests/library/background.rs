//! Runs in the background.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use ringfence::exec::background::{Background, Lifetime, Output, Status};
use ringfence::{Abort, Capture, Error, Exit, Runner, SandboxMode};

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
    pipe(&place, "held");
    // The one that stays ignores the request, and holds a pipe open that nobody else does.
    let text = "trap 'echo cleaned; exit 3' TERM; setsid bash -c 'trap \"\" TERM; exec 5<> held; echo up > said; \
        while :; do sleep 0.05; done' & wait; sleep 600";
    let runner = Runner::new(None);
    let mut request = request(&place.policy(SandboxMode::WorkspaceWrite), text);
    request.grace = Some(Duration::from_millis(300));
    let run = runner
        .start(runner.resolve(request).unwrap(), Lifetime::default())
        .unwrap();
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
    let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK;
    let nobody = open(&place.root().join("held"), flags, Mode::empty());
    assert_eq!(nobody.err(), Some(Errno::ENXIO), "nobody holds the pipe any more");
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
fn ending_a_run_that_was_asked_to_end_does_not_cut_its_grace_period_short() {
    let _alone = alone();
    for end in ["drop", "stop_all"] {
        let place = Place::new();
        pipe(&place, "said");
        pipe(&place, "last");
        let runner = Runner::new(None);
        let text = "trap 'echo asked > said; sleep 0.2; echo cleaned > last; exit' TERM; echo up > said; \
            while :; do sleep 0.05; done";
        let spec = runner
            .resolve(request(&place.policy(SandboxMode::WorkspaceWrite), text))
            .unwrap();
        let run = runner.start(spec, Lifetime::default()).unwrap();
        assert_eq!(hear(&place, "said"), "up\n");
        assert!(run.kill());
        assert_eq!(hear(&place, "said"), "asked\n");
        std::thread::scope(|scope| {
            let last = scope.spawn(|| hear(&place, "last"));
            if end == "drop" {
                drop(run);
            } else {
                assert_eq!(runner.stop_all(), 1);
            }
            assert_eq!(last.join().unwrap(), "cleaned\n", "{end}");
        });
    }
}

#[test]
fn a_run_that_is_killed_before_it_began_is_killed() {
    let _alone = alone();
    let place = Place::new();
    for _ in 0..20 {
        let run = start(&place, "sleep 600", Lifetime::default());
        assert!(run.kill());
        let outcome = run.wait();
        assert_eq!(run.status(), Status::Killed, "{outcome:?}");
    }
}

#[test]
fn one_request_ends_every_run_that_listens() {
    let _alone = alone();
    let place = Place::new();
    pipe(&place, "said");
    let (runner, abort) = (Runner::new(None), Abort::new());
    let policy = place.policy(SandboxMode::WorkspaceWrite);
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4)
            .map(|_| {
                let spec = runner.resolve(request(&policy, "echo up > said; sleep 600")).unwrap();
                let run = scope.spawn(|| runner.run_blocking(spec, &abort).unwrap());
                assert_eq!(hear(&place, "said"), "up\n");
                run
            })
            .collect();
        abort.trigger();
        for run in runs {
            assert!(run.join().unwrap().aborted);
        }
    });
    let late = runner.resolve(request(&policy, "touch ran")).unwrap();
    assert!(matches!(runner.run_blocking(late, &abort), Err(Error::Aborted)));
    assert!(!place.root().join("ran").exists());
}

#[test]
fn a_handle_whose_run_has_ended_holds_no_descriptor() {
    let _alone = alone();
    let place = Place::new();
    let state = Place::new();
    let runner = Runner::new(Some(state.root().join("state")));
    let policy = place.policy(SandboxMode::WorkspaceWrite);
    let count = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let ended = || {
        let spec = runner.resolve(request(&policy, "seq 100000; seq 100000 >&2")).unwrap();
        let run = runner.start(spec, Lifetime::default()).unwrap();
        let outcome = run.wait();
        let report = outcome.as_ref().as_ref().unwrap();
        assert!(report.stdout.as_ref().unwrap().truncated);
        run
    };
    drop(ended());
    let before = count();
    let handles: Vec<_> = (0..5).map(|_| ended()).collect();
    // The thread of the last run may still be on its way out, with the abort it listened to.
    let until = Instant::now() + Duration::from_secs(10);
    while count() > before && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(count(), before, "{} handles", handles.len());
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
