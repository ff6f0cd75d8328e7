//! No process outlives its run, whatever it does and however the run ends.

use std::os::unix::fs::MetadataExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ringfence::SandboxMode::{self, DangerFullAccess, ReadOnly, WorkspaceWrite};

use crate::support::{CONTAINER, Case, World, for_each_user, text};

/// Processes that do what they can to stay: sessions of their own, double forks, ignored signals,
/// one that starts another again and again, one that never stands still, and a crowd. Each carries a
/// mark in its command line that nothing else on the machine has.
const STAYERS: &str = r#"
mark="left-$W"
setsid bash -c 'exec -a "$0" sleep 600' "$mark" &
(setsid bash -c '(exec -a "$0" sleep 601) & exit 0' "$mark" &)
bash -c 'trap "" TERM HUP INT QUIT; while :; do sleep 0.05; done' "$mark" &
setsid bash -c 'while :; do setsid -w bash -c "exec sleep 0.01"; done' "$mark" &
setsid bash -c 'hop() { sleep 0.02; (hop &); exit 0; }; hop' "$mark" &
(set -m; bash -c 'exec -a "$0" sleep 602' "$mark" &)
for i in {1..40}; do (exec -a "$mark" sleep 603) & done
"#;

/// A mode, what the run is started inside, options, and how it is contained then.
type Place = (
    SandboxMode,
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

/// Through bubblewrap.
const BWRAP: &[&str] = &["--backend", "bwrap"];

/// How a run is contained on this host, and in a place without namespaces.
fn places() -> [Place; 4] {
    [
        (WorkspaceWrite, &[], &[], "pidns"),
        (WorkspaceWrite, &[], BWRAP, "pidns"),
        (WorkspaceWrite, &CONTAINER, &[], "subreaper"),
        (DangerFullAccess, &[], &[], "subreaper"),
    ]
}

/// The command lines of all processes that carry the mark.
fn left(world: &World) -> Vec<String> {
    let mark = format!("left-{}", world.workspace().display());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&mark))
        .collect()
}

fn assert_nobody(world: &World, report: &dyn std::fmt::Display) {
    let left = left(world);
    assert!(left.is_empty(), "still there: {left:#?}\n{report}");
}

/// Starts a run of the stayers that then waits, and returns when they all run.
fn start(world: &World, (mode, place, own, _): Place, options: &[&str]) -> Child {
    world.prepare("rm -f ready; mkfifo ready; chmod 666 ready");
    let script = format!("{STAYERS}\necho up > ready; wait; sleep 600");
    let case = Case::new(mode)
        .inside(place.iter().copied())
        .options(own.iter().chain(options).copied());
    let mut command = case.shell(&script).command_in(world);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    assert_eq!(text(world.inside("ready")), "up\n");
    until(|| left(world).len() > 45, "the stayers run");
    child
}

