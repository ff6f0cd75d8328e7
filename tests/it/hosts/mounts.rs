//! Mounts that are made on the host while a run goes on.

use std::fs;
use std::os::unix::fs::MetadataExt;

use ringfence::SandboxMode::WorkspaceWrite;

use super::given::{ASKED, Given, on_host};
use super::{kernel_failing, kernel_with};
use crate::support::{Case, World, for_each_user, text};

/// Root's own copy of the host's mounts, from which they reach others; it mounts a directory at another place when
/// the run says `started`, and lets the run go on.
const MEANWHILE: &str = r#"
mount --make-rshared /
cd $W; mkfifo started go; chmod 666 started go
(read x < started; mount --bind $OUT/real $OUT/later; mount -t tmpfs -o mode=777 t $OUT/fresh; echo go > go) &
setpriv --reuid $1 --regid $1 --clear-groups "${@:2}"; status=$?; wait; exit $status
"#;

#[test]
fn a_mount_that_the_host_makes_during_a_run_does_not_become_writable_inside() {
    if World::of_root("a_mount_that_the_host_makes_during_a_run_does_not_become_writable_inside").is_none() {
        return;
    }
    let no_landlock = kernel_failing("landlock_create_ruleset", "ENOSYS");
    for_each_user(|world| {
        let uid = world.uid().to_string();
        for (asked, kernel) in [
            (ASKED[0], &[][..]),
            (ASKED[1], &[]),
            (ASKED[1], &no_landlock),
            (ASKED[2], &no_landlock),
        ] {
            world.prepare("rm -f started go; mkdir -p $OUT/real $OUT/later $OUT/fresh; echo keep > $OUT/real/f; chmod 644 $OUT/real/f");
            let host = ["unshare", "--mount", "bash", "-euc", MEANWHILE, "-", &uid];
            let host = host.into_iter().map(str::to_owned).chain(kernel.iter().cloned());
            let attack = "echo > started; read x < go; for d in later fresh; do echo x > $OUT/$d/f; chmod 777 $OUT/$d $OUT/$d/f; \
                touch -d 2001-01-01 $OUT/$d; rm -f $OUT/$d/f; done; grep -c -e $OUT/later -e $OUT/fresh /proc/self/mountinfo; exit 3";
            let report = Case::new(WorkspaceWrite)
                .inside(host)
                .options(asked.iter().copied())
                .options(["--evidence", "off"])
                .shell(attack)
                .run_as_root_in(world);
            assert_eq!(text(world.outside("real/f")), "keep\n", "{report}");
            let about = fs::metadata(world.outside("real/f")).unwrap();
            assert_eq!(about.mode() & 0o777, 0o644, "{report}");
            assert!(
                fs::metadata(world.outside("real")).unwrap().mtime() > 1_500_000_000,
                "{report}"
            );
            report.assert_exit(3);
            assert_eq!(report.stdout(), "0\n", "such mounts do not even arrive: {report}");
        }
    });
}

#[test]
fn where_later_mounts_cannot_be_kept_out_that_is_said() {
    on_host(&kernel_failing("mount_setattr", "EPERM"), |_| {
        let open = &["devices", "metadata"];
        let bwrap = Given::Partial("bwrap", &["metadata"]);
        [
            Given::Partial("landlock", open),
            bwrap,
            Given::Partial("landlock", open),
        ]
    });
}

#[test]
fn where_later_mounts_cannot_be_kept_out_and_landlock_is_missing_nothing_runs() {
    let neither = kernel_with(["mount_setattr:error=EPERM", "landlock_create_ruleset:error=ENOSYS"]);
    on_host(&neither, |root| {
        let bwrap: &[_] = if root {
            &[("bwrap", "Operation not permitted")]
        } else {
            &[("bwrap", "could not make the mounts read-only")]
        };
        let both: &[_] = if root {
            &[("landlock", "no Landlock"), ("bwrap", "Operation not permitted")]
        } else {
            &[
                ("landlock", "no Landlock"),
                ("bwrap", "could not make the mounts read-only"),
            ]
        };
        [
            Given::Refused(&[("landlock", "no Landlock")]),
            Given::Refused(bwrap),
            Given::Refused(both),
        ]
    });
}

#[test]
fn the_device_nodes_of_a_run_keep_their_modes_whoever_owns_them() {
    for host in [
        vec![],
        vec![
            "setpriv",
            "--no-new-privs",
            "--inh-caps=-all",
            "--bounding-set=-all,+setfcap",
        ],
    ] {
        Case::new(WorkspaceWrite)
            .options(ASKED[1].iter().copied())
            .inside(host)
            .shell("chmod 600 /dev/null /dev/zero /dev/tty; touch -d 2001-01-01 /dev/null; rm -f /dev/null; echo > /dev/null && stat -c %a /dev/null")
            .run_as_each_user(|_, report| {
                report.assert_exit(0).assert_full();
                assert_eq!(report.stdout(), "666\n", "{report}");
            });
    }
}

#[test]
fn a_launcher_that_has_sealed_its_mounts_has_no_capability_left() {
    Case::new(WorkspaceWrite)
        .options(ASKED[1].iter().copied())
        .shell("grep -e CapEff -e CapPrm -e CapInh -e CapAmb /proc/1/status /proc/self/status | tr -s '\\t' ' ' | cut -d' ' -f2 | sort -u")
        .run_as_each_user(|_, report| {
            report.assert_exit(0).assert_full();
            assert_eq!(report.stdout(), "0000000000000000\n", "{report}");
        });
}

#[test]
fn a_second_proc_leads_no_run_of_roots_to_what_is_confined_elsewhere() {
    let test = "a_second_proc_leads_no_run_of_roots_to_what_is_confined_elsewhere";
    let Some(world) = World::of_root(test) else { return };
    world.prepare("mkdir $OUT/proc $OUT/other; echo keep > $OUT/other/f; mkfifo $OUT/other/go");
    // A run of somebody else's, whose command has no more rights than the one that attacks it.
    let host = "mount -t proc proc $OUT/proc; cd $OUT/other\n\
        $BIN run -m workspace-write --evidence off -- bash -c 'echo up > up; read x < go' > /dev/null 2>&1 < /dev/null & \n\
        while [ ! -s $OUT/other/up ]; do :; done; cd $W; status=0; \"$@\" || status=$?; echo > $OUT/other/go; wait; exit $status";
    let attack = "for p in $OUT/proc/[0-9]*; do echo x > $p/cwd/f; echo x > $p/cwd/new; chmod 777 $p/cwd/f; done 2>/dev/null; exit 3";
    for kernel in [vec![], kernel_failing("landlock_create_ruleset", "ENOSYS")] {
        world.prepare("rm -f $OUT/other/up");
        let words = ["unshare", "--mount", "bash", "-euc", host, "-"].map(str::to_owned);
        let report = Case::new(WorkspaceWrite)
            .options(ASKED[1].iter().copied())
            .options(["--evidence", "off"])
            .inside(words.into_iter().chain(kernel.iter().cloned()))
            .shell(attack)
            .run_in(&world);
        assert_eq!(text(world.outside("other/f")), "keep\n", "{report}");
        assert!(!world.outside("other/new").exists(), "{report}");
        if kernel.is_empty() {
            report.assert_exit(3).assert_full();
        } else {
            super::given::assert_refused(&report, &[("bwrap", "a second /proc is mounted at")]);
        }
    }
}
