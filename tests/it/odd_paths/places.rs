//! Workspaces in odd places, and of any size, under each backend.

use std::path::Path;

use ringfence::SandboxMode::WorkspaceWrite;

use super::NAMED;
use crate::hosts::given::{Given, on_host};
use crate::support::{Case, World, for_each_user, text};

const EVERYTHING: [Given; 3] = [Given::Full("landlock"), Given::Full("bwrap"), Given::Full("landlock")];

/// A host on which root has run this in mounts of the host's own making, and then becomes the user.
fn with_mounts(world: &World, script: &str) -> Vec<String> {
    let uid = world.uid();
    let become_user = format!("exec setpriv --reuid {uid} --regid {uid} --clear-groups \"$@\"");
    [
        "unshare",
        "--mount",
        "bash",
        "-euc",
        &format!("{script}\ncd $W; {become_user}"),
        "-",
    ]
    .map(str::to_owned)
    .into()
}

/// Attacks on such a host. Only root makes mounts; the user is root's choice.
fn on_mounts(test: &str, script: &str) {
    if World::of_root(test).is_none() {
        return;
    }
    for_each_user(|world| {
        for (asked, given) in crate::hosts::given::ASKED.into_iter().zip(EVERYTHING) {
            let host = with_mounts(world, script);
            crate::hosts::given::attack_as_root_sees(world, &host, asked, given);
        }
    });
}

#[test]
fn a_workspace_may_be_a_mount_of_any_kind() {
    let test = "a_workspace_may_be_a_mount_of_any_kind";
    on_mounts(test, "mount --bind $W $W");
    on_mounts(test, "mount --bind $W $W; mount --bind $W $W");
    on_mounts(test, "mount --bind $W/../out $OUT; mount --bind $OUT $OUT");
    on_mounts(
        test,
        "mount --make-rshared /; mount --bind $W $W; mount --make-unbindable $OUT 2>/dev/null || true",
    );
}

#[test]
fn two_hundred_mounts_beneath_the_workspace_are_no_obstacle() {
    let many = "mkdir -p $W/m; for i in $(seq 200); do mkdir -p $W/m/$i; mount --bind $OUT/../home $W/m/$i; done";
    on_mounts("two_hundred_mounts_beneath_the_workspace_are_no_obstacle", many);
}

#[test]
fn a_workspace_in_the_temp_area_and_beneath_a_link_to_it_is_served() {
    for_each_user(|world| {
        for backend in NAMED {
            let made =
                world.prepare("d=$(mktemp -d); mkdir $d/w; rm -rf $OUT/tmp; ln -s $(dirname $d) $OUT/tmp; echo $d");
            let directory = Path::new(made.trim());
            let through = world.outside("tmp").join(directory.file_name().unwrap()).join("w");
            let report = Case::new(WorkspaceWrite)
                .options(backend)
                .options(["--temp", "none", "-C"])
                .options([through])
                .env("TMPDIR", world.outside("tmp"))
                .shell("echo in > f; pwd; echo x > ../beside; exit 0")
                .run_in(world);
            report.assert_exit(0).assert_full();
            assert_eq!(text(directory.join("w/f")), "in\n", "{report}");
            assert!(!directory.join("beside").exists(), "{report}");
            assert_eq!(report.stdout(), format!("{}\n", directory.join("w").display()));
            std::fs::remove_dir_all(directory).unwrap();
        }
    });
}

#[test]
fn a_launch_makes_the_same_system_calls_whatever_the_workspace_holds() {
    for backend in NAMED {
        for_each_user(|world| {
            let calls = || {
                // Nothing is remembered, so that each launch does the whole of it.
                let counted =
                    "strace -f -qq -o $OUT/calls -e trace=file,desc,process,keyctl -e inject=keyctl:error=ENOSYS";
                let counted: Vec<_> = counted.split(' ').collect();
                let report = Case::new(WorkspaceWrite)
                    .options(backend)
                    .options(["--evidence", "off", "--audit", "off"])
                    .inside(counted)
                    .argv(["/bin/true"])
                    .run_in(world);
                report.assert_exit(0).assert_full();
                let calls = text(world.outside("calls"));
                // How often somebody waits or is woken depends on who is first; what is looked up does not.
                let names = calls
                    .lines()
                    .filter_map(|line| line.split_whitespace().nth(1)?.split_once('('));
                let lookups = [
                    "openat",
                    "openat2",
                    "newfstatat",
                    "statx",
                    "getdents64",
                    "readlink",
                    "mount",
                    "open_tree",
                ];
                let mut counts = std::collections::BTreeMap::new();
                for (name, _) in names.filter(|(name, _)| lookups.contains(name)) {
                    *counts.entry(name.to_owned()).or_insert(0) += 1;
                }
                assert!(counts["openat"] > 5, "nothing was counted: {counts:?}");
                counts
            };
            world.prepare("for i in $(seq 10); do echo $i > $i; done");
            let few = calls();
            world.prepare("mkdir -p many/{1..100}; for d in many/*; do touch $d/{1..100}; done");
            assert_eq!(calls(), few, "with 10 files and with 10,000");
        });
    }
}

#[test]
fn nothing_beneath_another_file_system_is_closed_or_open_by_accident() {
    on_host(&["unshare", "--user", "--map-current-user", "--mount", "env"], |_| {
        EVERYTHING
    });
}
