//! What the three modes let a command change. The disk is looked at, not only the exit status.

use std::fs;
use std::os::unix::fs::MetadataExt;

use ringfence::SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};

use crate::support::{Case, World, for_each_user, names, text};

#[test]
fn read_only_leaves_the_workspace_as_it_was() {
    Case::new(ReadOnly)
        .setup("echo keep > f; mkdir d")
        .shell("echo x > f; rm -f f; mkdir e; rmdir d; ln -s f l; ln f h; mv f g; truncate -s 0 f; mkfifo p; exit 3")
        .run_as_each_user(|world, report| {
            report.assert_exit(3).assert_full().assert_denied(true);
            assert_eq!(names(world.workspace()), ["d", "f"]);
            assert_eq!(text(world.inside("f")), "keep\n");
        });
}

#[test]
fn read_only_leaves_metadata_as_it_was() {
    Case::new(ReadOnly)
        .setup("echo keep > f; chmod 640 f; touch -d 2020-01-01 f")
        .shell("chmod 600 f; touch f; python3 -c 'import os; os.setxattr(\"f\", \"user.a\", b\"b\")'; exit 1")
        .run_as_each_user(|world, report| {
            report.assert_exit(1).assert_full().assert_denied(true);
            let now = fs::metadata(world.inside("f")).unwrap();
            assert_eq!(now.mode() & 0o777, 0o640);
            assert_eq!(now.mtime(), 1_577_836_800);
        });
}

#[test]
fn read_only_is_what_a_run_gets_that_asks_for_nothing() {
    Case::without_a_mode()
        .shell("echo x > f")
        .run_as_each_user(|world, report| {
            report.assert_exit(1).assert_full().assert_denied(true);
            assert_eq!(report.field("/sandbox/mode"), "read-only");
            assert!(names(world.workspace()).is_empty());
        });
}

#[test]
fn reading_is_never_restricted() {
    for mode in [ReadOnly, WorkspaceWrite] {
        Case::new(mode)
            .setup("echo text > $OUT/f")
            .shell("cat $OUT/f; ls / > /dev/null")
            .run_as_each_user(|_, report| {
                report.assert_exit(0).assert_denied(false);
                assert_eq!(report.stdout(), "text\n");
            });
    }
}

#[test]
fn the_ordinary_devices_work_in_every_mode() {
    for mode in [ReadOnly, WorkspaceWrite, DangerFullAccess] {
        Case::new(mode)
            .shell("echo x > /dev/null && head -c 4 /dev/zero | wc -c && head -c 2 /dev/urandom | wc -c && echo y | tee /dev/stderr")
            .run_as_each_user(|_, report| {
                report.assert_exit(0).assert_denied(false);
                assert_eq!(report.stdout(), "4\n2\ny\n");
                assert_eq!(report.stderr(), "y\n");
            });
    }
}

