//! The library that a run is shown in place of the host's: it behaves as that one does, nobody
//! changes it, and the host's stays as it is.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use super::accelerator::{FAST, copies, source};
use super::{ACCELERATED, CALL, assert_same, compile, records, snapshot, watched};
use crate::support::{Case, World, for_each_user, names, text};

const CANCEL: &str = include_str!("../programs/ended_thread.c");

/// Where the C library of a program is found, link resolved.
fn library(world: &World) -> PathBuf {
    let found = world.prepare("ldd /bin/bash | sed -n 's/.*libc\\.so\\.6 => \\([^ ]*\\).*/\\1/p'");
    PathBuf::from(world.prepare(&format!("readlink -f {}", found.trim())).trim())
}

#[test]
fn the_hosts_own_library_is_as_it_was() {
    for_each_user(|world| {
        let library = library(world);
        let (before, bytes) = (snapshot(&library), fs::read(&library).unwrap());
        for mode in [ReadOnly, WorkspaceWrite] {
            for evidence in ["auto", "strict", "off"] {
                // Nothing that the machine would not survive if it succeeded.
                let script = format!(
                    "p={}; : >> $p; touch -c $p; chmod --reference=$p $p; chown $UID $p; ln $p $p.old; exit 0",
                    library.display()
                );
                watched(&Case::new(mode).shell(&script), evidence, world)
                    .run_in(world)
                    .assert_exit(0);
            }
        }
        assert_same(&before, &snapshot(&library), "the library changed");
        assert!(bytes == fs::read(&library).unwrap(), "the library's bytes changed");
    });
}

#[test]
fn only_auto_in_workspace_write_shows_the_copy() {
    for_each_user(|world| {
        let library = library(world);
        let about = fs::metadata(&library).unwrap();
        let own = format!("{}:{}\n", about.dev(), about.ino());
        let script = format!("stat -c %d:%i {}", library.display());
        let shown = |mode, evidence: &str| {
            let report = watched(&Case::new(mode).shell(&script), evidence, world).run_in(world);
            report.assert_exit(0);
            report.stdout().to_owned()
        };
        assert_eq!(shown(WorkspaceWrite, "auto") != own, ACCELERATED);
        for (mode, evidence) in [
            (WorkspaceWrite, "strict"),
            (WorkspaceWrite, "off"),
            (ReadOnly, "auto"),
            (ReadOnly, "strict"),
            (ReadOnly, "off"),
        ] {
            assert_eq!(shown(mode, evidence), own, "{mode:?} {evidence}");
        }
    });
}

#[test]
fn the_copy_cannot_be_changed_through_the_place_where_it_is_shown() {
    for_each_user(|world| {
        compile(world, "call", CALL, "");
        // Nothing that the machine would not survive if it succeeded.
        let script = format!(
            "p={}; s=$(stat -c %s $p); look() {{ stat -c '%i %s %a %u %z' $p; sha256sum < $p; }}; look\n\
             for how in \"openat -100 =$p 1\" \"openat -100 =$p 2\" \"openat -100 =/dev/fd/7 1\" \"truncate =$p $s\" \"chmod =$p 0555\" \
             \"fchmod @$p 0555\" \"chown =$p $UID $UID\" \"utimensat -100 =$p 0 0\" \"setxattr =$p =user.a =1 1 0\" \
             \"fsetxattr @$p =user.a =1 1 0\" \"link =$p =stolen\" \"link =$p =$p.old\" \"ioctl @$p 0x40086602 !\" \"umount2 =$p 2\" \
             \"mount =none =$p =none 0x1020 0\"; do $TOOLS/call $how 7< $p; done > said\n\
             for f in $STATE/*.so; do chmod 755 $f; : >> $f; rm -f $f; done 2> /dev/null; look",
            library(world).display()
        );
        let state = format!("STATE={}", world.state().display());
        let case = Case::new(WorkspaceWrite).options(["--env", &state]).shell(&script);
        let report = watched(&case, "auto", world).run_in(world);
        report.assert_exit(0);
        assert_eq!(source(&report), FAST);
        let lines: Vec<_> = report.stdout().lines().collect();
        assert!(
            lines.len() == 4 && lines[..2] == lines[2..],
            "the copy changed:\n{report}"
        );
        let said = text(world.inside("said"));
        assert_eq!(said.lines().filter(|&line| line != "ok").count(), 15, "{said}");
        assert_eq!(copies(&world.state()).len(), usize::from(ACCELERATED));
    });
}

