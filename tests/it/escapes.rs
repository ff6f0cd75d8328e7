//! Ways around confinement that are known in public. What counts is what became of the outside.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use crate::support::{Case, World, for_each_user, names, text};

/// Python that calls each function of a list and prints `done` or the errno.
const TRY: &str = r"
import ctypes, fcntl, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
out = os.environ['OUT']
x86 = os.uname().machine == 'x86_64'
calls = dict(mount=(165, 40), umount2=(166, 39), pivot_root=(155, 41), chroot=(161, 51), ptrace=(101, 117),
             setns=(308, 268), add_key=(248, 217), finit_module=(313, 273), io_uring_setup=(425, 425),
             open_tree=(428, 428), pidfd_getfd=(438, 438), mount_setattr=(442, 442))
def call(name, *args):
    if libc.syscall(calls[name][0 if x86 else 1], *args) < 0: raise OSError(ctypes.get_errno(), name)
def attempt(*functions):
    for function in functions:
        try: function(); print('done')
        except OSError as error: print(error.errno)
";

/// A command line that runs [`TRY`] and more.
pub(crate) fn python(program: &str) -> [String; 5] {
    ["python3", "-B", "-I", "-c", &format!("{TRY}{program}")].map(str::to_owned)
}

pub(crate) fn untouched(world: &World) {
    let file = world.outside("f");
    let now = fs::metadata(&file).unwrap();
    assert_eq!(text(&file), "keep\n");
    assert_eq!(
        (now.mode() & 0o7777, now.mtime(), now.uid()),
        (0o644, 1_577_836_800, world.uid())
    );
}

/// Prepares the file that [`untouched`] looks at.
pub(crate) const KEEP: &str = "echo keep > $OUT/f; chmod 644 $OUT/f; touch -d 2020-01-01 $OUT/f";

// --- by path ----------------------------------------------------------------------------------

#[test]
fn a_symbolic_link_inside_leads_nowhere_outside() {
    Case::new(WorkspaceWrite)
        .setup(&format!("{KEEP}; ln -s $OUT/f l; ln -s $OUT d"))
        .shell("echo x > l; echo x > d/new; chmod 777 l; touch l; rm d/f; ln -s $OUT e; echo x > e/f; exit 0")
        .run_as_each_user(|world, report| {
            report.assert_exit(0);
            untouched(world);
            assert_eq!(names(world.beside()), ["f"]);
        });
}

#[test]
fn a_file_outside_cannot_be_linked_in_and_written() {
    Case::new(WorkspaceWrite)
        .setup(KEEP)
        .shell("ln $OUT/f h && echo x > h; ln -L /proc/self/fd/3 i 3< $OUT/f && echo x > i; exit 0")
        .run_as_each_user(|world, report| {
            report.assert_exit(0);
            untouched(world);
            assert!(names(world.workspace()).is_empty());
        });
}

#[test]
fn the_magic_links_of_proc_lead_nowhere() {
    Case::new(WorkspaceWrite)
        .setup(KEEP)
        .shell(
            "for p in self $$ 1 $PPID; do echo x > /proc/$p/root$OUT/a; echo x > /proc/$p/root$OUT/f; \
             echo x > /proc/$p/cwd/../out/b; chmod 777 /proc/$p/root$OUT/f; done; \
             exec 3< $OUT/f; echo x > /proc/self/fd/3; chmod 777 /proc/self/fd/3; exit 0",
        )
        .run_as_each_user(|world, report| {
            report.assert_exit(0);
            untouched(world);
            assert_eq!(names(world.beside()), ["f"]);
        });
}

#[test]
fn truncation_is_a_write() {
    Case::new(WorkspaceWrite)
        .setup(KEEP)
        .argv(python(
            "f = out + '/f'
attempt(lambda: os.truncate(f, 0), lambda: os.open(f, os.O_RDONLY | os.O_TRUNC),
        lambda: os.ftruncate(os.open(f, os.O_RDONLY), 0), lambda: os.posix_fallocate(os.open(f, os.O_RDONLY), 0, 9))",
        ))
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_full();
            assert!(!report.stdout().contains("done"), "{report}");
            untouched(world);
        });
}

