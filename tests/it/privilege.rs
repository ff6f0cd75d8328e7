//! Ways around confinement by power: mounts, capabilities, handles, foreign calls.

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use crate::escapes::{KEEP, python, untouched};
use crate::support::{Case, for_each_user, names};

#[test]
fn a_new_user_namespace_gives_no_mounts() {
    Case::new(WorkspaceWrite)
        .setup(KEEP)
        .shell(
            "unshare -Urm bash -c 'mount -t tmpfs t $OUT && echo x > $OUT/x; mount --bind $W $OUT && echo y > $OUT/y; \
             mount -o remount,bind,rw /; echo z > $OUT/z'; unshare -Um true; exit 0",
        )
        .run_as_each_user(|world, report| {
            report.assert_exit(0);
            untouched(world);
            assert_eq!(names(world.beside()), ["f"]);
        });
}

#[test]
fn the_mount_calls_are_refused() {
    Case::new(WorkspaceWrite)
        .setup(KEEP)
        .argv(python(
            "o, w = out.encode(), os.getcwd().encode()
attempt(lambda: call('mount', b'none', b'/', None, 0x1020, None), lambda: call('mount', w, o, None, 0x1000, None),
        lambda: call('umount2', w, 2), lambda: call('open_tree', -100, b'/', 1),
        lambda: call('mount_setattr', -100, b'/', 0x8000, struct.pack('QQQQ', 0, 1, 0, 0), 32),
        lambda: call('pivot_root', b'.', b'.'), lambda: call('chroot', b'.'))",
        ))
        .run_as_each_user(|world, report| {
            report.assert_exit(0);
            assert!(!report.stdout().contains("done"), "{report}");
            untouched(world);
        });
}

#[test]
fn the_command_holds_no_capability_and_gains_none() {
    // Of the bounding set nothing can be gained: no_new_privs stands before it.
    Case::new(WorkspaceWrite)
        .argv([
            "grep",
            "-E",
            "^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs|Seccomp:)",
            "/proc/self/status",
        ])
        .run_as_each_user(|_, report| {
            let zero = "0000000000000000";
            let sets = ["Inh", "Prm", "Eff", "Amb"].map(|set| format!("Cap{set}:\t{zero}\n"));
            assert_eq!(report.stdout(), sets.concat() + "NoNewPrivs:\t1\nSeccomp:\t2\n");
        });
}

#[test]
fn root_inside_is_still_inside() {
    Case::new(WorkspaceWrite)
        .setup(KEEP)
        .shell(
            "mount -t tmpfs t $OUT; mknod $W/disk b 8 0; mknod $W/null c 1 3; echo 1 > /proc/sys/vm/drop_caches; \
             nsenter -t 1 -m sh -c 'echo x > $OUT/f'; chroot / sh -c 'echo x > $OUT/f'; chown nobody $OUT/f; \
             hostname elsewhere; echo x > /sys/kernel/uevent_helper; su nobody -s /bin/sh -c 'echo x > $OUT/f'; exit 0",
        )
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_full();
            untouched(world);
            assert!(names(world.workspace()).is_empty());
        });
}

#[test]
fn a_file_cannot_be_opened_by_its_handle() {
    // The handle is made outside, where nothing hinders that.
    let make = "python3 -B -c 'import ctypes, os, struct, sys
h = ctypes.create_string_buffer(struct.pack(\"Ii\", 128, 0), 136); m = ctypes.c_int()
assert ctypes.CDLL(None).name_to_handle_at(-100, (os.environ[\"OUT\"] + \"/f\").encode(), h, ctypes.byref(m), 0) == 0
open(\"handle\", \"wb\").write(h.raw)'";
    Case::new(WorkspaceWrite)
        .setup(&format!("{KEEP}; {make}"))
        .argv(python(
            "h = open('handle', 'rb').read()
def write():
    fd = libc.open_by_handle_at(os.open('/', os.O_RDONLY), h, os.O_WRONLY)
    if fd < 0: raise OSError(ctypes.get_errno(), 'handle')
    os.write(fd, b'x')
attempt(write)",
        ))
        .run_as_each_user(|world, report| {
            report.assert_exit(0);
            assert_eq!(report.stdout(), "1\n", "EPERM is the answer:\n{report}");
            untouched(world);
        });
}

#[test]
fn calls_that_pass_by_the_filter_are_not_there() {
    Case::new(ReadOnly)
        .argv(python(
            "calls['x32_getpid'] = (0x40000000 | 39, -1)
attempt(lambda: call('io_uring_setup', 1, ctypes.create_string_buffer(256)), lambda: call('x32_getpid'),
        lambda: call('add_key', b'user', b'a', b'b', 1, -3), lambda: call('finit_module', 0, b'', 0))",
        ))
        .run_as_each_user(|_, report| {
            // ENOSYS twice, then EPERM twice.
            assert_eq!(report.stdout(), "38\n38\n1\n1\n");
        });
}

#[test]
fn a_mount_that_appears_later_is_not_writable() {
    // Mounts of one namespace appear in those that are made from it, unless somebody cuts them off.
    let script = r#"
        "$BIN" run -m workspace-write -c 'touch ready; until [ -e go ]; do sleep 0.02; done; echo x > $OUT/m/x; chmod 700 $OUT/m; echo ran' &
        until [ -e ready ]; do sleep 0.02; done
        mount -t tmpfs t $OUT/m; touch go; wait; ls $OUT/m; stat -c %a $OUT/m"#;
    for_each_user(|world| {
        world.prepare("mkdir $OUT/m");
        let user = if world.uid() == 0 { "-m" } else { "-mr" };
        let mut command = world.command("unshare");
        command.args([user, "--propagation", "shared", "bash", "-euc", script]);
        let outcome = world.outcome(command);
        assert_eq!(outcome.stdout(), "ran\n1777\n", "{outcome}");
    });
}
