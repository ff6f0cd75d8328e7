//! Through the system: its own files, switches, devices, control groups, swap and accounts. It takes root.

use super::way::{Way, python, shell};
use super::ways;

const fn root(script: &'static str) -> Way {
    shell(script).for_root()
}

const fn root_python(program: &'static str) -> Way {
    python(program).for_root()
}

/// Whether a path is there on this host.
macro_rules! has {
    ($path:literal) => {
        || {
            if std::path::Path::new($path).exists() {
                Ok(())
            } else {
                Err($path)
            }
        }
    };
}

ways! {
    the_files_of_the_system: root(
        "for d in /etc /usr/local/bin /root /var/spool /opt; do echo x > $d/ringfence-test-$(basename \"$(dirname \"$W\")\"); done"
    )
    .witness("ls -d {/etc,/usr/local/bin,/root,/var/spool,/opt}/ringfence-test-$(basename \"$(dirname \"$W\")\") 2> /dev/null; true")
    .undo("rm -f {/etc,/usr/local/bin,/root,/var/spool,/opt}/ringfence-test-$(basename \"$(dirname \"$W\")\")");
    a_switch_of_the_kernel: root("echo 44 > /proc/sys/fs/lease-break-time")
        .witness("cat /proc/sys/fs/lease-break-time")
        .undo("echo 45 > /proc/sys/fs/lease-break-time")
    .alone();
    a_switch_of_the_kernel_in_a_new_user_namespace: root(
        "unshare -Ur bash -c 'echo 43 > /proc/sys/fs/lease-break-time'; \
         echo 43 > /proc/self/root/proc/sys/fs/lease-break-time"
    )
    .witness("cat /proc/sys/fs/lease-break-time")
    .undo("echo 45 > /proc/sys/fs/lease-break-time")
    .alone();
    a_switch_of_a_driver: root("chmod 640 /sys/kernel/mm/ksm/sleep_millisecs; echo 21 > /sys/kernel/mm/ksm/sleep_millisecs")
        .needs(has!("/sys/kernel/mm/ksm/sleep_millisecs"))
        .witness("stat -c %a /sys/kernel/mm/ksm/sleep_millisecs; cat /sys/kernel/mm/ksm/sleep_millisecs")
        .undo("chmod 644 /sys/kernel/mm/ksm/sleep_millisecs; echo 20 > /sys/kernel/mm/ksm/sleep_millisecs")
    .alone();
    a_control_group_is_made: root("mkdir \"$(cat \"$HOME/groups\")/new\"")
        .before(MAKE_GROUP)
        .witness("ls -dl \"$(cat \"$HOME/groups\")\"/*/ | cut -d' ' -f1,9-; true")
        .undo(REMOVE_GROUP)
        .needs(control_groups);
    a_process_moves_to_another_control_group: root("echo $$ > \"$(cat \"$HOME/groups\")/cgroup.procs\"; for i in {1..20000}; do :; done")
        .before(MAKE_GROUP)
        .witness(USED_IN_GROUP)
        .undo(REMOVE_GROUP)
        .needs(control_groups);
    a_process_is_born_in_another_control_group: root_python(r"
group = os.open(open(os.environ['HOME'] + '/groups').read().strip(), os.O_RDONLY)
about = struct.pack('QQQQQQQQQQQ', 0x200000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, group)
if call(435, about, 88) == 0:
    for i in range(300000): pass
    os._exit(0)
os.wait()
")
        .before(MAKE_GROUP)
        .witness(USED_IN_GROUP)
        .undo(REMOVE_GROUP)
        .needs(control_groups);
    the_accounts_of_processes_are_written_outside: root_python("import subprocess; call((163, 89), T + '/f'); subprocess.run(['/bin/true'])")
        .undo("python3 -c 'import ctypes; ctypes.CDLL(None).acct(None)'")
    .alone();
    a_file_outside_becomes_swap: root_python("call((167, 224), T + '/swap', 0)")
        .before("head -c 1048576 /dev/zero > \"$T/swap\"; chmod 600 \"$T/swap\"; mkswap \"$T/swap\"")
        .witness("grep -cF \"$T/swap\" /proc/swaps; true")
        .undo("swapoff \"$T/swap\" 2> /dev/null; true")
    .alone();
    a_file_outside_becomes_a_device: root("losetup \"$(cat \"$HOME/loop\")\" \"$T/image\"; echo x > \"$(cat \"$HOME/loop\")\"")
        .before("head -c 65536 /dev/zero > \"$T/image\"; losetup -f > \"$HOME/loop\"")
        .witness("losetup -j \"$T/image\"")
        .undo("losetup -d $(losetup -j \"$T/image\" | cut -d: -f1) 2> /dev/null; rm -f \"$HOME/loop\"")
        .needs(has!("/dev/loop-control"))
    .alone();
    a_device_node_of_ones_own_for_a_file_outside: root(
        "mknod \"$S/disk\" b $(stat -c '%Hr %Lr' \"$(cat \"$HOME/loop\")\"); echo x > \"$S/disk\"; sync \"$S/disk\"; echo y > \"$(cat \"$HOME/loop\")\"; sync \"$(cat \"$HOME/loop\")\""
    )
    .before("head -c 65536 /dev/zero > \"$T/image\"; losetup -f --show \"$T/image\" > \"$HOME/loop\"")
    .undo("losetup -d \"$(cat \"$HOME/loop\")\"; rm -f \"$HOME/loop\"")
    .needs(has!("/dev/loop-control"))
    .alone();
    a_device_is_asked_for_by_a_request: root_python(
        "fcntl.ioctl(os.open('/dev/loop-control', os.O_RDONLY), 0x4c80, 3000)"
    )
    .witness("ls -d /dev/loop3000 2> /dev/null; true")
    .undo("python3 -c 'import fcntl; fcntl.ioctl(open(\"/dev/loop-control\"), 0x4c81, 3000)' 2> /dev/null; true")
    .needs(has!("/dev/loop-control"))
    .alone();
    a_device_is_changed_through_a_descriptor_for_reading: root_python(
        "fcntl.ioctl(os.open(open(os.environ['HOME'] + '/loop').read().strip(), os.O_RDONLY), 0x4c01, 0)"
    )
    .before("head -c 65536 /dev/zero > \"$T/image\"; losetup -f --show \"$T/image\" > \"$HOME/loop\"")
    .witness("losetup -j \"$T/image\"")
    .undo("losetup -d $(losetup -j \"$T/image\" | cut -d: -f1) 2> /dev/null; rm -f \"$HOME/loop\"")
    .needs(has!("/dev/loop-control"))
    .alone();
    a_map_of_the_kernels_is_pinned_outside: root_python(r"
fd = call((321, 280), 0, struct.pack('IIIII', 2, 4, 8, 1, 0), 20)
name = ctypes.create_string_buffer((T + '/d/new').encode())
call((321, 280), 6, struct.pack('QI', ctypes.addressof(name), fd), 12)
")
    .before("mount -t bpf none \"$T/d\" && chmod 777 \"$T/d\"")
    .undo("umount \"$T/d\"");
    the_log_of_the_kernel_gets_a_buffer_more: root("mkdir /sys/kernel/tracing/instances/ringfence-test-$(basename \"$(dirname \"$W\")\")")
        .witness("ls /sys/kernel/tracing/instances | grep \"$(basename \"$(dirname \"$W\")\")\"; true")
        .undo("rmdir /sys/kernel/tracing/instances/ringfence-test-* 2> /dev/null; true")
        .needs(has!("/sys/kernel/tracing/instances"));
}

/// Where this host keeps the groups of version 2.
fn control_groups() -> Result<(), &'static str> {
    if crate::support::text("/proc/mounts").contains(" cgroup2 ") {
        Ok(())
    } else {
        Err("a mount of control groups")
    }
}

/// A control group of the user's own, at the top of the tree.
const MAKE_GROUP: &str = "top=$(grep -m1 ' cgroup2 ' /proc/mounts | cut -d' ' -f2); g=$top/ringfence-test-$(basename \"$(dirname \"$W\")\"); \
    mkdir \"$g\" && chown \"$U\" \"$g\" \"$g/cgroup.procs\" && echo \"$g\" > \"$HOME/groups\"";

/// Whether anybody ever did anything in it.
const USED_IN_GROUP: &str = "grep -c '^usage_usec 0$' \"$(cat \"$HOME/groups\")/cpu.stat\"; true";

/// Moves out who is in it, and removes it.
const REMOVE_GROUP: &str = "g=$(cat \"$HOME/groups\"); while read -r p; do echo $p > \"${g%/*}/cgroup.procs\"; done < \"$g/cgroup.procs\"; \
    rmdir \"$g/new\" 2> /dev/null; rmdir \"$g\"; rm -f \"$HOME/groups\"";
