//! The launcher that bubblewrap starts: out of reach, harmless in other hands, and no run outlives it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use super::{ATTACK, KEEP, assert_content_is_kept, kernel_failing};
use crate::support::{Case, World, for_each_user, names, text};

const BWRAP: [&str; 2] = ["--backend", "bwrap"];

#[test]
fn its_word_does_nothing_in_the_hands_of_a_user() {
    let words = [
        "",
        "x",
        "x y z",
        "3 4 5",
        "-1 -2 -3",
        "0 1 2",
        "1 1 1",
        "3 4",
        "3 4 5 6",
        "99999999999999999999 4 5",
        "'' '' ''",
        "$'\\xff' $'\\xff' $'\\xff'",
        "2147483647 2147483647 2147483647",
    ];
    let descriptors = [
        "",
        "3<$OUT/f 4<$OUT/f 5<$OUT/f",
        "3<$OUT/f 4>>$OUT/f 5>>$OUT/f",
        "3<$OUT 4<$OUT 5<$OUT",
        "3</dev/zero 4>/dev/null 5</dev/zero",
        "3<&- 4<&- 5<&-",
    ];
    for_each_user(|world| {
        world.prepare(KEEP);
        for given in words {
            for open in descriptors {
                let outcome = world.bash(&format!("exec \"$BIN\" --ringfence-launcher {given} {open}"));
                outcome.assert_no_panic();
                assert_eq!(outcome.status(), 125, "{given} {open}: {outcome}");
                assert_content_is_kept(world);
            }
        }
        // Sockets and pipes, too, and an order that is none.
        let outcome = world.bash(
            "python3 -c 'import os, socket\na, b = socket.socketpair()\n\
            for number in range(3, 9): os.dup2(a.fileno() if number % 2 else b.fileno(), number)\n\
            os.execv(os.environ[\"BIN\"], [\"x\", \"--ringfence-launcher\", \"3\", \"4\", \"5\"])'",
        );
        assert_eq!(outcome.status(), 125, "{outcome}");
        outcome.assert_no_panic();
    });
}

#[test]
fn its_word_is_one_like_any_other_elsewhere_in_a_command_line() {
    for_each_user(|world| {
        let report = Case::new(WorkspaceWrite)
            .argv(["echo", "--ringfence-launcher", "3"])
            .run_in(world);
        report.assert_exit(0);
        assert_eq!(report.stdout(), "--ringfence-launcher 3\n");
        assert_eq!(world.bash("\"$BIN\" run --ringfence-launcher 3 4 5").status(), 125);
    });
}

#[test]
fn a_command_inside_that_says_the_word_gains_nothing() {
    Case::new(WorkspaceWrite)
        .options(BWRAP)
        .setup(KEEP)
        .shell(&format!(
            "for i in 3 4 5 6; do \"$BIN\" --ringfence-launcher $i $i $i; done; {ATTACK}"
        ))
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_full();
            assert_content_is_kept(world);
        });
}

#[test]
fn the_command_has_its_three_streams_and_nothing_of_the_launchers() {
    let list = "import os, stat; print(sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n)), \
        any(stat.S_ISSOCK(os.stat(n).st_mode) for n in (0, 1, 2)))";
    for mode in [ReadOnly, WorkspaceWrite] {
        Case::new(mode)
            .options(BWRAP)
            .argv(["python3", "-c", list])
            .run_as_each_user(|_, report| {
                assert_eq!(report.stdout(), "[0, 1, 2] False\n", "{report}");
            });
    }
}

#[test]
fn nothing_that_the_command_prints_is_taken_for_a_word_of_the_launchers() {
    // Records as the launcher writes them: that the boundary stands, that a step failed, that the run began.
    let records = r"printf 'A\0\0\0\0\0\0\0F\1\0\0\1\0\0\0S\0\0\0\0\0\0\0\1\2' | tee /dev/stderr; exit 3";
    Case::new(WorkspaceWrite)
        .options(BWRAP)
        .shell(records)
        .run_as_each_user(|_, report| {
            report.assert_exit(3).assert_full();
            assert_eq!(report.stdout(), report.stderr());
        });
}

/// The processes of a run, each with its parent's number and its name: the runner first.
fn family(runner: u32) -> Vec<(u32, String)> {
    let mut found = vec![(runner, "runner".to_owned())];
    let mut at = 0;
    while let Some((pid, _)) = found.get(at).cloned() {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|number| number.parse().ok()) {
            let name = std::fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
            found.push((child, name.trim().to_owned()));
        }
        at += 1;
    }
    found
}

/// Waits for what nobody tells.
fn until(holds: impl Fn() -> bool, what: &str) {
    let patience = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < patience, "never: {what}");
        std::thread::yield_now();
    }
}