#[test]
fn who_owns_the_copy_makes_no_difference_to_what_is_recorded() {
    for_each_user(|world| {
        let script = format!(
            "p={}; chmod 755 $p; touch $p; chown $UID $p; exit 0",
            library(world).display()
        );
        let seen = |evidence: &str| {
            let report = watched(&Case::new(WorkspaceWrite).shell(&script), evidence, world).run_in(world);
            records(world, &report)
        };
        assert_same(
            &seen("strict"),
            &seen("auto"),
            "watched in the one way and in the other",
        );
    });
}

#[test]
fn a_thread_that_is_ended_in_a_call_still_cleans_up() {
    for_each_user(|world| {
        compile(world, "cancel", CANCEL, "-fexceptions -pthread");
        for evidence in ["off", "strict", "auto"] {
            let report = watched(
                &Case::new(WorkspaceWrite).shell("$TOOLS/cancel p; rm p"),
                evidence,
                world,
            )
            .run_in(world);
            report.assert_exit(0);
            let said = "many frames\nthe pushed handler\nthe end of a variable\ncancelled\n";
            assert_eq!(report.stdout(), said, "{evidence}");
        }
    });
}

#[test]
fn a_call_that_waits_is_interrupted_and_begun_again_as_ever() {
    const PROGRAM: &str = "
import os, signal, threading, time
os.mkfifo('p')
signal.signal(signal.SIGALRM, lambda *_: print('signal'))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
def read():
    time.sleep(0.3)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(open('p').read(), end='')
reader = threading.Thread(target=read)
reader.start()
with open('p', 'w') as pipe: pipe.write('through\\n')
reader.join()
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
signal.setitimer(signal.ITIMER_REAL, 0.05)
print(libc.open(b'p', 1), ctypes.get_errno())";
    for_each_user(|world| {
        for evidence in ["off", "strict", "auto"] {
            world.prepare("rm -f p");
            let case = Case::new(WorkspaceWrite).argv(["python3", "-B", "-I", "-c", PROGRAM]);
            let report = watched(&case, evidence, world).run_in(world);
            report.assert_exit(0);
            let said: Vec<_> = report.stdout().lines().filter(|&line| line != "signal").collect();
            // EINTR, for a call that is not begun again by the language.
            assert_eq!(said, ["through", "-1 4"], "{evidence}\n{report}");
            assert!(report.stdout().contains("signal"), "{report}");
        }
    });
}

#[test]
fn a_library_of_another_make_is_seen_all_the_same() {
    // A copy that the program was told to load instead of the host's.
    for_each_user(|world| {
        let library = library(world);
        world.prepare(&format!("mkdir lib; cp {} lib/", library.display()));
        let script = "LD_LIBRARY_PATH=$W/lib mkdir $OUT/d; LD_LIBRARY_PATH=$W/lib touch in; LD_LIBRARY_PATH=$W/lib chmod 600 $OUT; exit 0";
        let report = watched(&Case::new(WorkspaceWrite).shell(script), "auto", world).run_in(world);
        report.assert_exit(0);
        let expected = ["chmod out EROFS chmod", "mkdir out/d EROFS mkdir"].map(str::to_owned);
        assert_same(&expected, &records(world, &report), &format!("{report}"));
        assert_eq!(names(world.workspace()), ["in", "lib"]);
    });
}