#[test]
fn read_only_has_a_scratch_directory_of_its_own_that_is_gone_afterwards() {
    Case::new(ReadOnly)
        .shell(r#"f=$(mktemp) && echo ok > "$f" && cat "$f" && chmod 600 "$f" && stat -c %a "$TMPDIR" && dirname "$f" && echo "$TMPDIR""#)
        .run_as_each_user(|_, report| {
            report.assert_exit(0).assert_full().assert_denied(false);
            let lines: Vec<_> = report.stdout().lines().collect();
            let [text, bits, used, named] = lines[..] else { panic!("{report}") };
            assert_eq!((text, bits, used), ("ok", "700", named));
            assert!(!fs::exists(named).unwrap(), "{named} is left behind");
        });
}

#[test]
fn read_only_leaves_the_hosts_temp_area_as_it_was() {
    for_each_user(|world| {
        let name = format!("ringfence-leak-{}-{}", std::process::id(), world.uid());
        let script = format!("for d in /tmp /var/tmp /dev/shm; do echo x > $d/{name}; done; exit 1");
        Case::new(ReadOnly)
            .shell(&script)
            .run_in(world)
            .assert_exit(1)
            .assert_denied(true);
        for area in ["/tmp", "/var/tmp", "/dev/shm"] {
            assert!(!fs::exists(format!("{area}/{name}")).unwrap(), "{area} was written");
        }
    });
}

#[test]
fn a_heredoc_that_needs_a_temp_file_works_in_read_only() {
    Case::new(ReadOnly)
        .shell("x=$(head -c 70000 /dev/zero | tr '\\0' a)\nwc -c <<HERE\n$x\nHERE\n")
        .run_as_each_user(|_, report| {
            report.assert_exit(0).assert_denied(false);
            assert_eq!(report.stdout(), "70001\n");
        });
}

#[test]
fn workspace_write_changes_everything_inside() {
    Case::new(WorkspaceWrite)
        .shell(
            "mkdir -p a/b && echo hi > a/b/c && mv a/b/c a/d && ln a/d e && ln -s e l && chmod 600 e \
             && touch -d 2001-01-01 e && truncate -s 2 e && mkfifo p && rmdir a/b && cat l",
        )
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_full().assert_denied(false);
            assert_eq!(report.stdout(), "hi");
            let e = fs::metadata(world.inside("e")).unwrap();
            assert_eq!((e.mode() & 0o777, e.nlink(), e.len()), (0o600, 2, 2));
            assert_eq!(e.uid(), world.uid());
            assert_eq!(names(world.workspace()), ["a", "e", "l", "p"]);
        });
}

#[test]
fn workspace_write_changes_nothing_beside_the_workspace() {
    Case::new(WorkspaceWrite)
        .setup("echo keep > $OUT/f; mkdir $OUT/d")
        .shell(
            "echo x > $OUT/new; echo x >> $OUT/f; rm -f $OUT/f; mkdir $OUT/e; rmdir $OUT/d; mv $OUT/f $OUT/g; \
             mv $OUT/f f; ln -s a $OUT/l; truncate -s 0 $OUT/f; mkfifo $OUT/p; echo y > y; mv y $OUT/y; exit 1",
        )
        .run_as_each_user(|world, report| {
            report.assert_exit(1).assert_full().assert_denied(true);
            assert_eq!(names(world.beside()), ["d", "f"]);
            assert_eq!(text(world.outside("f")), "keep\n");
        });
}

#[test]
fn workspace_write_changes_no_metadata_beside_the_workspace() {
    Case::new(WorkspaceWrite)
        .setup("echo keep > $OUT/f; chmod 640 $OUT/f; touch -d 2020-01-01 $OUT/f; mkdir -m 750 $OUT/d")
        .shell(
            "chmod 777 $OUT/f $OUT/d; touch -d 2001-01-01 $OUT/f; chown 12 $OUT/f; chgrp 12 $OUT/f\n\
             python3 -c 'import os; os.setxattr(os.environ[\"OUT\"] + \"/f\", \"user.a\", b\"b\")'; exit 1",
        )
        .run_as_each_user(|world, report| {
            report.assert_exit(1).assert_full().assert_denied(true);
            let f = fs::metadata(world.outside("f")).unwrap();
            assert_eq!(
                (f.mode() & 0o777, f.mtime(), f.uid()),
                (0o640, 1_577_836_800, world.uid())
            );
            assert_eq!(fs::metadata(world.outside("d")).unwrap().mode() & 0o777, 0o750);
            assert_eq!(
                world.prepare("python3 -c 'import os; print(os.listxattr(os.environ[\"OUT\"] + \"/f\"))'"),
                "[]\n"
            );
        });
}

#[test]
fn workspace_write_has_the_hosts_temp_area() {
    for_each_user(|world| {
        let script = "f=$(mktemp) && g=$(mktemp -p /dev/shm) && echo kept > $f && echo kept > $g && echo $f && echo $g";
        let report = Case::new(WorkspaceWrite).shell(script).run_in(world);
        report.assert_exit(0).assert_full().assert_denied(false);
        for file in report.stdout().lines() {
            assert_eq!(fs::read_to_string(file).unwrap(), "kept\n");
            fs::remove_file(file).unwrap();
        }
    });
}