/// Starts a run of some who want to stay, and kills one of the processes of this name when they run.
fn killed(world: &World, name: &str, number: usize) -> std::process::Output {
    world.prepare("rm -f ready; mkfifo ready; chmod 666 ready");
    let script =
        "setsid sleep 600 & (trap '' TERM HUP; sleep 601) & exec 3>ready; echo up >&3; exec 3>&-; wait; sleep 602";
    let case = Case::new(WorkspaceWrite).options(BWRAP).shell(script);
    let child = case
        .command_in(world)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(text(world.inside("ready")), "up\n");
    let sleeping = || family(child.id()).iter().filter(|(_, own)| own == "sleep").count() == 2;
    until(sleeping, "those who want to stay run");
    let all = family(child.id());
    let target = all
        .iter()
        .filter(|(_, own)| own == name)
        .nth(number)
        .unwrap_or_else(|| panic!("no {name} among {all:?}"));
    kill(Pid::from_raw(target.0.cast_signed()), Signal::SIGKILL).unwrap();
    let output = child.wait_with_output().unwrap();
    // Whoever has ended is a zombie until its new parent takes notice, and changes nothing any more.
    let lives = |pid: &u32, own: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(&format!("({own})")) && !stat.contains(") Z ") && !stat.contains(") X ")
    };
    let alive = || {
        let mut others = all.iter().filter(|(_, own)| own != "runner");
        others.any(|(pid, own)| lives(pid, own))
    };
    if name == "runner" {
        until(|| !alive(), "everybody is gone");
    } else {
        // The runner has said how the run went: then nobody may be left.
        assert!(!alive(), "{all:?}");
    }
    output
}

#[test]
fn nobody_outlives_bubblewrap_or_the_launcher_or_the_runner() {
    for_each_user(|world| {
        // The first reaper keeps bubblewrap, the second is the launcher.
        for (name, number) in [("bwrap", 0), ("rf-reaper", 0), ("rf-reaper", 1)] {
            let report = (0..20)
                .map(|_| serde_json::from_slice(&killed(world, name, number).stdout).unwrap())
                // It may be killed before it has told that the command began, and that is what is said then.
                .find(|report: &serde_json::Value| report["error"]["code"] != "INTERNAL")
                .expect("a run of which it was told that it began");
            assert_eq!(report["signal"], "SIGKILL", "{report:#}");
            assert!(report["exitCode"].is_null(), "{report:#}");
            assert_eq!(report["timedOut"], false, "{report:#}");
            assert!(report["sandbox"]["survivors"].is_null(), "nobody counted: {report:#}");
            assert_eq!(report["sandbox"]["backend"], "bwrap");
        }
        let output = killed(world, "runner", 0);
        assert!(output.stdout.is_empty(), "it was killed before it could say anything");
    });
}

#[test]
fn the_launcher_stands_where_nobody_without_landlock_reaches_it_either() {
    let reach = "
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
def tries(what, try_it):
    try:
        if try_it() not in (None, -1): print(what)
    except OSError: pass
for number in range(1, 65): 
    if number != 17: tries('signalled', lambda: os.kill(1, number))
tries('traced', lambda: libc.ptrace(16, 1, 0, 0)); tries('seized', lambda: libc.ptrace(0x4206, 1, 0, 0))
process = None
try: process = os.pidfd_open(1)
except OSError: pass
for number in range(64 if process else 0):
    tries('taken', lambda: libc.syscall(438, process, number, 0))
for name in 'root', 'cwd', 'exe', 'environ', 'mem', 'maps', 'fd/0', 'fd/1', 'fd/2', 'fd/3', 'fd/4', 'ns/mnt':
    tries(name, lambda: os.open('/proc/1/' + name, os.O_RDONLY))
for number in range(32): tries('link', lambda: os.readlink('/proc/1/fd/%d' % number) and 1)
space = ctypes.create_string_buffer(64)
vector = (ctypes.c_void_p * 2)(ctypes.addressof(space), 64)
tries('read', lambda: libc.syscall(310 if os.uname().machine == 'x86_64' else 270, 1, vector, 1, vector, 1, 0))
for name in 'oom_score_adj', 'coredump_filter', 'timerslack_ns', 'loginuid', 'comm', 'clear_refs':
    tries(name, lambda: os.write(os.open('/proc/1/' + name, os.O_WRONLY), b'1'))
print('alive', open('/proc/1/comm').read().strip(), len([p for p in os.listdir('/proc') if p.isdigit()]))
";
    for inside in [vec![], kernel_failing("landlock_create_ruleset", "ENOSYS")] {
        Case::new(WorkspaceWrite)
            .options(BWRAP)
            .inside(inside)
            .argv(["python3", "-c", reach])
            .run_as_each_user(|world, report| {
                assert_eq!(report.stdout(), "alive rf-reaper 2\n", "{report}");
                report.assert_exit(0);
                assert!(names(world.beside()).is_empty());
            });
    }
}
