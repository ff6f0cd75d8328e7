//! Calls that nobody can make with success: wrong arguments, attributes that cannot be, others' files.
//! Confinement has no part in their failure, so they are no denials.

use nix::libc;

use super::natural::assert_no_denials;
use crate::support::{World, for_each_user};

#[test]
#[rustfmt::skip]
fn descriptors_that_are_none_are_no_denial() {
    let rows = [
        ("fchmod-no-descriptor", libc::SYS_fchmod, "99 0", "EBADF"),
        ("fchown-no-descriptor", libc::SYS_fchown, "-1 0 0", "EBADF"),
        ("mkdir-no-descriptor", libc::SYS_mkdirat, "77 =x 0755", "EBADF"),
        ("fchmod-name-only", libc::SYS_fchmod, "^f 0600", "EBADF"),
        ("fchown-name-only", libc::SYS_fchown, "^f -1 -1", "EBADF"),
        ("fsetxattr-name-only", libc::SYS_fsetxattr, "^f =user.b =1 1 0", "EBADF"),
        ("ioctl-name-only", libc::SYS_ioctl, "^f 0x40086602 %0", "EBADF"),
    ];
    for_each_user(|world| assert_no_denials(world, &rows));
}

#[test]
#[rustfmt::skip]
fn addresses_that_are_none_are_no_denial() {
    let rows = [
        ("chmod-no-address", libc::SYS_fchmodat, "-100 8 0", "EFAULT"),
        ("create-no-address", libc::SYS_openat, "-100 8 0101 0644", "EFAULT"),
        ("openat2-no-address", libc::SYS_openat2, "-100 =f 8 24", "EFAULT"),
        ("xattr-no-address", libc::SYS_setxattr, "=f 8 =1 1 0", "EFAULT"),
        ("utimensat-no-address", libc::SYS_utimensat, "-100 =f 8 0", "EFAULT"),
        ("symlink-no-address", libc::SYS_symlinkat, "8 -100 =x", "EFAULT"),
        ("ioctl-no-address", libc::SYS_ioctl, "@f 0x40086602 8", "EFAULT"),
    ];
    for_each_user(|world| assert_no_denials(world, &rows));
}

#[test]
#[rustfmt::skip]
fn arguments_that_the_kernel_takes_from_nobody_are_no_denial() {
    let rows = [
        ("truncate-negative", libc::SYS_truncate, "=f -1", "EINVAL"),
        ("fchmodat2-flags", 452, "-100 =f 0 0xf00000", "EINVAL"),
        ("unlinkat-flags", libc::SYS_unlinkat, "-100 =f 1", "EINVAL"),
        ("renameat2-flags", libc::SYS_renameat2, "-100 =f -100 =x 3", "EINVAL"),
        ("linkat-flags", libc::SYS_linkat, "-100 =f -100 =x 1", "EINVAL"),
        ("fchownat-flags", libc::SYS_fchownat, "-100 =f -1 -1 1", "EINVAL"),
        ("utimensat-flags", libc::SYS_utimensat, "-100 =f 0 1", "EINVAL"),
        ("utimensat-times", libc::SYS_utimensat, "-100 =f %1,2000000000,1,0 0", "EINVAL"),
        ("openat2-size", libc::SYS_openat2, "-100 =f %1,0,0 8", "EINVAL"),
        ("openat2-flags", libc::SYS_openat2, "-100 =f %0x100000001,0,0 24", "EINVAL"),
        ("openat2-mode", libc::SYS_openat2, "-100 =f %1,0644,0 24", "EINVAL"),
        ("openat2-resolve", libc::SYS_openat2, "-100 =f %1,0,0x1000 24", "EINVAL"),
        ("unnamed-to-read", libc::SYS_openat, "-100 =d O_TMPFILE+O_RDONLY 0600", "EINVAL"),
        ("mknod-directory", libc::SYS_mknodat, "-100 =x 040644 0", "EPERM"),
        ("write-pipe-nobody-reads", libc::SYS_openat, "-100 =p 04001", "ENXIO"),
    ];
    for_each_user(|world| assert_no_denials(world, &rows));
}

#[test]
#[rustfmt::skip]
fn a_path_that_openat2_may_not_take_is_no_denial() {
    let rows = [
        ("beneath-absolute", libc::SYS_openat2, "-100 =$OUT/beneath-absolute/f %1,0,8 24", "EXDEV"),
        ("beneath-up", libc::SYS_openat2, "@d =../f %1,0,8 24", "EXDEV"),
        ("no-links", libc::SYS_openat2, "-100 =l %1,0,4 24", "ELOOP"),
    ];
    for_each_user(|world| assert_no_denials(world, &rows));
}