/// Waits for what nobody tells.
fn until(holds: impl Fn() -> bool, what: &str) {
    let patience = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < patience, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Signals the runner, which may be inside something else, and not its reaper.
fn signal_runner(world: &World, signal: Signal) {
    let identity = |path: std::path::PathBuf| std::fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let (program, workspace) = (identity(world.program()), identity(world.workspace()));
    let runner = std::fs::read_dir("/proc").unwrap().flatten().find(|entry| {
        let name = std::fs::read(entry.path().join("comm")).unwrap_or_default();
        identity(entry.path().join("exe")) == program
            && identity(entry.path().join("cwd")) == workspace
            && name != b"rf-reaper\n"
    });
    let pid = runner.unwrap().file_name().to_str().unwrap().parse().unwrap();
    kill(Pid::from_raw(pid), signal).unwrap();
}

#[test]
fn nobody_outlives_a_command_that_ends() {
    for_each_user(|world| {
        for (mode, place, own, containment) in places() {
            let report = Case::new(mode)
                .inside(place.iter().copied())
                .options(own.iter().copied())
                .shell(&format!("{STAYERS}\nsleep 0.2; exit 3"))
                .run_in(world);
            assert_nobody(world, &report);
            report.assert_exit(3);
            assert_eq!(report.field("/sandbox/containment"), containment);
            let found = report.field("/sandbox/survivors/found").as_u64().unwrap();
            assert!(found >= 45, "{found} were found: {report}");
            assert_eq!(report.field("/sandbox/survivors/killed"), found);
        }
    });
}

#[test]
fn nobody_outlives_a_deadline() {
    for_each_user(|world| {
        for (mode, place, own, _) in places() {
            let report = Case::new(mode)
                .inside(place.iter().copied())
                .options(own.iter().copied())
                .options(["--timeout", "500ms", "--grace", "200ms"])
                .shell(&format!("{STAYERS}\nwhile :; do wait; sleep 1; done"))
                .run_in(world);
            assert_nobody(world, &report);
            assert_eq!(report.field("/timedOut"), true, "{report}");
        }
    });
}

#[test]
fn nobody_outlives_a_runner_that_is_told_to_end() {
    for_each_user(|world| {
        for place in places() {
            let child = start(world, place, &["--grace", "200ms"]);
            signal_runner(world, Signal::SIGTERM);
            let output = child.wait_with_output().unwrap();
            assert_nobody(world, &String::from_utf8_lossy(&output.stdout));
        }
    });
}

#[test]
fn nobody_outlives_a_runner_that_is_killed() {
    for_each_user(|world| {
        for place in places() {
            let mut child = start(world, place, &[]);
            signal_runner(world, Signal::SIGKILL);
            child.wait().unwrap();
            until(|| left(world).is_empty(), "everybody is gone");
        }
    });
}

#[test]
fn a_second_request_to_end_is_obeyed_at_once() {
    for_each_user(|world| {
        world.prepare("mkfifo ready; chmod 666 ready");
        let script = "trap '' TERM; trap 'echo asked > ready' CONT; echo up > ready; while :; do sleep 0.05; done";
        let case = Case::new(WorkspaceWrite).options(["--grace", "10m"]).shell(script);
        let child = case
            .command_in(world)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert_eq!(text(world.inside("ready")), "up\n");
        signal_runner(world, Signal::SIGTERM);
        assert_eq!(text(world.inside("ready")), "asked\n");
        signal_runner(world, Signal::SIGTERM);
        let output = child.wait_with_output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["aborted"], true, "{report:#}");
        assert_eq!(report["signal"], "SIGKILL", "{report:#}");
        assert_eq!(output.status.code(), Some(128 + 15));
    });
}

#[test]
fn everybody_has_the_grace_period_even_when_the_command_needs_none() {
    for (mode, place, own, _) in places() {
        Case::new(mode)
            .inside(place.iter().copied())
            .options(own.iter().copied())
            .options(["--timeout", "300ms"])
            .shell("bash -c 'trap \"sleep 0.3; echo cleaned > cleaned; exit 0\" TERM; while :; do sleep 0.05; done' & wait; true")
            .run_as_each_user(|world, report| {
                assert_eq!(report.field("/timedOut"), true, "{report}");
                assert_eq!(report.field("/signal"), "SIGTERM", "the command's own end");
                assert_eq!(text(world.inside("cleaned")), "cleaned\n", "{report}");
            });
    }
}

#[test]
fn a_run_that_leaves_nobody_says_so() {
    for mode in [ReadOnly, WorkspaceWrite, DangerFullAccess] {
        Case::new(mode)
            .shell("sleep 0.01 & wait; true | cat; exit 0")
            .run_as_each_user(|_, report| {
                report.assert_exit(0);
                assert_eq!(report.field("/sandbox/survivors/found"), 0, "{report}");
            });
    }
}

#[test]
fn the_command_is_no_first_process_and_its_children_are_its_own() {
    Case::new(WorkspaceWrite)
        .shell(
            "trap 'echo term; exit 5' TERM\n\
             (exit 7) & wait $!; echo $?\n\
             test $$ -ne 1 && ps=$(ls /proc | grep -c '^[0-9]') && test $ps -lt 10 && echo few\n\
             test -r /proc/self/stat && test -e /proc/$$/exe && echo shown\n\
             kill -TERM $$; sleep 5",
        )
        .run_as_each_user(|_, report| {
            assert_eq!(report.stdout(), "7\nfew\nshown\nterm\n", "{report}");
            report.assert_exit(5).assert_denied(false);
        });
}

