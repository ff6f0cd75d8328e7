//! How a run ends, and who is left of it.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ringfence_backend::descriptor::End;
use ringfence_backend::status::Word;

use crate::world::{World, await_fd, script};

/// Whether a process is there and has not ended.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with(['Z', 'X']))
}

#[test]
fn a_death_by_signal_is_told_as_one() {
    // One without a name among them.
    for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGSEGV, libc::SIGRTMIN()] {
        let text = format!("kill -{signal} $$");
        let done = World::new().run(script(&text));
        assert_eq!(done.end, Some(End::Killed(signal)));
    }
}

#[test]
fn who_is_left_in_the_group_or_the_session_is_counted_and_killed() {
    let world = World::new();
    // One in the group, one in a group of its own that lost its parent.
    let text = "sleep 1000 >/dev/null 2>&1 & echo $! >one; \
        bash -c 'set -m; sleep 1000 >/dev/null 2>&1 & echo $! >two'; exit 3";
    let done = world.run(script(text));
    assert_eq!((done.end, done.survivors), (Some(End::Exited(3)), Some(2)));
    for name in ["one", "two"] {
        let pid = world.read(name);
        assert!(!pid.trim().is_empty() && !lives(pid.trim()), "{name}");
    }
}

#[test]
fn the_end_of_the_runner_is_the_end_of_the_run() {
    let world = World::new();
    let mut running = world
        .start(script(
            "trap '' TERM HUP INT; sleep 1000 & echo $! $$; wait; sleep 1000",
        ))
        .unwrap();
    let line = running.line();
    let pids: Vec<_> = line.split_whitespace().collect();
    assert!(pids.len() == 2 && pids.iter().all(|pid| lives(pid)), "{line}");
    // What a runner that is killed leaves behind is a closed socket, as this does.
    drop(running);
    assert!(!pids.iter().any(|pid| lives(pid)));
}

#[test]
fn everybody_can_be_asked_to_end_and_has_time_to() {
    let world = World::new();
    let text = "trap 'trap - TERM; wait; echo parent; exit 5' TERM; \
        sh -c 'trap \"echo child; exit 0\" TERM; echo ready; while :; do sleep 0.01; done' & wait";
    let mut running = world.start(script(text)).unwrap();
    assert_eq!(running.line(), "ready");
    running.launched.spare();
    running.launched.signal(Signal::SIGTERM);
    let done = running.finish();
    assert_eq!(done.end, Some(End::Exited(5)));
    assert!(
        done.stdout.contains("child\n") && done.stdout.contains("parent\n"),
        "{done:?}"
    );
}

#[test]
fn who_was_asked_to_end_and_does_not_is_killed_when_it_is_said() {
    let world = World::new();
    let text = "trap '' TERM; echo ready; while :; do sleep 0.01; done";
    let mut running = world.start(script(text)).unwrap();
    assert_eq!(running.line(), "ready");
    running.launched.spare();
    running.launched.signal(Signal::SIGTERM);
    running.launched.kill();
    assert_eq!(running.finish().end, Some(End::Killed(Signal::SIGKILL as i32)));
}

#[test]
fn a_spared_run_waits_for_those_who_outlive_the_command() {
    let world = World::new();
    let text = "trap 'exit 0' TERM; \
        sh -c 'trap \"echo late >late; exit 0\" TERM; echo ready; while :; do sleep 0.01; done' & wait";
    let mut running = world.start(script(text)).unwrap();
    assert_eq!(running.line(), "ready");
    running.launched.spare();
    running.launched.signal(Signal::SIGTERM);
    let done = running.finish();
    assert_eq!((done.end, done.survivors), (Some(End::Exited(0)), Some(0)));
    assert_eq!(world.read("late"), "late\n");
}

#[test]
fn a_command_that_stops_is_told_of_and_goes_on_when_it_is_continued() {
    let world = World::new();
    let running = world
        .start(script("kill -STOP $$; echo on; kill -STOP $$; exit 4"))
        .unwrap();
    for _ in 0..2 {
        await_fd(running.launched.notice());
        assert_eq!(running.launched.word(), Some(Word::Stopped));
        assert_eq!((running.launched.ended(), running.launched.is_stopped()), (None, true));
        running.launched.signal(Signal::SIGCONT);
    }
    let done = running.finish();
    assert_eq!((done.end, done.stdout.as_str()), (Some(End::Exited(4)), "on\n"));
}

#[test]
fn a_run_leaves_no_process_of_its_own_behind() {
    let world = World::new();
    let before = children();
    for _ in 0..3 {
        world.run(script("exit 0"));
        assert!(world.start(script("exit 0")).is_ok_and(|running| {
            drop(running);
            true
        }));
    }
    assert_eq!(children(), before);
}

/// The children of this thread's process that nobody has waited for. Other tests have some meanwhile, so
/// only those of this thread are looked at.
fn children() -> Vec<String> {
    let path = format!("/proc/self/task/{}/children", nix::unistd::gettid());
    let all = std::fs::read_to_string(path).unwrap();
    all.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_pipe_that_a_careless_host_lets_through_ends_with_the_host() {
    let world = World::new();
    let (mut read, write) = std::io::pipe().unwrap();
    nix::fcntl::fcntl(&write, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    let mut running = world.start(script("echo ready; sleep 1000")).unwrap();
    assert_eq!(running.line(), "ready");
    drop(write);
    // Nobody of the run holds it, so there is an end to read, and the run still lives.
    assert_eq!(std::io::Read::read(&mut read, &mut [0]).unwrap(), 0);
    assert_eq!(running.launched.ended(), None);
}

#[test]
fn a_killed_reaper_is_no_end_of_the_run_that_anybody_believes() {
    let world = World::new();
    let mut running = world.start(script("echo $PPID; read nothing <&1")).unwrap();
    let reaper = running.line();
    kill(Pid::from_raw(reaper.parse().unwrap()), Signal::SIGKILL).unwrap();
    await_fd(running.launched.fd());
    assert_eq!((running.launched.ended(), running.launched.survivors()), (None, None));
    // Nobody else would end it.
    let command = Pid::from_raw(running.launched.command.unwrap());
    assert!(matches!(kill(command, Signal::SIGKILL), Ok(()) | Err(Errno::ESRCH)));
}
