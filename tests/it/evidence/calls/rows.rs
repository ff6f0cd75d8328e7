//! The calls that change files: what each is given, and how its denial reads.

use nix::libc;

/// What becomes of a call inside the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// It changes something.
    Changes,
    /// It works and changes nothing that can be seen.
    Works,
    /// It works where the file system knows it.
    MayWork,
    /// It leads across the border, so it is refused from both sides.
    Across,
    /// It is refused everywhere, and to root alone it would be news.
    Mounts,
}

/// One call: what it is given, and how its denial reads.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) number: libc::c_long,
    pub(super) function: Option<&'static str>,
    pub(super) args: &'static str,
    pub(super) op: &'static str,
    /// What is refused, in the row's own directory.
    pub(super) on: &'static str,
    pub(super) inside: Inside,
}

/// A row; `function` is the call's name in the C library, where it has one with the same arguments.
const fn row(
    name: &'static str,
    number: libc::c_long,
    function: Option<&'static str>,
    args: &'static str,
    denial: (&'static str, &'static str),
    inside: Inside,
) -> Row {
    Row {
        name,
        number,
        function,
        args,
        op: denial.0,
        on: denial.1,
        inside,
    }
}

/// In each row's directory: a file `f` with the attribute `user.a`, another file `g`, an empty
/// directory `d`, a link `l` to `f`, a link `dangling` to `new`, a pipe `p`. `$B` is that
/// directory, `$O` the one of the same name on the other side of the border, `$U` the user.
pub(super) const ROOM: &str = "mkdir room; cd room; echo keep > f; echo other > g; mkdir d; ln -s f l; ln -s new dangling; mkfifo p; \
     python3 -c 'import os; os.setxattr(\"f\", \"user.a\", b\"b\")'; touch -d 2020-01-01 f g; cd ..";

