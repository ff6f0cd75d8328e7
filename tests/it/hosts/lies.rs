//! A bubblewrap that does otherwise than it is told: found out, and nothing runs unconfined.

use std::fs;

use ringfence::SandboxMode::WorkspaceWrite;

use super::bubblewrap::{USUAL, attack_through, put};
use super::given::assert_refused;
use super::{KEEP, assert_nothing_ran};
use crate::support::{Case, for_each_user, text};

/// How the host's /dev and /proc are mounted.
fn of_the_host() -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let own = table
        .lines()
        .filter(|line| line.contains(" /proc ") || line.contains(" /dev "));
    own.map(str::to_owned).collect()
}

/// A stand-in that has the real program do as its words say after this Python has changed the list `words`.
fn rewriting(change: &str) -> String {
    let python = format!(
        "import os, sys\n\
         at = sys.argv.index('--args')\n\
         words = open(int(sys.argv[at + 1]), 'rb', closefd=False).read().decode().split('\\0')[:-1]\n\
         rest = sys.argv[at + 2:]\n\
         OUT = '$OUT'\n\
         {}\n\
         os.execv('/usr/bin/bwrap', ['bwrap'] + words + rest)",
        change.replace("; ", "\n")
    );
    format!("exec /usr/bin/python3 -c \"{python}\" \"$@\"")
}

#[test]
fn one_that_runs_what_follows_without_any_boundary_is_found_out() {
    let run = "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"";
    let as_first = "while [ \"$1\" != -- ]; do shift; done; shift; exec unshare -Urpf --mount-proc \"$@\"";
    // Namespaces, but the mounts are the host's.
    let beside = "while [ \"$1\" != -- ]; do shift; done; shift; exec unshare -Urpf \"$@\"";
    for script in [run, as_first, beside] {
        for_each_user(|world| {
            let before = of_the_host();
            let report = attack_through(world, script);
            assert_refused(&report, &[("bwrap", "could not")]);
            assert_nothing_ran(world);
            // What the launcher does to mounts of its own it does not do to the host's.
            assert_eq!(of_the_host(), before);
        });
    }
}

#[test]
fn one_that_leaves_out_or_adds_a_part_of_the_boundary_is_found_out() {
    let changes = [
        ("everything writable", "words[words.index('--ro-bind')] = '--bind'"),
        (
            "no mounts at all",
            "words[words.index('--ro-bind')] = '--dev-bind'; at = words.index('--dev'); words[at:] = []",
        ),
        ("one directory more", "words += ['--bind', OUT, OUT]"),
        ("one more, elsewhere", "words += ['--bind', OUT, '/mnt']"),
        ("a file system of its own", "words += ['--tmpfs', '/mnt']"),
        (
            "an old /proc",
            "at = words.index('--proc'); words[at:at + 2] = ['--ro-bind', '/proc', '/proc']",
        ),
        (
            "devices in the workspace",
            "at = len(words) - 1 - words[::-1].index('--bind'); words[at] = '--dev-bind'",
        ),
        (
            "devices everywhere",
            "words[words.index('--ro-bind')] = '--dev-bind'; words += ['--remount-ro', '/']",
        ),
        (
            "no namespace of processes",
            "words.remove('--unshare-pid'); words.remove('--as-pid-1')",
        ),
        ("a first process of its own", "words.remove('--as-pid-1')"),
    ];
    for (what, change) in changes {
        for_each_user(|world| {
            eprintln!("{what}");
            let report = attack_through(world, &rewriting(change));
            assert_refused(&report, &[("bwrap", "could not")]);
            assert_nothing_ran(world);
        });
    }
}

#[test]
fn one_that_gives_everything_that_was_asked_for_is_served() {
    // What is changed above is the only reason for which it was refused.
    for_each_user(|world| {
        let report = attack_through(world, &rewriting("pass"));
        report.assert_exit(0).assert_full();
        assert!(world.inside("ran").exists());
        assert_eq!(text(world.outside("f")), "keep\n");
    });
}

#[test]
fn capabilities_that_it_keeps_do_not_reach_the_command() {
    for_each_user(|world| {
        let keeping = "at = words.index('--cap-drop'); words[at:at + 2] = ['--cap-add', 'ALL']";
        put(world, &world.system(), &rewriting(keeping));
        world.prepare(KEEP);
        let report = Case::new(WorkspaceWrite)
            .options(["--backend", "bwrap"])
            .env("PATH", format!("{}:{USUAL}", world.system().display()))
            .shell("grep Cap /proc/self/status | tr -s '\\t' ' '; grep NoNewPrivs /proc/self/status; mount -o remount,rw,bind / ; echo x > $OUT/f; exit 0")
            .run_in(world);
        report.assert_exit(0);
        let held: Vec<_> = report
            .stdout()
            .lines()
            .filter(|line| line.starts_with("Cap") && !line.starts_with("CapBnd"))
            .collect();
        assert!(
            held.len() == 4 && held.iter().all(|line| line.ends_with(" 0000000000000000")),
            "{report}"
        );
        assert!(report.stdout().contains("NoNewPrivs:\t1"), "{report}");
        assert_eq!(text(world.outside("f")), "keep\n");
    });
}

#[test]
fn one_that_opens_what_is_protected_is_found_out() {
    for_each_user(|world| {
        world.prepare("mkdir .git; echo keep > .git/config");
        let open = "at = len(words) - 1 - words[::-1].index('--ro-bind'); words[at] = '--bind'";
        let left_out = "at = len(words) - 1 - words[::-1].index('--ro-bind'); words[at:at + 3] = [] if '.git' in words[at + 1] else words[at:at + 3]";
        for change in [open, left_out] {
            put(world, &world.system(), &rewriting(change));
            let report = Case::new(WorkspaceWrite)
                .options(["--backend", "bwrap", "--evidence", "off", "--protect", ".git"])
                .env("PATH", format!("{}:{USUAL}", world.system().display()))
                .shell("echo x > .git/config; touch ran")
                .run_in(world);
            assert_refused(&report, &[("bwrap", "could not")]);
            assert_eq!(text(world.inside(".git/config")), "keep\n");
            assert!(!world.inside("ran").exists());
        }
    });
}

#[test]
fn a_root_that_landed_in_another_place_is_found_out() {
    for_each_user(|world| {
        world.prepare(&format!("{KEEP}; mkdir $W/place"));
        // As if somebody had exchanged the names while bubblewrap looked them up: what is outside, beneath the workspace.
        let elsewhere = "at = len(words) - 1 - words[::-1].index('--bind'); words[at + 1:at + 3] = [OUT, words[at + 2] + '/place'] if words[at + 2].endswith('/w') else words[at + 1:at + 3]";
        put(world, &world.system(), &rewriting(elsewhere));
        let report = Case::new(WorkspaceWrite)
            .options(["--backend", "bwrap", "--evidence", "off", "--temp", "none"])
            .env("PATH", format!("{}:{USUAL}", world.system().display()))
            .shell("echo changed > place/f; touch ran")
            .run_in(world);
        assert_refused(&report, &[("bwrap", "could not keep a writable root writable")]);
        assert_nothing_ran(world);
        assert_eq!(text(world.outside("f")), "keep\n");
    });
}