#[test]
fn a_private_temp_directory_closes_the_hosts_temp_area() {
    for_each_user(|world| {
        let name = format!("ringfence-private-{}-{}", std::process::id(), world.uid());
        let script = format!("echo a > \"$TMPDIR/a\" && echo \"$TMPDIR\" && cat \"$TMPDIR/a\"; echo x > /tmp/{name}");
        let report = Case::new(WorkspaceWrite)
            .options(["--temp", "private"])
            .shell(&script)
            .run_in(world);
        report.assert_exit(1).assert_full().assert_denied(true);
        let (named, text) = report.stdout().split_once('\n').unwrap();
        assert_eq!(text, "a\n");
        assert!(!fs::exists(named).unwrap(), "{named} is left behind");
        assert!(!fs::exists(format!("/tmp/{name}")).unwrap());
    });
}

#[test]
fn no_temp_area_means_none() {
    for mode in [ReadOnly, WorkspaceWrite] {
        Case::new(mode)
            .options(["--temp", "none"])
            .shell("mktemp")
            .run_as_each_user(|_, report| {
                report.assert_exit(1).assert_full().assert_denied(true);
            });
    }
}

#[test]
fn danger_full_access_confines_nothing_and_says_so() {
    Case::new(DangerFullAccess)
        .shell("echo x > $OUT/new")
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_denied(false);
            assert_eq!(report.field("/sandbox/backend"), "none");
            assert!(
                !report.has("/sandbox/enforcement") && !report.has("/sandbox/evidence"),
                "{report}"
            );
            assert_eq!(text(world.outside("new")), "x\n");
        });
}

#[test]
fn doors_that_a_mode_does_not_speak_of_are_named() {
    Case::new(WorkspaceWrite).argv(["true"]).run_as_each_user(|_, report| {
        let doors = report.field("/sandbox/notConfined").as_array().unwrap();
        for door in ["network", "unix-sockets"] {
            assert!(
                doors.iter().any(|open| open == door),
                "{door} is open and not named:\n{report}"
            );
        }
    });
}

#[test]
fn the_arguments_arrive_byte_for_byte() {
    Case::new(ReadOnly)
        .argv(["printf", "[%s]", "a b", "c'd\"", "$HOME", "*", "", "-x", "--json"])
        .run_as_each_user(|_, report| {
            report.assert_exit(0);
            assert_eq!(report.stdout(), "[a b][c'd\"][$HOME][*][][-x][--json]");
            assert_eq!(report.field("/argv/3"), "c'd\"");
        });
}

#[test]
fn a_workspace_named_through_a_link_is_where_the_link_leads() {
    Case::new(WorkspaceWrite)
        .setup("mkdir -p $OUT/real/deep; ln -s $OUT/real/deep lnk")
        .options(["--workspace", "$W/lnk/.."])
        .shell("pwd; echo a > $OUT/real/ok; echo b > $W/no")
        .run_as_each_user(|world, report| {
            report.assert_exit(1).assert_denied(true);
            assert_eq!(report.stdout().trim_end(), world.outside("real").to_str().unwrap());
            assert_eq!(names(world.outside("real")), ["deep", "ok"]);
            assert_eq!(names(world.workspace()), ["lnk"]);
        });
}