#[rustfmt::skip]
pub(super) fn everywhere() -> Vec<Row> {
    use Inside::{Across, Changes, MayWork, Mounts, Works};
    vec![
        // open(2) has the bits 1 write, 2 both, 0o100 create, 0o200 exclusive, 0o1000 truncate, 0o2000 append.
        row("openat-write", libc::SYS_openat, Some("openat"), "@$B =f 1", ("write", "f"), Works),
        row("openat-both", libc::SYS_openat, Some("openat"), "-100 =$B/f 2", ("write", "f"), Works),
        row("openat-append", libc::SYS_openat, Some("openat"), "-100 =$B/f 02001", ("write", "f"), Works),
        row("openat-truncate", libc::SYS_openat, Some("openat"), "-100 =$B/f 01000", ("write", "f"), Changes),
        row("openat-create", libc::SYS_openat, Some("openat"), "@$B =new 0101 0644", ("create", "new"), Changes),
        row("openat-create-to-read", libc::SYS_openat, Some("openat"), "@$B =new 0100 0644", ("create", "new"), Changes),
        row("openat-exclusive", libc::SYS_openat, Some("openat"), "@$B =new 0301 0644", ("create", "new"), Changes),
        row("openat-create-there", libc::SYS_openat, Some("openat"), "@$B =f 0101 0644", ("write", "f"), Works),
        row("openat-dangling", libc::SYS_openat, Some("openat"), "@$B =dangling 0101 0644", ("create", "new"), Changes),
        row("openat-link", libc::SYS_openat, Some("openat"), "@$B =l 1", ("write", "f"), Works),
        row("openat-pipe", libc::SYS_openat, Some("openat"), "@$B =p 2", ("write", "p"), Works),
        row("openat-unnamed", libc::SYS_openat, Some("openat"), "-100 =$B/d O_TMPFILE+O_RDWR 0600", ("create", "d"), Works),
        row("openat2-write", libc::SYS_openat2, None, "@$B =f %1,0,0 24", ("write", "f"), Works),
        row("openat2-create", libc::SYS_openat2, None, "@$B =new %0101,0644,0 24", ("create", "new"), Changes),
        row("mkdirat", libc::SYS_mkdirat, Some("mkdirat"), "@$B =new 0755", ("mkdir", "new"), Changes),
        row("mknodat", libc::SYS_mknodat, Some("mknodat"), "@$B =new 010644 0", ("mknod", "new"), Changes),
        row("mknodat-file", libc::SYS_mknodat, Some("mknodat"), "@$B =new 0100644 0", ("mknod", "new"), Changes),
        row("symlinkat", libc::SYS_symlinkat, Some("symlinkat"), "=f @$B =new", ("symlink", "new"), Changes),
        row("linkat", libc::SYS_linkat, Some("linkat"), "@$B =f @$B =new 0", ("link", "f"), Changes),
        row("linkat-follow", libc::SYS_linkat, Some("linkat"), "@$B =l @$B =new 0x400", ("link", "f"), Changes),
        row("linkat-across", libc::SYS_linkat, Some("linkat"), "@$B =f @$O =new 0", ("link", "new"), Across),
        row("unlinkat", libc::SYS_unlinkat, Some("unlinkat"), "@$B =f 0", ("remove", "f"), Changes),
        row("unlinkat-link", libc::SYS_unlinkat, Some("unlinkat"), "@$B =l 0", ("remove", "l"), Changes),
        row("unlinkat-directory", libc::SYS_unlinkat, Some("unlinkat"), "@$B =d 0x200", ("remove", "d"), Changes),
        row("renameat2", libc::SYS_renameat2, Some("renameat2"), "@$B =f @$B =new 0", ("rename", "f"), Changes),
        row("renameat2-exchange", libc::SYS_renameat2, Some("renameat2"), "@$B =f @$B =g 2", ("rename", "f"), Changes),
        row("renameat2-across", libc::SYS_renameat2, Some("renameat2"), "@$B =f @$O =new 1", ("rename", "new"), Across),
        row("truncate", libc::SYS_truncate, Some("truncate"), "=$B/f 0", ("truncate", "f"), Changes),
        row("fchmod", libc::SYS_fchmod, Some("fchmod"), "@$B/f 0600", ("chmod", "f"), Changes),
        row("fchmodat", libc::SYS_fchmodat, Some("fchmodat"), "@$B =f 0600 0", ("chmod", "f"), Changes),
        row("fchmodat2", 452, None, "@$B =f 0600 0", ("chmod", "f"), Changes),
        row("fchown", libc::SYS_fchown, Some("fchown"), "@$B/f $U $U", ("chown", "f"), Changes),
        row("fchownat", libc::SYS_fchownat, Some("fchownat"), "@$B =f $U $U 0", ("chown", "f"), Changes),
        row("utimensat", libc::SYS_utimensat, Some("utimensat"), "@$B =f %1,0,1,0 0", ("utime", "f"), Changes),
        row("utimensat-now", libc::SYS_utimensat, Some("utimensat"), "@$B =f 0 0", ("utime", "f"), Changes),
        row("utimensat-descriptor", libc::SYS_utimensat, None, "@$B/f 0 0 0", ("utime", "f"), Changes),
        row("setxattr", libc::SYS_setxattr, Some("setxattr"), "=$B/f =user.b =1 1 0", ("xattr", "f"), Changes),
        row("lsetxattr", libc::SYS_lsetxattr, Some("lsetxattr"), "=$B/f =user.b =1 1 0", ("xattr", "f"), Changes),
        row("fsetxattr", libc::SYS_fsetxattr, Some("fsetxattr"), "@$B/f =user.b =1 1 0", ("xattr", "f"), Changes),
        row("setxattrat", 463, None, "@$B =f 0 =user.b %0,0 16", ("xattr", "f"), Changes),
        row("removexattr", libc::SYS_removexattr, Some("removexattr"), "=$B/f =user.a", ("xattr", "f"), Changes),
        row("lremovexattr", libc::SYS_lremovexattr, Some("lremovexattr"), "=$B/f =user.a", ("xattr", "f"), Changes),
        row("fremovexattr", libc::SYS_fremovexattr, Some("fremovexattr"), "@$B/f =user.a", ("xattr", "f"), Changes),
        row("removexattrat", 466, None, "@$B =f 0 =user.a", ("xattr", "f"), Changes),
        row("file_setattr", 469, None, "@$B =f %0x80,0,0 24 0", ("flags", "f"), Changes),
        row("ioctl-flags", libc::SYS_ioctl, Some("ioctl"), "@$B/f 0x40086602 !", ("flags", "f"), Changes),
        row("ioctl-attributes", libc::SYS_ioctl, Some("ioctl"), "@$B/f 0x401c5820 %0x80,0,0,0", ("flags", "f"), Changes),
        row("ioctl-version", libc::SYS_ioctl, Some("ioctl"), "@$B/f 0x40087602 %7", ("flags", "f"), MayWork),
        row("mount", libc::SYS_mount, Some("mount"), "=none =$B/d =tmpfs 0 0", ("mount", "d"), Mounts),
        row("umount2", libc::SYS_umount2, Some("umount2"), "=$B/d 0", ("mount", "d"), Mounts),
        row("pivot_root", libc::SYS_pivot_root, None, "=$B/d =$B/d", ("mount", "d"), Mounts),
    ]
}

