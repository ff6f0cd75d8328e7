//! What a path means: the record names the object that the kernel would have changed, however it was reached.

use std::fmt::Write;

use ringfence::SandboxMode::WorkspaceWrite;

use super::{CALL, WATCHED, assert_same, attempts, compile, snapshot, watched};
use crate::support::{Case, World, for_each_user, names};

/// Commands, and what each is recorded as: what, and on what.
type Rows<'a> = [(&'a str, &'a [&'a str])];

/// Runs every command in a shell of its own, in the workspace, and compares all that was recorded.
fn assert_recorded(world: &World, rows: &Rows<'_>) {
    compile(world, "call", CALL, "");
    let mut script = "U=$(id -u)\n".to_owned();
    for (command, _) in rows {
        let _ = writeln!(script, "({command})");
    }
    script.push_str("exit 0");
    let mut expected: Vec<_> = rows
        .iter()
        .flat_map(|(_, lines)| lines.iter().map(|&line| line.to_owned()))
        .collect();
    expected.sort();
    expected.dedup();
    let before = snapshot(&world.beside());
    for evidence in WATCHED {
        let report = watched(&Case::new(WorkspaceWrite).shell(&script), evidence, world).run_in(world);
        report.assert_exit(0).assert_full();
        assert_same(&expected, &attempts(world, &report), &format!("{evidence}\n{report}"));
        assert_same(&before, &snapshot(&world.beside()), "the outside changed");
    }
}

#[test]
fn a_path_is_absolute_in_the_record_however_it_was_written() {
    for_each_user(|world| {
        world.prepare("mkdir -p $OUT/d/e; echo keep > $OUT/f");
        assert_recorded(
            world,
            &[
                ("echo x > ../out/n1", &["create out/n1"]),
                ("cd $OUT; echo x > n2", &["create out/n2"]),
                ("cd $OUT/d; echo x > ./e/.././../n3", &["create out/n3"]),
                ("echo x > //$OUT///n4", &["create out/n4"]),
                ("cd $OUT/d/e; echo x > ../../n5", &["create out/n5"]),
                ("mkdir $OUT/n6/", &["mkdir out/n6"]),
                ("chmod 700 $OUT/d/.", &["chmod out/d"]),
                ("chmod 700 $OUT/d/e/..", &["chmod out/d"]),
                ("cd $OUT/d; chmod 700 ..", &["chmod out"]),
                ("cd $OUT/d/e; chmod 700 .", &["chmod out/d/e"]),
                ("echo x > $OUT/d/../n7", &["create out/n7"]),
                ("$TOOLS/call openat @$OUT/d =../n8 0101 0644", &["create out/n8"]),
                ("$TOOLS/call openat @$OUT/d =$OUT/n9 0101 0644", &["create out/n9"]),
                ("$TOOLS/call openat ^$OUT/d =n10 0101 0644", &["create out/d/n10"]),
                ("$TOOLS/call openat @$W =../out/n11 0101 0644", &["create out/n11"]),
            ],
        );
    });
}

#[test]
fn a_link_is_followed_where_the_kernel_would_and_named_where_it_would_not() {
    for_each_user(|world| {
        world.prepare(
            "mkdir $OUT/d inside; echo keep > $OUT/f; echo in > inside/f; ln -s $OUT out; ln -s $OUT/f file; ln -s $OUT/n1 new\n\
             ln -s $W/inside $OUT/in; ln -s $W/inside/f $OUT/infile; ln -s $W/inside/made $OUT/innew; ln -s out two; ln -s ../out up",
        );
        assert_recorded(
            world,
            &[
                // From inside outwards.
                ("echo x > new", &["create out/n1"]),
                ("echo x > out/n2", &["create out/n2"]),
                ("echo x > two/n3", &["create out/n3"]),
                ("echo x > up/n4", &["create out/n4"]),
                ("echo x > file", &["write out/f"]),
                ("chmod 600 file", &["chmod out/f"]),
                ("chmod 700 out", &["chmod out"]),
                ("rm -f out/f", &["remove out/f"]),
                (
                    "touch -h -d 2001-01-01 file; chown -h $U file; ln -s x file2; rm file2; mv up up2; mv up2 up",
                    &[],
                ),
                ("$TOOLS/call openat -100 =file O_NOFOLLOW+O_WRONLY", &[]),
                ("echo x > out/in/../n5; echo x > out/d/../in/n6", &[]),
                // From outside inwards.
                (
                    "echo x > $OUT/in/new; chmod 600 $OUT/in/new; rm $OUT/in/new; mkdir $OUT/in/dir; rmdir $OUT/in/dir",
                    &[],
                ),
                (
                    "echo x > $OUT/infile; touch -d 2001-01-01 $OUT/infile; chmod 600 $OUT/infile",
                    &[],
                ),
                ("echo x > $OUT/innew", &[]),
                ("rm -f $OUT/in", &["remove out/in"]),
                ("mv $OUT/infile $OUT/x", &["rename out/infile"]),
                ("touch -h -d 2001-01-01 $OUT/infile", &["utime out/infile"]),
                ("chown -h $U $OUT/infile", &["chown out/infile"]),
                (
                    "$TOOLS/call linkat -100 =$OUT/infile -100 =hard 0",
                    &["link out/infile"],
                ),
                ("$TOOLS/call linkat -100 =$OUT/infile -100 =hard2 0x400", &[]),
            ],
        );
        assert_eq!(names(world.inside("inside")), ["f", "made", "n6"]);
    });
}

