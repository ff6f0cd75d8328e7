//! Containers and hardened hosts: what each gives landlock, bwrap, and whoever asks for no backend by name.

use std::fs;

use ringfence::SandboxMode::WorkspaceWrite;

use super::given::{Given, assert_refused, on_host};
use super::{ATTACK, KEEP, assert_nothing_ran};
use crate::support::{CONTAINER, Case, for_each_user};

/// Two layers that no host without namespaces has.
const OPEN: &[&str] = &["devices", "metadata"];

/// A user namespace of the caller's own in which root's rights over mounts are at hand, and are then given up.
const NAMESPACE: &[&str] = &[
    "unshare",
    "--user",
    "--map-current-user",
    "--keep-caps",
    "--mount",
    "bash",
    "-euc",
];
/// What comes last in a script for it.
const GIVE_UP: &str = r#"exec setpriv --no-new-privs --ambient-caps=-all --inh-caps=-all --bounding-set=-all "$@""#;

/// The words that start a program after a script in a namespace of its own, with no capability left.
fn after(script: &str) -> Vec<String> {
    let script = format!("{script}\n{GIVE_UP}");
    let words = NAMESPACE.iter().copied().chain([script.as_str(), "-"]);
    words.map(str::to_owned).collect()
}

/// A filter like those of hosts that restrict user namespaces: it refuses namespaces to everybody (`all`), or to
/// Ringfence alone (`own`), whose clone(2) shares memory, so that bubblewrap has what it asks for.
const REFUSE: &str = "
import ctypes, os, struct, sys
VM, SPACES = 0x100, 0x20000 | 0x10000000 | 0x20000000
clone, unshare = (56, 272) if os.uname().machine == 'x86_64' else (220, 97)
own = sys.argv[1] == 'own'
LOAD, EQUAL, ANY, RETURN = 0x20, 0x15, 0x45, 0x06
EPERM, ENOSYS, ALLOW = 0x50001, 0x50026, 0x7fff0000
rules = [(LOAD, 0, 0, 0), (EQUAL, 0, 1, 435), (RETURN, 0, 0, ENOSYS),
  (EQUAL, 1, 0, clone), (EQUAL, 0, 4, 0xffff if own else unshare), (LOAD, 0, 0, 16), (ANY, 0, 2, SPACES),
  (ANY, 0, 1, VM) if own else (RETURN, 0, 0, EPERM), (RETURN, 0, 0, EPERM), (RETURN, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *rule) for rule in rules))
class Program(ctypes.Structure): _fields_ = [('length', ctypes.c_ushort), ('rules', ctypes.c_void_p)]
program = Program(len(rules), ctypes.addressof(code))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execvp(sys.argv[2], sys.argv[2:])
";

#[test]
fn an_ordinary_host_gives_everything() {
    on_host::<&str>(&[], |_| {
        [Given::Full("landlock"), Given::Full("bwrap"), Given::Full("landlock")]
    });
}

#[test]
fn a_host_where_privileges_cannot_be_gained_gives_everything() {
    on_host(&["setpriv", "--no-new-privs"], |_| {
        [Given::Full("landlock"), Given::Full("bwrap"), Given::Full("landlock")]
    });
}

#[test]
fn root_without_any_capability_has_landlock_and_a_reason_why_not_bubblewrap() {
    let host = ["setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"];
    on_host(&host, |root| {
        if root {
            // Its own id, mapped into a user namespace, takes a capability (user_namespaces(7)).
            let reason = Given::Refused(&[("bwrap", "setting up uid map")]);
            [
                Given::Partial("landlock", OPEN),
                reason,
                Given::Partial("landlock", OPEN),
            ]
        } else {
            [Given::Full("landlock"), Given::Full("bwrap"), Given::Full("landlock")]
        }
    });
}

#[test]
fn root_that_may_not_mount_is_served_in_a_user_namespace() {
    let host = [
        "setpriv",
        "--no-new-privs",
        "--inh-caps=-all",
        "--bounding-set=-all,+setfcap",
    ];
    on_host(&host, |_| {
        [Given::Full("landlock"), Given::Full("bwrap"), Given::Full("landlock")]
    });
}

#[test]
fn a_host_that_allows_no_user_namespace_says_so() {
    let host = after("echo 0 > /proc/sys/user/max_user_namespaces");
    on_host(&host, |_| {
        let reason = Given::Refused(&[("bwrap", "/proc/sys/user/max_")]);
        [
            Given::Partial("landlock", OPEN),
            reason,
            Given::Partial("landlock", OPEN),
        ]
    });
}