#[test]
#[rustfmt::skip]
fn attributes_that_are_not_there_or_cannot_be_are_no_denial() {
    let rows = [
        ("remove-missing", libc::SYS_removexattr, "=f =user.zz", "ENODATA"),
        ("replace-missing", libc::SYS_setxattr, "=f =user.zz =1 1 2", "ENODATA"),
        ("create-there", libc::SYS_setxattr, "=f =user.a =1 1 1", "EEXIST"),
        ("without-a-name", libc::SYS_setxattr, "=f = =1 1 0", "ERANGE"),
        ("long-name", libc::SYS_setxattr, "=f =user.$LONG =1 1 0", "ERANGE"),
        ("too-large", libc::SYS_setxattr, "=f =user.b =1 100000 0", "E2BIG"),
        ("flags", libc::SYS_setxattr, "=f =user.b =1 1 9", "EINVAL"),
        ("unknown-namespace", libc::SYS_setxattr, "=f =what.a =1 1 0", "EOPNOTSUPP"),
        ("no-namespace", libc::SYS_setxattr, "=f =a =1 1 0", "EOPNOTSUPP"),
        ("user-of-a-link", libc::SYS_lsetxattr, "=l =user.a =1 1 0", "EPERM"),
        ("user-of-a-pipe", libc::SYS_setxattr, "=p =user.a =1 1 0", "EPERM"),
    ];
    for_each_user(|world| assert_no_denials(world, &rows));
}

#[test]
#[rustfmt::skip]
fn what_mode_bits_and_owners_forbid_is_no_denial() {
    let rows = [
        ("write", libc::SYS_openat, "-100 =/etc/passwd 1", "EACCES"),
        ("openat2", libc::SYS_openat2, "-100 =/etc/passwd %1,0,0 24", "EACCES"),
        ("truncate", libc::SYS_truncate, "=/etc/passwd 0", "EACCES"),
        ("create", libc::SYS_openat, "-100 =/etc/x 0101 0644", "EACCES"),
        ("unnamed", libc::SYS_openat, "-100 =/etc O_TMPFILE+O_RDWR 0600", "EACCES"),
        ("mkdir", libc::SYS_mkdirat, "-100 =/etc/x 0755", "EACCES"),
        ("symlink", libc::SYS_symlinkat, "=x -100 =/etc/x", "EACCES"),
        ("unlink", libc::SYS_unlinkat, "-100 =/etc/passwd 0", "EACCES"),
        ("rename", libc::SYS_renameat2, "-100 =/etc/passwd -100 =/etc/x 0", "EACCES"),
        ("chmod", libc::SYS_fchmodat, "-100 =/etc/passwd 0777", "EPERM"),
        ("fchmod", libc::SYS_fchmod, "@/etc/passwd 0777", "EPERM"),
        ("chown", libc::SYS_fchownat, "-100 =/etc/passwd 65534 65534 0", "EPERM"),
        ("give-away", libc::SYS_fchownat, "-100 =f 0 -1 0", "EPERM"),
        ("give-to-a-group", libc::SYS_fchownat, "-100 =f -1 0 0", "EPERM"),
        ("times", libc::SYS_utimensat, "-100 =/etc/passwd %1,0,1,0 0", "EPERM"),
        ("now", libc::SYS_utimensat, "-100 =/etc/passwd 0 0", "EACCES"),
        ("attribute", libc::SYS_setxattr, "=/etc/passwd =user.a =1 1 0", "EACCES"),
        ("trusted", libc::SYS_setxattr, "=f =trusted.a =1 1 0", "EPERM"),
        ("security", libc::SYS_setxattr, "=f =security.a =1 1 0", "EPERM"),
        ("mount", libc::SYS_mount, "=none =d =tmpfs 0 0", "EPERM"),
        ("unmount", libc::SYS_umount2, "=/proc 0", "EPERM"),
    ];
    assert_no_denials(&World::anyone(), &rows);
}

#[test]
#[rustfmt::skip]
fn what_takes_a_privilege_is_no_denial_to_those_without() {
    let rows = [
        ("device", libc::SYS_mknodat, "-100 =x 020666 259", "EPERM"),
        ("immutable", libc::SYS_ioctl, "@f 0x40086602 %0x80010", "EPERM"),
        ("immutable-too", libc::SYS_ioctl, "@f 0x401c5820 %8,0,0,0", "EPERM"),
    ];
    assert_no_denials(&World::anyone(), &rows);
}