#[test]
fn a_long_chain_of_links_is_followed_as_far_as_the_kernel_goes() {
    for_each_user(|world| {
        world.prepare(
            "ln -s $OUT/n1 l1; ln -s $OUT d1; for n in {2..41}; do ln -s l$((n - 1)) l$n; ln -s d$((n - 1)) d$n; done",
        );
        assert_recorded(
            world,
            &[
                // Half of what the kernel counts to: it may count a link twice when it has to begin anew.
                ("echo x > l20", &["create out/n1"]),
                ("echo x > d20/n2", &["create out/n2"]),
                ("echo x > l41; echo x > d41/n3", &[]),
            ],
        );
    });
}

#[test]
fn the_links_of_proc_are_the_callers_own() {
    for_each_user(|world| {
        world.prepare("mkdir $OUT/d; echo keep > $OUT/f; echo in > f; mkdir d");
        assert_recorded(
            world,
            &[
                ("cd $OUT; echo x > /proc/self/cwd/n1", &["create out/n1"]),
                ("cd $OUT/d; echo x > /proc/self/cwd/../n2", &["create out/n2"]),
                ("cd $OUT; echo x > /proc/thread-self/cwd/n3", &["create out/n3"]),
                ("cd $OUT; echo x > /proc/$BASHPID/cwd/n4", &["create out/n4"]),
                ("echo x > /proc/self/root$OUT/n5", &["create out/n5"]),
                ("echo x > /proc/self/root/$OUT/d/../n6", &["create out/n6"]),
                (
                    "echo x > /proc/self/cwd/in1; echo x > /proc/self/root$W/in2; rm /proc/self/cwd/in1 in2",
                    &[],
                ),
                (
                    "cd $OUT; unshare -Upf bash -c 'echo x > /proc/self/cwd/n9'",
                    &["create out/n9"],
                ),
                ("exec 7< $OUT/f; echo x > /dev/fd/7", &["write out/f"]),
                ("exec 7< $OUT/f; chmod 600 /proc/self/fd/7", &["chmod out/f"]),
                ("exec 7< $OUT/d; echo x > /proc/self/fd/7/n7", &["create out/d/n7"]),
                ("exec 7< $OUT/d; echo x > /dev/fd/7/../n8", &["create out/n8"]),
                (
                    "exec 7< f; echo x > /dev/fd/7; chmod 600 /proc/self/fd/7; echo x 7< d > /proc/self/fd/7/new",
                    &[],
                ),
                (
                    "echo x > /dev/stdout; echo x > /dev/stderr; echo x > /dev/null; echo x > /dev/fd/1",
                    &[],
                ),
                ("echo x | (cat > /dev/stdout) | tee /dev/fd/2", &[]),
            ],
        );
    });
}

#[test]
fn a_descriptor_stands_for_what_it_refers_to() {
    for_each_user(|world| {
        world.prepare("mkdir $OUT/d $OUT/e; for f in a b c f g h; do echo keep > $OUT/$f; done; echo in > f");
        assert_recorded(
            world,
            &[
                ("$TOOLS/call fchmod @$OUT/a 0600", &["chmod out/a"]),
                ("$TOOLS/call fchmod @$OUT/d 0700", &["chmod out/d"]),
                ("$TOOLS/call futimens @$OUT/b %1,0,1,0", &["utime out/b"]),
                ("$TOOLS/call futimens @f %1,0,1,0; $TOOLS/call fchmod @f 0600", &[]),
                // AT_EMPTY_PATH: the descriptor alone.
                ("$TOOLS/call fchownat ^$OUT/c = $U $U 0x1000", &["chown out/c"]),
                ("$TOOLS/call 452 ^$OUT/f = 0600 0x1000", &["chmod out/f"]),
                ("$TOOLS/call 463 @$OUT/g = 0x1000 =user.b %0,0 16", &["xattr out/g"]),
                ("$TOOLS/call 469 @$OUT/h = %0x80,0,0 24 0x1000", &["flags out/h"]),
                (
                    "$TOOLS/call fchownat ^f = $U $U 0x1000; $TOOLS/call 452 ^f = 0600 0x1000",
                    &[],
                ),
            ],
        );
    });
}

