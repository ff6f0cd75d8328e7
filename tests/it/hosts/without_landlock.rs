//! Kernels without Landlock, or with one that lies: bubblewrap and a filter then hold alone.

use std::fs;

use ringfence::SandboxMode::{self, ReadOnly, WorkspaceWrite};

use super::{kernel_failing, kernel_with};
use crate::support::{Case, World, for_each_user, names, text};

/// Everything that could change what is outside, one attempt after another; none may stop the next.
const ATTACKS: &str = r"
exec 2>/dev/null
echo x > $OUT/f; : > $OUT/f; truncate -s 0 $OUT/f; echo x >> $OUT/f; echo x > $OUT/new
rm -f $OUT/f; rm -rf $OUT/d; mv $OUT/f $OUT/g; mv $OUT/f hauled; ln $OUT/f hard && echo x > hard
ln -s $OUT/f soft && { echo x > soft; chmod 777 soft; touch -d 2001-01-01 soft; }
ln -s x $OUT/link; mkdir $OUT/made; rmdir $OUT/d; mkfifo $OUT/pipe; mknod $OUT/node c 1 3
chmod 777 $OUT/f; chmod 777 $OUT/d; chown 0:0 $OUT/f; chgrp 65534 $OUT/f; touch -d 2001-01-01 $OUT/f; touch -h -d 2001-01-01 $OUT/l
chattr +a $OUT/f; cp $OUT/f here && mv -f here $OUT/f; dd if=/dev/zero of=$OUT/f count=1
exec 9<$OUT/f; chmod 777 /proc/self/fd/9; echo x > /proc/self/fd/9; exec 9<&-
cd $OUT; echo x > f; chmod 777 .; cd -
for p in /proc/[0-9]* /proc/$(cat $OUT/pid); do echo x > $p/root$OUT/f; echo x > $p/cwd/f; for n in 3 4 5 6 7; do echo x > $p/fd/$n; done; done
unshare -Urm bash -c 'mount -o remount,bind,rw /; mount -o remount,rw /; mount --bind $W $OUT; mount -t tmpfs t $OUT; umount -l $OUT; chmod 777 $OUT/f; echo x > $OUT/f'
unshare -Ur chown 0:0 $OUT/f; unshare -Urpf --mount-proc true; nsenter -t 1 -m true; chroot / bash -c 'echo x > $OUT/f'
mount -o remount,bind,rw /; mount -o remount,bind,rw $OUT; umount -l $OUT; umount -l /; mount -t tmpfs t $OUT; pivot_root / /
echo x > /proc/sys/kernel/core_pattern; echo 0 > /proc/sys/vm/swappiness; echo 1 > /proc/sys/kernel/sysrq
mkdir /sys/fs/cgroup/ringfence-test; echo x > /sys/kernel/uevent_helper; mkdir /dev/made; chmod 600 /dev /dev/null /dev/tty; rm -f /dev/null
for device in /dev/vda /dev/sda /dev/mem /dev/kmem /dev/loop0; do echo x > $device; done
python3 - <<'PY'
import ctypes, fcntl, mmap, os
libc, out = ctypes.CDLL(None), os.environ['OUT']
f = out + '/f'
def tries(attempt):
    try: attempt()
    except (OSError, ValueError): pass
tries(lambda: os.setxattr(f, 'user.x', b'x')); tries(lambda: os.removexattr(f, 'user.kept')); tries(lambda: os.utime(f, (1, 1)))
tries(lambda: os.chmod(f, 0o777)); tries(lambda: os.truncate(f, 0)); tries(lambda: os.mknod(out + '/made'))
tries(lambda: os.open(out, os.O_TMPFILE | os.O_RDWR)); tries(lambda: os.link(f, out + '/linked'))
reader = os.open(f, os.O_RDONLY)
tries(lambda: os.fchmod(reader, 0o777)); tries(lambda: os.utime(reader, (1, 1))); tries(lambda: os.setxattr(reader, 'user.x', b'x'))
tries(lambda: fcntl.ioctl(reader, 0x40086602, ctypes.c_long(0x20).value.to_bytes(8, 'little')))
tries(lambda: mmap.mmap(reader, 4, mmap.MAP_SHARED, mmap.PROT_WRITE).write(b'xxxx'))
held = os.open(out, os.O_PATH)
tries(lambda: os.open('f', os.O_WRONLY, dir_fd=held)); tries(lambda: os.unlink('f', dir_fd=held)); tries(lambda: os.chmod('f', 0o777, dir_fd=held))
for number in (425, 428, 429, 430, 431, 432, 442, 304, 165): libc.syscall(number, 1, 0, 0, 0, 0, 0)
PY
echo ran > $W/ran; exit 0
";