/// Calls that newer architectures do without.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
pub(super) fn here() -> Vec<Row> {
    use Inside::{Across, Changes, Works};
    vec![
        row("open", libc::SYS_open, Some("open"), "=$B/f 1", ("write", "f"), Works),
        row("open-create", libc::SYS_open, Some("open"), "=$B/new 0101 0644", ("create", "new"), Changes),
        row("creat", libc::SYS_creat, Some("creat"), "=$B/new 0644", ("create", "new"), Changes),
        row("creat-there", libc::SYS_creat, Some("creat"), "=$B/f 0644", ("write", "f"), Changes),
        row("mkdir", libc::SYS_mkdir, Some("mkdir"), "=$B/new 0755", ("mkdir", "new"), Changes),
        row("mknod", libc::SYS_mknod, Some("mknod"), "=$B/new 010644 0", ("mknod", "new"), Changes),
        row("symlink", libc::SYS_symlink, Some("symlink"), "=f =$B/new", ("symlink", "new"), Changes),
        row("link", libc::SYS_link, Some("link"), "=$B/f =$B/new", ("link", "f"), Changes),
        row("link-across", libc::SYS_link, Some("link"), "=$B/f =$O/new", ("link", "new"), Across),
        row("unlink", libc::SYS_unlink, Some("unlink"), "=$B/f", ("remove", "f"), Changes),
        row("rmdir", libc::SYS_rmdir, Some("rmdir"), "=$B/d", ("remove", "d"), Changes),
        row("rename", libc::SYS_rename, Some("rename"), "=$B/f =$B/new", ("rename", "f"), Changes),
        row("rename-over", libc::SYS_rename, Some("rename"), "=$B/f =$B/g", ("rename", "f"), Changes),
        row("rename-directory", libc::SYS_rename, Some("rename"), "=$B/d =$B/new", ("rename", "d"), Changes),
        row("rename-across", libc::SYS_rename, Some("rename"), "=$B/f =$O/new", ("rename", "new"), Across),
        row("rename-directory-across", libc::SYS_rename, Some("rename"), "=$B/d =$O/new", ("rename", "new"), Across),
        row("renameat", libc::SYS_renameat, Some("renameat"), "@$B =f @$B =new", ("rename", "f"), Changes),
        row("chmod", libc::SYS_chmod, Some("chmod"), "=$B/f 0600", ("chmod", "f"), Changes),
        row("chmod-directory", libc::SYS_chmod, Some("chmod"), "=$B/d 0700", ("chmod", "d"), Changes),
        row("chown", libc::SYS_chown, Some("chown"), "=$B/l $U $U", ("chown", "f"), Changes),
        row("lchown", libc::SYS_lchown, Some("lchown"), "=$B/l $U $U", ("chown", "l"), Changes),
        row("utime", libc::SYS_utime, Some("utime"), "=$B/f %1,1", ("utime", "f"), Changes),
        row("utimes", libc::SYS_utimes, Some("utimes"), "=$B/f %1,0,1,0", ("utime", "f"), Changes),
        row("futimesat", libc::SYS_futimesat, Some("futimesat"), "@$B =f %1,0,1,0", ("utime", "f"), Changes),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) const fn here() -> Vec<Row> {
    Vec::new()
}