#[test]
fn a_host_that_refuses_namespaces_to_everybody_says_so() {
    on_host(&["python3", "-c", REFUSE, "all"], |root| {
        let bwrap = Given::Refused(if root {
            &[("bwrap", "Creating new namespace failed: Operation not permitted")]
        } else {
            &[("bwrap", "No permissions to create new namespace")]
        });
        [
            Given::Partial("landlock", OPEN),
            bwrap,
            Given::Partial("landlock", OPEN),
        ]
    });
}

#[test]
fn where_bubblewrap_alone_may_make_namespaces_it_gives_everything() {
    on_host(&["python3", "-c", REFUSE, "own"], |_| {
        [
            Given::Partial("landlock", OPEN),
            Given::Full("bwrap"),
            Given::Partial("landlock", OPEN),
        ]
    });
}

#[test]
fn a_demand_for_everything_goes_on_to_the_backend_that_gives_it() {
    let host = ["python3", "-c", REFUSE, "own"];
    for_each_user(|world| {
        world.prepare(KEEP);
        let case = Case::new(WorkspaceWrite)
            .inside(host)
            .options(["--evidence", "off", "--require", "full"])
            .shell(ATTACK);
        Given::Full("bwrap").assert(world, &case.run_in(world));
        fs::remove_file(world.inside("ran")).unwrap();
        let neither = case.inside(["python3", "-c", REFUSE, "all"]).run_in(world);
        assert_refused(
            &neither,
            &[
                ("landlock", "devices, metadata"),
                ("bwrap", "did not make the boundary"),
            ],
        );
        assert_nothing_ran(world);
    });
}

#[test]
fn a_container_without_namespaces_has_landlock_alone() {
    on_host(&CONTAINER, |_| {
        let reason = Given::Refused(&[("bwrap", "namespace")]);
        [
            Given::Partial("landlock", OPEN),
            reason,
            Given::Partial("landlock", OPEN),
        ]
    });
}

#[test]
fn a_container_whose_root_is_read_only_gives_everything() {
    let host = "bwrap --ro-bind / / --bind $W $W --bind $OUT $OUT --dev-bind /dev /dev --proc /proc --";
    let host: Vec<_> = host.split(' ').collect();
    on_host(&host, |_| {
        [Given::Full("landlock"), Given::Full("bwrap"), Given::Full("landlock")]
    });
}

#[test]
fn where_a_new_proc_cannot_be_mounted_bubblewrap_says_so_and_landlock_serves_without() {
    let host = [
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        "--tmpfs",
        "/proc/irq",
        "--unshare-user",
        "--",
    ];
    on_host(&host, |root| {
        // Root could mount one, and what the container covers would be seen in it.
        let bwrap = Given::Refused(if root {
            &[("bwrap", "/proc/irq is covered")]
        } else {
            &[("bwrap", "mount proc")]
        });
        [Given::Full("landlock"), bwrap, Given::Full("landlock")]
    });
}

/// A container with a /dev of its own that has no shared memory; each node there is on a mount of its own.
const WITHOUT_SHM: [&str; 13] = [
    "bwrap",
    "--bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "bash",
    "-euc",
    "rmdir /dev/shm; exec \"$@\"",
    "-",
    "env",
];

#[test]
fn a_container_with_a_dev_of_its_own_and_no_shared_memory_gives_everything() {
    on_host(&WITHOUT_SHM, |_| {
        [Given::Full("landlock"), Given::Full("bwrap"), Given::Full("landlock")]
    });
}

#[test]
fn shared_memory_is_the_runs_own_where_the_host_has_none() {
    Case::new(WorkspaceWrite)
        .options(["--temp", "private", "--backend", "bwrap"])
        .inside(WITHOUT_SHM)
        .shell("echo a > /dev/shm/a && cat /dev/shm/a")
        .run_as_each_user(|_, report| {
            report.assert_exit(0);
            assert_eq!(report.stdout(), "a\n", "{report}");
        });
}

#[test]
fn where_there_is_no_proc_bubblewrap_says_so_and_landlock_gives_what_it_can() {
    let host = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/proc", "--"];
    on_host(&host, |root| {
        let reason = Given::Refused(&[("bwrap", "No such file or directory")]);
        // A user namespace is made through /proc.
        let landlock = if root {
            Given::Full("landlock")
        } else {
            Given::Partial("landlock", OPEN)
        };
        [landlock, reason, landlock]
    });
}