/// What is outside: contents, modes, times, owners, attributes, and what the kernel is set to.
const STATE: &str = "cd $OUT; find . -printf '%p %y %m %T@ %u %g %s %n %l\\n' | sort; cat f; \
    python3 -c 'import os; print(os.listxattr(\"f\"))'; cat /proc/sys/kernel/core_pattern /proc/sys/vm/swappiness; \
    stat -c '%a %u' /dev /dev/null /dev/tty; ls /sys/fs/cgroup";
const SETUP: &str = "mkdir $OUT/d; echo keep > $OUT/f; chmod 644 $OUT/f; ln -s f $OUT/l; \
    python3 -c 'import os; os.setxattr(os.environ[\"OUT\"] + \"/f\", \"user.kept\", b\"k\")'; touch $OUT/pid";

/// What other processes pass in over sockets stands on their mounts, where only Landlock looks.
const PASSED_IN: &[&str] = &["inherited-descriptors"];

/// Attacks what is outside, and a neighbour who holds it open, and asserts that nothing has changed.
fn assert_holds(world: &World, mode: SandboxMode, kernel: &[String], options: &[&str]) {
    world.prepare(SETUP);
    let neighbour = world.neighbour("exec 7>>$OUT/f; cd $OUT; echo ready; exec sleep 600");
    fs::write(world.outside("pid"), neighbour.pid().to_string()).unwrap();
    let before = world.prepare(STATE);
    let report = Case::new(mode)
        .inside(kernel.iter().cloned())
        .options(options.iter().copied())
        .shell(ATTACKS)
        .run_in(world);
    assert_eq!(world.prepare(STATE), before, "{report}");
    report.assert_exit(0);
    if kernel.is_empty() {
        report.assert_full();
    } else {
        report.assert_partial(PASSED_IN);
    }
    assert_eq!(report.text("/sandbox/backend"), "bwrap", "{report}");
    assert_eq!(world.inside("ran").exists(), mode == WorkspaceWrite, "{report}");
    if mode == ReadOnly {
        assert!(names(world.workspace()).is_empty());
    }
}

#[test]
fn without_landlock_nothing_outside_is_changed_by_any_means() {
    for mode in [ReadOnly, WorkspaceWrite] {
        for errno in ["ENOSYS", "EOPNOTSUPP"] {
            for_each_user(|world| {
                let kernel = kernel_failing("landlock_create_ruleset", errno);
                assert_holds(world, mode, &kernel, &["--evidence", "off"]);
            });
        }
    }
}

#[test]
fn watched_or_not_a_kernel_that_lies_about_landlock_changes_nothing() {
    let lying = kernel_with(["landlock_restrict_self:retval=0", "keyctl:error=ENOSYS"]);
    for evidence in ["off", "auto", "strict"] {
        for_each_user(|world| assert_holds(world, WorkspaceWrite, &lying, &["--evidence", evidence]));
    }
}

#[test]
fn with_landlock_the_same_attacks_change_nothing_under_either_backend() {
    for_each_user(|world| assert_holds(world, WorkspaceWrite, &[], &["--backend", "bwrap"]));
}

#[test]
fn the_reasons_of_every_backend_are_told_when_none_is_left() {
    for_each_user(|world| {
        let kernel = kernel_failing("landlock_create_ruleset", "ENOSYS");
        let report = Case::new(WorkspaceWrite)
            .inside(
                kernel
                    .into_iter()
                    .chain(["env", "PATH=/nonexistent"].map(str::to_owned)),
            )
            .argv(["/bin/touch", "ran"])
            .run_in(world);
        super::given::assert_refused(
            &report,
            &[
                ("landlock", "this kernel has no Landlock"),
                ("bwrap", "bubblewrap is not installed"),
            ],
        );
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn where_nothing_can_be_passed_in_enforcement_is_full_without_landlock() {
    Case::new(WorkspaceWrite)
        .inside(kernel_failing("landlock_create_ruleset", "ENOSYS"))
        .options(["--unix-sockets", "none", "--require", "full"])
        .argv(["true"])
        .run_as_each_user(|_, report| {
            report.assert_exit(0).assert_full();
            assert_eq!(report.field("/sandbox/backend"), "bwrap");
        });
}

#[test]
fn ordinary_work_goes_on_without_landlock() {
    let work = "set -e; git init -q .; echo a > a; git add a; git -c user.name=a -c user.email=a@b commit -qm one; mkdir d; mv a d/a; \
        ln d/a b; chmod 600 b; touch -d 2001-01-01 b; f=$(mktemp); rm $f; cat <<< here; echo > /dev/null; git log --oneline | wc -l";
    Case::new(WorkspaceWrite)
        .inside(kernel_failing("landlock_create_ruleset", "ENOSYS"))
        .shell(work)
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_partial(PASSED_IN).assert_denied(false);
            assert_eq!(report.stdout(), "here\n1\n", "{report}");
            assert_eq!(text(world.inside("b")), "a\n");
        });
}