#[test]
fn a_pipe_or_device_outside_takes_nothing() {
    for mode in [ReadOnly, WorkspaceWrite] {
        for_each_user(|world| {
            // Opening these for writing changes no file system, so a read-only mount lets it pass.
            world.prepare("mkfifo $OUT/p; [ $(id -u) != 0 ] || mknod -m 666 $OUT/null c 1 3; touch $OUT/null");
            let neighbour = world.neighbour("echo ready; exec cat $OUT/p > $OUT/got");
            let shell = "echo x > $OUT/p; echo y 1<> $OUT/p; echo x > $OUT/null && echo written > written; exit 3";
            Case::new(mode).shell(shell).run_in(world).assert_exit(3).assert_full();
            drop(neighbour);
            assert_eq!(text(world.outside("got")), "");
            assert!(names(world.workspace()).is_empty(), "the device was written");
        });
    }
}

#[test]
fn a_directory_that_is_swapped_for_a_link_lets_nothing_out() {
    Case::new(WorkspaceWrite)
        .setup(&format!("{KEEP}; mkdir d; echo inside > d/f"))
        .argv(python(
            "import threading, time
end = time.time() + 1.5
def swap():
    while time.time() < end:
        try: os.rename('d', 't'); os.symlink(out, 'd'); os.unlink('d'); os.rename('t', 'd')
        except OSError: pass
threading.Thread(target=swap).start()
while time.time() < end:
    for call in (lambda: open('d/f', 'w').write('x'), lambda: os.chmod('d/f', 0o777), lambda: os.utime('d/f', (1, 1)),
                 lambda: os.unlink('d/f'), lambda: open('d/new', 'w').write('x')):
        try: call()
        except OSError: pass",
        ))
        .run_as_each_user(|world, report| {
            report.assert_exit(0);
            untouched(world);
            assert_eq!(names(world.beside()), ["f"]);
        });
}

#[test]
fn a_workspace_that_is_swapped_for_a_link_during_the_run_lets_nothing_out() {
    for_each_user(|world| {
        world.prepare(KEEP);
        let wait = "touch ready; until [ -e go ]; do sleep 0.02; done";
        let case = Case::new(WorkspaceWrite).shell(&format!(
            "{wait}; echo a > here; echo x > $W/f; echo x > $W/new; chmod 777 $W/f; exit 0"
        ));
        let run = case
            .command_in(world)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let ready = world.inside("ready");
        patiently(|| ready.exists());
        let moved = world.outside("../moved");
        fs::rename(world.workspace(), &moved).unwrap();
        symlink(world.beside(), world.workspace()).unwrap();
        fs::write(moved.join("go"), "").unwrap();
        assert!(run.wait_with_output().unwrap().status.success());
        assert_eq!(text(moved.join("here")), "a\n");
        untouched(world);
        assert_eq!(names(world.beside()), ["f"]);
    });
}

/// Waits until something holds, but not for ever.
fn patiently(holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "it never came to pass");
        thread::sleep(Duration::from_millis(10));
    }
}

// --- by descriptor ----------------------------------------------------------------------------

#[test]
fn an_inherited_descriptor_does_not_reach_the_command() {
    for_each_user(|world| {
        world.prepare(KEEP);
        for mode in ["read-only", "workspace-write"] {
            let outcome = world.bash(&format!(
                "exec 9>> $OUT/f 8< $OUT 7< $OUT/f\n\
                 $BIN run -m {mode} -c 'echo x >&9; echo x > /proc/self/fd/9; chmod 777 /proc/self/fd/7; \
                 echo x > /proc/self/fd/8/new; ls /proc/self/fd'"
            ));
            assert_eq!(outcome.stdout(), "0\n1\n2\n3\n", "{outcome}");
            untouched(world);
        }
        assert_eq!(names(world.beside()), ["f"]);
    });
}

#[test]
fn a_neighbours_descriptors_and_memory_are_out_of_reach() {
    for_each_user(|world| {
        world.prepare(KEEP);
        // Without capabilities it is no stronger than the command: nothing but the boundary is in the way.
        let weak = if world.uid() == 0 {
            "setpriv --bounding-set=-all --inh-caps=-all"
        } else {
            ""
        };
        let neighbour = world.neighbour(&format!("exec 7>> $OUT/f; echo ready; exec {weak} sleep 600"));
        let pid = neighbour.pid();
        let report = Case::new(WorkspaceWrite)
            .argv(python(&format!(
                "p = '/proc/{pid}/'
attempt(lambda: open(p + 'fd/7', 'a').write('x'), lambda: open(p + 'root' + out + '/n', 'w'), lambda: open(p + 'mem', 'r+b'),
        lambda: call('ptrace', 16, {pid}, 0, 0), lambda: call('pidfd_getfd', os.pidfd_open({pid}), 7, 0),
        lambda: call('setns', os.pidfd_open({pid}), 0x20000))"
            )))
            .run_in(world);
        report.assert_exit(0).assert_full();
        assert!(!report.stdout().contains("done"), "{report}");
        untouched(world);
        assert_eq!(names(world.beside()), ["f"]);
    });
}