#[test]
fn a_workspace_that_would_make_the_mode_mean_nothing_is_refused() {
    for_each_user(|world| {
        let home = world.home();
        let above_the_state = world.state().parent().unwrap().to_owned();
        for root in ["/".as_ref(), home.as_path(), above_the_state.as_path()] {
            let case = Case::new(WorkspaceWrite).options(["--workspace".as_ref(), root.as_os_str()]);
            let report = case.shell("echo ran > $W/ran").run_in(world);
            report.assert_error("POLICY_INVALID");
            assert!(
                report.text("/error/message").contains(root.to_str().unwrap()),
                "{report}"
            );
        }
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn a_broad_workspace_can_be_asked_for_by_name() {
    Case::new(WorkspaceWrite)
        .options(["--allow-broad-root", "--workspace"])
        .options(["$OUT/../home"])
        .shell("echo hi > f; echo x > $OUT/x")
        .run_as_each_user(|world, report| {
            report.assert_exit(1).assert_denied(true);
            assert_eq!(names(world.home()), ["f"]);
            assert!(names(world.beside()).is_empty());
        });
}

#[test]
fn a_further_writable_root_is_writable_and_nothing_beside_it() {
    Case::new(WorkspaceWrite)
        .setup("mkdir $OUT/cache; echo keep > $OUT/file; echo keep > $OUT/other")
        .options(["--write", "$OUT/cache", "--write", "$OUT/file"])
        .shell("echo a > $OUT/cache/x && echo changed > $OUT/file && mkdir $OUT/cache/d && echo b > $OUT/other")
        .run_as_each_user(|world, report| {
            report.assert_exit(1).assert_full().assert_denied(true);
            assert_eq!(names(world.outside("cache")), ["d", "x"]);
            assert_eq!(text(world.outside("file")), "changed\n");
            assert_eq!(text(world.outside("other")), "keep\n");
        });
}

#[test]
fn a_relative_writable_root_is_taken_from_the_workspace() {
    Case::new(WorkspaceWrite)
        .setup("mkdir -p $OUT/cache sub")
        .options(["--write", "../out/cache", "--workdir", "sub"])
        .shell("pwd; echo a > $OUT/cache/x")
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_full();
            assert_eq!(report.stdout().trim_end(), world.inside("sub").to_str().unwrap());
            assert_eq!(names(world.outside("cache")), ["x"]);
        });
}

#[test]
fn a_writable_root_that_is_not_there_is_an_error_that_names_it() {
    for_each_user(|world| {
        world.prepare("ln -s loop $OUT/loop");
        for root in ["nowhere", "loop", "nowhere/deeper"] {
            let report = Case::new(WorkspaceWrite)
                .options(["--write".to_owned(), format!("$OUT/{root}")])
                .shell("echo ran > ran")
                .run_in(world);
            report.assert_error("POLICY_INVALID");
            assert!(report.text("/error/message").contains(root), "{report}");
        }
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn ringfence_itself_leaves_nothing_in_the_workspace() {
    Case::new(WorkspaceWrite)
        .setup("git init -q .; echo a > a")
        .shell("ls -A; git status --porcelain -uall")
        .run_as_each_user(|world, report| {
            report.assert_exit(0);
            assert_eq!(report.stdout(), ".git\na\n?? a\n");
            assert_eq!(names(world.workspace()), [".git", "a"]);
        });
}

#[test]
fn a_host_that_gives_everything_meets_a_demand_for_it() {
    for mode in [ReadOnly, WorkspaceWrite] {
        Case::new(mode)
            .options(["--require", "full"])
            .argv(["true"])
            .run_as_each_user(|_, report| {
                report.assert_exit(0).assert_full();
            });
    }
}

#[test]
fn files_of_other_users_obey_their_mode_bits_even_for_root() {
    let Some(world) = World::of_root("files_of_other_users_obey_their_mode_bits_even_for_root") else {
        return;
    };
    world.prepare("echo theirs > f; chmod 600 f; chown nobody f; echo shared > g; chmod 666 g; chown nobody g");
    let report = Case::new(WorkspaceWrite).shell("echo x > g; echo x > f").run_in(&world);
    report.assert_exit(1).assert_full();
    assert_eq!(text(world.inside("f")), "theirs\n");
    assert_eq!(text(world.inside("g")), "x\n");
}