#[test]
fn the_commands_own_death_is_told_as_it_was() {
    for (mode, place, own, _) in places() {
        for (how, name) in [
            ("KILL", "SIGKILL"),
            ("SEGV", "SIGSEGV"),
            ("PIPE", "SIGPIPE"),
            ("RTMIN", "SIG34"),
        ] {
            Case::new(mode)
                .inside(place.iter().copied())
                .options(own.iter().copied())
                .shell(&format!("kill -{how} $$; exit 1"))
                .run_as_each_user(|_, report| {
                    assert_eq!(report.field("/signal"), name, "{report}");
                    assert_eq!(report.field("/exitCode"), &serde_json::Value::Null);
                });
        }
    }
}

#[test]
fn the_reaper_is_out_of_the_commands_reach() {
    let no_landlock = "strace -f -qq -o /dev/null -e trace=landlock_create_ruleset \
        -e inject=landlock_create_ruleset:error=ENOSYS";
    let no_landlock: Vec<_> = no_landlock.split(' ').collect();
    for (place, own) in [
        (&[][..], &[][..]),
        (&CONTAINER, &[]),
        (&[], BWRAP),
        (&no_landlock, BWRAP),
    ] {
        Case::new(WorkspaceWrite)
            .inside(place.iter().copied())
            .options(own.iter().copied())
            .argv(["python3", "-c", ATTACKS_ON_THE_PARENT])
            .run_as_each_user(|_, report| {
                assert_eq!(report.stdout(), "tried\n", "{report}");
                report.assert_exit(0);
                assert!(report.has("/sandbox/survivors"), "the reaper told the end: {report}");
            });
    }
}

/// Every means of ending, stopping or entering another process, tried on the parent.
const ATTACKS_ON_THE_PARENT: &str = r"
import ctypes, os, resource, signal
libc = ctypes.CDLL(None, use_errno=True)
parent = os.getppid()
tkill, queue = (200, 129) if os.uname().machine == 'x86_64' else (130, 138)
def attempt(what, try_it):
    try:
        if try_it() not in (None, -1): print(what)
    except (OSError, ValueError): pass
for number in signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV, signal.SIGUSR1, signal.SIGCHLD:
    attempt('killed', lambda: os.kill(parent, number) or 1)
    attempt('told', lambda: libc.syscall(tkill, parent, number))
    attempt('queued', lambda: libc.syscall(queue, parent, number, ctypes.create_string_buffer(128)))
attempt('limited', lambda: resource.prlimit(parent, resource.RLIMIT_CPU, (0, 0)) and 1)
attempt('opened', lambda: os.pidfd_open(parent))
attempt('traced', lambda: libc.ptrace(16, parent, 0, 0))
for name in ['root', 'cwd', 'exe', 'ns/pid'] + [f'fd/{number}' for number in range(32)]:
    attempt(name, lambda: os.readlink(f'/proc/{parent}/{name}') and 1)
for name in 'mem', 'environ', 'maps':
    attempt(name, lambda: open(f'/proc/{parent}/{name}', 'rb').read(1) and 1)
print('tried')
";

#[test]
fn survivors_that_nobody_could_count_are_unknown_and_killed_all_the_same() {
    // Nobody can open /proc itself: the reaper has no list.
    let blind = ["-P", "/proc", "-e", "trace=openat", "-e", "inject=openat:error=EMFILE"];
    Case::new(WorkspaceWrite)
        .inside(["strace", "-f", "-qq", "-o", "/dev/null"].into_iter().chain(blind))
        .shell(&format!("{STAYERS} exit 5"))
        .run_as_each_user(|world, report| {
            report.assert_exit(5).assert_full();
            assert!(report.field("/sandbox/survivors").is_null(), "{report}");
            assert_eq!(left(world), [""; 0], "{report}");
        });
}

#[test]
fn what_a_container_covers_in_proc_stays_covered_for_root_as_well() {
    let Some(world) = World::of_root("what_a_container_covers_in_proc_stays_covered_for_root_as_well") else {
        return;
    };
    let cover =
        "mount --bind /dev/null /proc/timer_list; mount -t tmpfs none /proc/scsi 2>/dev/null || true; exec \"$@\"";
    let report = Case::new(WorkspaceWrite)
        .inside(["unshare", "-m", "bash", "-euc", cover, "cover"])
        .shell("wc -c < /proc/timer_list; test -r /proc/self/stat && echo shown")
        .run_in(&world);
    report.assert_exit(0).assert_full();
    assert_eq!(report.stdout(), "0\nshown\n", "{report}");
    assert_eq!(report.field("/sandbox/containment"), "subreaper");
}