#[test]
fn metadata_does_not_change_through_a_descriptor_opened_for_reading() {
    for mode in [ReadOnly, WorkspaceWrite] {
        Case::new(mode)
            .setup(KEEP)
            .argv(python(
                "fd = os.open(out + '/f', os.O_RDONLY)
attempt(lambda: os.fchmod(fd, 0o777), lambda: os.utime(fd, (1, 1)), lambda: os.setxattr(fd, 'user.a', b'1'),
        lambda: os.fchown(fd, 12, 12), lambda: fcntl.ioctl(fd, 0x40086602, struct.pack('l', 0x40)),
        lambda: os.chmod('/proc/self/fd/%d' % fd, 0o777), lambda: os.chmod('f', 0o777, dir_fd=os.open(out, os.O_RDONLY)))
print(len(os.listxattr(fd)))",
            ))
            .run_as_each_user(|world, report| {
                report.assert_exit(0).assert_full();
                assert!(!report.stdout().contains("done") && report.stdout().ends_with("\n0\n"), "{report}");
                untouched(world);
            });
    }
}

#[test]
fn a_file_named_as_input_is_read_and_not_handed_over() {
    for json in [Some("--json"), None] {
        for_each_user(|world| {
            world.prepare(KEEP);
            let mut command = world.command(world.program());
            command
                .arg("run")
                .args(json)
                .args(["-m", "workspace-write", "--report", "report"]);
            command.args(["--stdin".as_ref(), world.outside("f").as_os_str(), "-c".as_ref()]);
            command
                .arg("cat > got; chmod 777 /proc/self/fd/0; touch /proc/self/fd/0; echo x > /proc/self/fd/0; exit 0");
            let outcome = world.outcome(command);
            assert_eq!(outcome.status(), 0, "{outcome}");
            assert_eq!(text(world.inside("got")), "keep\n");
            assert!(
                text(world.inside("report")).contains(r#""enforcement":"full""#),
                "{outcome}"
            );
            untouched(world);
        });
    }
}

#[test]
fn the_device_behind_standard_input_keeps_its_mode_bits() {
    let before = fs::metadata("/dev/null").unwrap().mode() & 0o7777;
    for_each_user(|world| {
        for json in [Some("--json"), None] {
            for mode in ["read-only", "workspace-write"] {
                let mut command = world.command(world.program());
                command.arg("run").args(json).args(["-m", mode, "--"]).args(python(
                    "attempt(*[(lambda fd=fd: os.fchmod(fd, 0o600)) for fd in range(3)], lambda: os.utime(0, (1, 1)))",
                ));
                let outcome = world.outcome(command);
                let after = fs::metadata("/dev/null").unwrap().mode() & 0o7777;
                if after != before {
                    // Whatever the verdict, the machine goes on.
                    fs::set_permissions("/dev/null", fs::Permissions::from_mode(before)).unwrap();
                }
                assert_eq!(after, before, "{outcome}");
            }
        }
    });
}

#[test]
fn the_terminal_keeps_its_mode_bits_and_takes_no_injected_input() {
    for_each_user(|world| {
        let probe = python(
            "attempt(lambda: os.fchmod(0, 0o777), lambda: fcntl.ioctl(0, 0x5412, b'x'), lambda: os.open('/dev/tty', os.O_RDWR))",
        );
        fs::write(world.inside("probe.py"), &probe[4]).unwrap();
        let inner = "stat -c %a $(tty) > before; $BIN run -m workspace-write -- python3 -B -I probe.py > said; stat -c %a $(tty) > after";
        let mut command = world.command("script");
        command.args(["-qec", inner, "/dev/null"]);
        let outcome = world.outcome(command);
        let said = |name: &str| text(world.inside(name));
        assert_eq!(said("after"), said("before"), "{outcome}");
        assert_eq!(
            said("said").lines().last(),
            Some("done"),
            "the run keeps its terminal: {outcome}"
        );
        assert_eq!(
            said("said").lines().filter(|&line| line == "done").count(),
            1,
            "{}",
            said("said")
        );
    });
}