#[test]
fn the_working_directory_can_be_meant_without_a_name() {
    for_each_user(|world| {
        world.prepare("mkdir $OUT/d $OUT/e $OUT/f");
        assert_recorded(
            world,
            &[
                ("cd $OUT/d; $TOOLS/call fchownat -100 = $U $U 0x1000", &["chown out/d"]),
                (
                    "cd $OUT/e; $TOOLS/call 463 -100 = 0x1000 =user.b %0,0 16",
                    &["xattr out/e"],
                ),
                ("cd $OUT/f; $TOOLS/call 452 -100 = 0700 0x1000", &["chmod out/f"]),
                ("$TOOLS/call fchownat -100 = $U $U 0x1000", &[]),
            ],
        );
    });
}

#[test]
fn a_file_without_a_name_gets_none_outside() {
    const PROGRAM: &str = "
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
out = os.environ['OUT'].encode()
fd = os.open('.', os.O_TMPFILE | os.O_RDWR)
def link(*args): print(libc.linkat(*args) and os.strerror(ctypes.get_errno()) or 'linked')
link(-100, b'/proc/self/fd/%d' % fd, -100, out + b'/n1', 0x400)
link(fd, b'', -100, out + b'/n2', 0x1000)
link(-100, b'/proc/self/fd/%d' % fd, -100, b'in', 0x400)";
    for_each_user(|world| {
        for evidence in WATCHED {
            let case = Case::new(WorkspaceWrite).argv(["python3", "-B", "-c", PROGRAM]);
            let report = watched(&case, evidence, world).run_in(world);
            assert_eq!(names(world.beside()), [""; 0]);
            assert_eq!(names(world.workspace()), ["in"], "{report}");
            world.prepare("rm in");
            let expected = ["link out/n1", "link out/n2"].map(str::to_owned);
            assert_same(&expected, &attempts(world, &report), &format!("{evidence}\n{report}"));
        }
    });
}

#[test]
fn a_directory_descriptor_can_be_made_the_root_of_a_path() {
    for_each_user(|world| {
        world.prepare("mkdir d $OUT/d");
        assert_recorded(
            world,
            &[
                // RESOLVE_IN_ROOT, as container tools do.
                ("$TOOLS/call 437 @d =/new %0101,0644,0x10 24", &[]),
                ("$TOOLS/call 437 @d =../../../new2 %0101,0644,0x10 24", &[]),
                ("$TOOLS/call 437 @$OUT/d =/n1 %0101,0644,0x10 24", &["create out/d/n1"]),
                // RESOLVE_BENEATH.
                ("$TOOLS/call 437 @d =new3 %0101,0644,8 24", &[]),
                ("$TOOLS/call 437 @$OUT/d =n2 %0101,0644,8 24", &["create out/d/n2"]),
            ],
        );
        assert_eq!(names(world.inside("d")), ["new", "new2", "new3"]);
    });
}

#[test]
fn a_root_of_its_own_is_the_callers() {
    const PROGRAM: &str = "
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x10000000) == 0
os.chroot('root')
os.chdir('/')
for path in '/new', '/../up', '/d/../../up2', '../../up3', '/d/link': open(path, 'w').close()";
    for_each_user(|world| {
        // The workspace lies in a directory of the user's, who could write there.
        world.prepare("mkdir -p $OUT/sub/root/d; ln -s /../linked $OUT/sub/root/d/link");
        for evidence in WATCHED {
            world.prepare("cd $OUT/sub/root; rm -f new up* linked");
            let case = Case::new(WorkspaceWrite)
                .options(["--workspace", "$OUT/sub"])
                .argv(["python3", "-B", "-c", PROGRAM]);
            let report = watched(&case, evidence, world).run_in(world);
            report.assert_exit(0);
            assert_same(&[], &attempts(world, &report), &format!("{evidence}\n{report}"));
            assert_eq!(
                names(world.outside("sub/root")),
                ["d", "linked", "new", "up", "up2", "up3"]
            );
        }
    });
}

#[test]
fn what_is_renamed_meanwhile_is_named_as_it_is_now() {
    for_each_user(|world| {
        world.prepare("mkdir d $OUT/d; echo keep > $OUT/f; echo in > d/f");
        assert_recorded(
            world,
            &[
                (
                    "exec 7< d/f; mv d/f d/g; chmod 600 /dev/fd/7; rm d/g; chmod 600 /dev/fd/7",
                    &[],
                ),
                (
                    "cd d; mv ../d ../e; echo x > in; chmod 700 .; mv ../e ../d; rm in; echo in > f",
                    &[],
                ),
                ("mkdir gone; cd gone; rmdir ../gone; echo x > f", &[]),
            ],
        );
    });
}
