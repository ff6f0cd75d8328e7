//! What fails without confinement as well is no denial, and what changes nothing is not refused.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use nix::libc;
use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use super::{CALL, WATCHED, assert_same, compile, denials, records, snapshot, watched};
use crate::support::{Case, World, for_each_user};

/// A call by its number, what it is given, and the error it has without confinement.
pub(super) type Failure = (&'static str, libc::c_long, &'static str, &'static str);

/// In each row's directory: files `f` and `g`, directories `d` (empty) and `e` (with a file `x`),
/// a link `l` to `f`, links `a` and `b` to one another, a link `dangling`, a pipe `p` that nobody reads.
const ROOM: &str = "mkdir room; cd room; echo keep > f; echo other > g; mkdir d e; echo x > e/x; ln -s f l; ln -s a b; \
     ln -s b a; ln -s new dangling; mkfifo p; python3 -c 'import os; os.setxattr(\"f\", \"user.a\", b\"b\")'; cd ..";

/// Names too long: `$LONG` for a directory, `$PATH_MAX` for a call.
const LONG: &str = "LONG=$(printf 'n%.0s' {1..256}); PATH_MAX=$(printf '/n%.0s' {1..2600})";

/// Each row's calls in its own directory, a line with the error for each.
fn script(rows: &[Failure]) -> String {
    let mut script = format!("{LONG}\n");
    for (name, number, args, _) in rows {
        let args: Vec<_> = args.split(' ').map(|arg| format!("\"{arg}\"")).collect();
        let _ = writeln!(
            script,
            "cd $OUT/{name}; echo {name} $($TOOLS/call {number} {})",
            args.join(" ")
        );
    }
    script
}

/// Asserts that the rows fail as they say without confinement, and that none is recorded within it.
pub(super) fn assert_no_denials(world: &World, rows: &[Failure]) {
    let names: Vec<_> = rows.iter().map(|(name, ..)| *name).collect();
    world.prepare(&format!(
        "{ROOM}; for row in {}; do cp -a room $OUT/$row; done; rm -r room",
        names.join(" ")
    ));
    compile(world, "call", CALL, "");
    let tools = super::tools(world);
    let unconfined = world.prepare(&format!("TOOLS={tools}\n{}", script(rows)));
    let natural: Vec<_> = unconfined.lines().map(str::to_owned).collect();
    let expected: Vec<_> = rows
        .iter()
        .map(|(name, _, _, errno)| format!("{name} {errno}"))
        .collect();
    assert_same(&expected, &natural, "without confinement");

    let before = snapshot(&world.beside());
    for evidence in WATCHED {
        let report = watched(&Case::new(WorkspaceWrite).shell(&script(rows)), evidence, world).run_in(world);
        report.assert_exit(0).assert_full();
        assert!(!report.stdout().contains(" ok"), "{report}");
        // A report may say that it does not know, where memory could not be read.
        let listed = if report.has("/sandbox/denials") {
            records(world, &report)
        } else {
            Vec::new()
        };
        assert_same(&[], &listed, &format!("{evidence}: these are no denials"));
        assert_ne!(report.field("/sandbox/denied"), true, "{report}");
        assert_same(&before, &snapshot(&world.beside()), "the outside changed");
    }
}

#[test]
#[rustfmt::skip]
fn what_is_there_already_and_what_is_not_there_is_no_denial() {
    let rows = [
        ("mkdir-there", libc::SYS_mkdirat, "-100 =d 0755", "EEXIST"),
        ("mkdir-dangling", libc::SYS_mkdirat, "-100 =dangling 0755", "EEXIST"),
        ("exclusive-there", libc::SYS_openat, "-100 =f 0301 0644", "EEXIST"),
        ("exclusive-dangling", libc::SYS_openat, "-100 =dangling 0301 0644", "EEXIST"),
        ("symlink-there", libc::SYS_symlinkat, "=x -100 =f", "EEXIST"),
        ("link-there", libc::SYS_linkat, "-100 =f -100 =g 0", "EEXIST"),
        ("mknod-there", libc::SYS_mknodat, "-100 =f 010644 0", "EEXIST"),
        ("rename-there-forbidden", libc::SYS_renameat2, "-100 =f -100 =g 1", "EEXIST"),
        ("unlink-nothing", libc::SYS_unlinkat, "-100 =no 0", "ENOENT"),
        ("rmdir-nothing", libc::SYS_unlinkat, "-100 =no 0x200", "ENOENT"),
        ("rename-nothing", libc::SYS_renameat2, "-100 =no -100 =x 0", "ENOENT"),
        ("rename-into-nothing", libc::SYS_renameat2, "-100 =f -100 =no/x 0", "ENOENT"),
        ("exchange-nothing", libc::SYS_renameat2, "-100 =f -100 =no 2", "ENOENT"),
        ("link-nothing", libc::SYS_linkat, "-100 =no -100 =x 0", "ENOENT"),
        ("open-nothing", libc::SYS_openat, "-100 =no 1", "ENOENT"),
        ("create-in-nothing", libc::SYS_openat, "-100 =no/x 0101 0644", "ENOENT"),
        ("create-without-a-name", libc::SYS_openat, "-100 = 0101 0644", "ENOENT"),
        ("unnamed-in-nothing", libc::SYS_openat, "-100 =no O_TMPFILE+O_RDWR 0600", "ENOENT"),
        ("mkdir-in-nothing", libc::SYS_mkdirat, "-100 =no/x 0755", "ENOENT"),
        ("symlink-to-no-name", libc::SYS_symlinkat, "= -100 =x", "ENOENT"),
        ("truncate-nothing", libc::SYS_truncate, "=no 0", "ENOENT"),
        ("chmod-nothing", libc::SYS_fchmodat, "-100 =no 0", "ENOENT"),
        ("chmod-dangling", libc::SYS_fchmodat, "-100 =dangling 0", "ENOENT"),
    ];
    for_each_user(|world| assert_no_denials(world, &rows));
}

#[test]
#[rustfmt::skip]
fn a_directory_where_none_may_be_and_none_where_one_must_be_is_no_denial() {
    let rows = [
        ("write-directory", libc::SYS_openat, "-100 =d 1", "EISDIR"),
        ("create-directory", libc::SYS_openat, "-100 =d 0101 0644", "EISDIR"),
        ("unlink-directory", libc::SYS_unlinkat, "-100 =d 0", "EISDIR"),
        ("truncate-directory", libc::SYS_truncate, "=d 0", "EISDIR"),
        ("truncate-pipe", libc::SYS_truncate, "=p 0", "EINVAL"),
        ("rmdir-file", libc::SYS_unlinkat, "-100 =f 0x200", "ENOTDIR"),
        ("rmdir-full", libc::SYS_unlinkat, "-100 =e 0x200", "ENOTEMPTY"),
        ("mkdir-in-file", libc::SYS_mkdirat, "-100 =f/x 0755", "ENOTDIR"),
        ("create-in-file", libc::SYS_openat, "-100 =f/x 0101 0644", "ENOTDIR"),
        ("chmod-in-file", libc::SYS_fchmodat, "-100 =f/x 0", "ENOTDIR"),
        ("create-beneath-a-file", libc::SYS_openat, "@f =x 0101 0644", "ENOTDIR"),
        ("mkdir-beneath-a-file", libc::SYS_mkdirat, "@f =x 0755", "ENOTDIR"),
        ("link-directory", libc::SYS_linkat, "-100 =d -100 =x 0", "EPERM"),
        ("mkdir-up", libc::SYS_mkdirat, "-100 =.. 0755", "EEXIST"),
        ("mkdir-root", libc::SYS_mkdirat, "-100 =/ 0755", "EEXIST"),
    ];
    for_each_user(|world| assert_no_denials(world, &rows));
}

#[test]
#[rustfmt::skip]
fn a_rename_that_cannot_be_is_no_denial() {
    let rows = [
        ("rename-file-over-directory", libc::SYS_renameat2, "-100 =f -100 =d 0", "EISDIR"),
        ("rename-directory-over-file", libc::SYS_renameat2, "-100 =d -100 =f 0", "ENOTDIR"),
        ("rename-over-full", libc::SYS_renameat2, "-100 =d -100 =e 0", "ENOTEMPTY"),
        ("rename-into-itself", libc::SYS_renameat2, "-100 =d -100 =d/x 0", "EINVAL"),
        ("rename-over-its-parent", libc::SYS_renameat2, "-100 =e/x -100 =e 0", "ENOTEMPTY"),
        ("rename-dot", libc::SYS_renameat2, "-100 =d/. -100 =x 0", "EBUSY"),
    ];
    for_each_user(|world| assert_no_denials(world, &rows));
}

#[test]
#[rustfmt::skip]
fn a_slash_behind_what_is_no_directory_is_no_denial() {
    let rows = [
        ("write-slash", libc::SYS_openat, "-100 =f/ 1", "ENOTDIR"),
        ("write-as-directory", libc::SYS_openat, "-100 =f O_DIRECTORY+O_WRONLY", "ENOTDIR"),
        ("create-slash", libc::SYS_openat, "-100 =new/ 0101 0644", "EISDIR"),
        ("unnamed-in-file", libc::SYS_openat, "-100 =f O_TMPFILE+O_RDWR 0600", "ENOTDIR"),
        ("unlink-slash", libc::SYS_unlinkat, "-100 =f/ 0", "ENOTDIR"),
        ("rmdir-dot", libc::SYS_unlinkat, "-100 =d/. 0x200", "EINVAL"),
        ("rename-slash", libc::SYS_renameat2, "-100 =f -100 =x/ 0", "ENOTDIR"),
        ("link-slash", libc::SYS_linkat, "-100 =f -100 =x/ 0", "ENOENT"),
        ("symlink-slash", libc::SYS_symlinkat, "=f -100 =x/", "ENOENT"),
        ("mknod-slash", libc::SYS_mknodat, "-100 =x/ 010644 0", "ENOENT"),
        ("chmod-slash", libc::SYS_fchmodat, "-100 =f/ 0600", "ENOTDIR"),
    ];
    for_each_user(|world| assert_no_denials(world, &rows));
}

#[test]
#[rustfmt::skip]
fn links_that_loop_and_names_that_are_too_long_are_no_denial() {
    let rows = [
        ("write-loop", libc::SYS_openat, "-100 =a 1", "ELOOP"),
        ("create-loop", libc::SYS_openat, "-100 =a 0101 0644", "ELOOP"),
        ("chmod-loop", libc::SYS_fchmodat, "-100 =a 0", "ELOOP"),
        ("write-no-link", libc::SYS_openat, "-100 =l O_NOFOLLOW+O_WRONLY", "ELOOP"),
        ("create-no-link", libc::SYS_openat, "-100 =l O_NOFOLLOW+O_WRONLY+O_CREAT 0644", "ELOOP"),
        ("create-long", libc::SYS_openat, "-100 =$LONG 0101 0644", "ENAMETOOLONG"),
        ("mkdir-long", libc::SYS_mkdirat, "-100 =$LONG 0755", "ENAMETOOLONG"),
        ("unlink-long", libc::SYS_unlinkat, "-100 =$LONG 0", "ENAMETOOLONG"),
        ("rename-long", libc::SYS_renameat2, "-100 =f -100 =$LONG 0", "ENAMETOOLONG"),
        ("symlink-long", libc::SYS_symlinkat, "=f -100 =$LONG", "ENAMETOOLONG"),
        ("chmod-long", libc::SYS_fchmodat, "-100 =$LONG 0", "ENAMETOOLONG"),
        ("create-longest", libc::SYS_openat, "-100 =$PATH_MAX 0101 0644", "ENAMETOOLONG"),
        ("chmod-longest", libc::SYS_fchmodat, "-100 =$PATH_MAX 0", "ENAMETOOLONG"),
    ];
    for_each_user(|world| assert_no_denials(world, &rows));
}

#[test]
fn the_tools_of_a_shell_say_the_same_as_without_confinement() {
    for_each_user(|world| {
        world.prepare("mkdir -p $OUT/d/e; echo keep > $OUT/f");
        let script = "cd $OUT; mkdir -p d/e; rm -f nothing; mkdir d; rmdir d; ln -s x f; ln f d/../f; set -C; echo x > f; \
                      [ -w f ]; rmdir nothing; touch -c nothing; mv nothing d; true";
        let before = snapshot(&world.beside());
        for evidence in WATCHED {
            let report = watched(&Case::new(WorkspaceWrite).shell(script), evidence, world).run_in(world);
            assert_same(&[], &records(world, &report), &format!("{report}"));
            assert_same(&before, &snapshot(&world.beside()), "the outside changed");
        }
    });
}

#[test]
fn names_of_others_in_a_sticky_directory_are_no_denial() {
    let Some(_) = World::of_root("names_of_others_in_a_sticky_directory_are_no_denial") else {
        return;
    };
    let world = World::anyone();
    let sticky = world.outside("sticky");
    fs::create_dir(&sticky).unwrap();
    fs::set_permissions(&sticky, fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(sticky.join("theirs"), "keep").unwrap();
    assert_eq!(fs::metadata(&sticky).unwrap().uid(), 0);
    let script = "cd $OUT/sticky; rm -f theirs; mv theirs ours; ln theirs ours; exit 0";
    for evidence in WATCHED {
        let report = watched(&Case::new(WorkspaceWrite).shell(script), evidence, &world).run_in(&world);
        assert_same(&[], &records(&world, &report), &format!("{report}"));
    }
}

#[test]
fn what_the_host_itself_has_read_only_is_no_denial() {
    let Some(world) = World::of_root("what_the_host_itself_has_read_only_is_no_denial") else {
        return;
    };
    world.prepare("mkdir $OUT/medium; echo keep > $OUT/f");
    let mounted = "mount -t tmpfs none $OUT/medium && echo keep > $OUT/medium/f && mount -o remount,ro $OUT/medium && exec \"$@\"";
    let script = "cd $OUT/medium; echo x > f; echo x > new; mkdir d; rm -f f; chmod 600 f; touch -c f; ln -s x l; mv f g; echo x > ../new";
    for evidence in WATCHED {
        let case = Case::new(WorkspaceWrite)
            .shell(script)
            .inside(["unshare", "-m", "bash", "-euc", mounted, "-"]);
        let report = watched(&case, evidence, &world).run_in(&world);
        assert_same(
            &["create out/new EROFS bash".to_owned()],
            &records(&world, &report),
            &format!("{report}"),
        );
    }
}

#[test]
fn reading_is_no_denial_however_it_is_done() {
    let script = "set -e; cd $OUT; cat f l e/x > /dev/null; ls -laR . > /dev/null; find . -newer f > /dev/null; grep -r keep . > /dev/null; \
         tar cf - . > /dev/null; cp -a e $W/e; stat -L l > /dev/null; md5sum f > /dev/null; exec 3< f; cat <&3 > /dev/null; \
         python3 -B -c 'import mmap, os; fd = os.open(\"f\", os.O_RDONLY); mmap.mmap(fd, 0, prot=mmap.PROT_READ); os.access(\"f\", os.W_OK); \
         os.open(\"f\", os.O_PATH); os.open(\".\", os.O_DIRECTORY); os.listxattr(\"f\")'; head -c1 /dev/zero /dev/urandom > /dev/null";
    for mode in [ReadOnly, WorkspaceWrite] {
        for_each_user(|world| {
            world.prepare("cd $OUT; echo keep > f; mkdir e; echo x > e/x; ln -s f l");
            // What is copied needs a place to be copied to.
            let script = if mode == ReadOnly {
                script.replace("$W/e", "$TMPDIR/e")
            } else {
                script.to_owned()
            };
            for evidence in WATCHED {
                world.prepare("rm -rf $W/e");
                let report = watched(&Case::new(mode).shell(&script), evidence, world).run_in(world);
                report.assert_exit(0);
                assert!(denials(&report).is_empty(), "{report}");
            }
        });
    }
}

#[test]
fn what_changes_nothing_is_not_refused() {
    // The kernel refuses none of these beneath a read-only mount.
    let script = "U=$(id -u); cd $OUT\n\
         flock f echo locked by a descriptor for reading\n\
         echo existing $($TOOLS/call openat -100 =f 0100 0644)\n\
         echo omitted $($TOOLS/call utimensat -100 =f %0,0x3ffffffe,0,0x3ffffffe 0)\n\
         echo lock $($TOOLS/call openat @. =f 02000100 0600)";
    for mode in [ReadOnly, WorkspaceWrite] {
        for_each_user(|world| {
            world.prepare("echo keep > $OUT/f");
            compile(world, "call", CALL, "");
            for evidence in ["off", "auto", "strict"] {
                let report = watched(&Case::new(mode).shell(script), evidence, world).run_in(world);
                report.assert_exit(0).assert_denied(false);
                let said = "locked by a descriptor for reading\nexisting ok\nomitted ok\nlock ok\n";
                assert_eq!(report.stdout(), said, "{evidence}\n{report}");
            }
        });
    }
}
