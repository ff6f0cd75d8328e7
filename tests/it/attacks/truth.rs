//! Denials that were none, and those that nobody noticed.

use std::fs;

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use crate::escapes::{KEEP, untouched};
use crate::support::{CONTAINER, Case, for_each_user, names, text};

use super::{EVIDENCE, WATCHED, assert_recorded, compile, compile_calls, unconfined};

#[test]
fn opening_for_reading_in_the_newer_way_is_no_write() {
    for_each_user(|world| {
        compile_calls(world);
        world.prepare(&format!("{KEEP}; mkdir jail"));
        for evidence in WATCHED {
            let text = "\"$HOME/calls\" read-how \"$OUT/f\"; \"$HOME/calls\" read-how /etc/passwd; \
                \"$HOME/calls\" root-how jail /made";
            let report = Case::new(WorkspaceWrite).options(evidence).shell(text).run_in(world);
            report.assert_exit(0).assert_full().assert_denied(false);
            assert_eq!(report.stdout(), "done\ndone\ndone\n", "{report}");
            fs::remove_file(world.inside("jail/made")).unwrap();
            untouched(world);
        }
    });
}

#[test]
fn times_that_are_left_as_they_are_may_be_left_so_anywhere() {
    for_each_user(|world| {
        compile_calls(world);
        world.prepare(KEEP);
        for mode in [ReadOnly, WorkspaceWrite] {
            for evidence in WATCHED {
                let text = "\"$HOME/calls\" omit \"$OUT/f\"";
                let report = Case::new(mode).options(evidence).shell(text).run_in(world);
                report.assert_exit(0).assert_denied(false);
                assert_eq!(report.stdout(), "done\n", "{report}");
                untouched(world);
            }
        }
    });
}

#[test]
fn a_name_in_a_directory_that_is_gone_is_no_denial() {
    for_each_user(|world| {
        compile_calls(world);
        for evidence in WATCHED {
            world.prepare("mkdir $OUT/gone; rm -f leave left");
            let neighbour = world.neighbour(
                "echo ready; until [ -e leave ]; do sleep 0.02; done; rmdir $OUT/gone; touch left; exec sleep 600",
            );
            let text = "mkdir d; cd d; rmdir ../d; \"$HOME/calls\" open new; \"$HOME/calls\" mkfifo new; \
                cd \"$OUT/gone\"; touch \"$W/leave\"; until [ -e \"$W/left\" ]; do sleep 0.02; done; \
                \"$HOME/calls\" open new; \"$HOME/calls\" mkfifo new; exit 0";
            let report = Case::new(WorkspaceWrite).options(evidence).shell(text).run_in(world);
            drop(neighbour);
            report.assert_exit(0).assert_full().assert_denied(false);
            assert!(!report.stdout().contains("done"), "{report}");
        }
    });
}

#[test]
fn nothing_is_denied_of_a_rename_or_link_into_a_directory_that_is_gone() {
    for_each_user(|world| {
        compile_calls(world);
        for evidence in WATCHED {
            world.prepare("mkdir $OUT/gone; echo keep > f; rm -f leave left");
            let neighbour = world.neighbour(
                "echo ready; until [ -e leave ]; do sleep 0.02; done; rmdir $OUT/gone; touch left; exec sleep 600",
            );
            let text = "cd \"$OUT/gone\"; touch \"$W/leave\"; until [ -e \"$W/left\" ]; do sleep 0.02; done; \
                \"$HOME/calls\" rename \"$W/f\" new; \"$HOME/calls\" link \"$W/f\" new; exit 0";
            let report = Case::new(WorkspaceWrite).options(evidence).shell(text).run_in(world);
            drop(neighbour);
            report.assert_exit(0).assert_full().assert_denied(false);
            assert!(!report.stdout().contains("done"), "{report}");
            assert!(world.inside("f").exists() && names(world.beside()).is_empty());
        }
    });
}

#[test]
fn a_new_file_named_as_if_it_were_a_directory_is_no_denial() {
    for_each_user(|world| {
        compile_calls(world);
        for evidence in WATCHED {
            let case = Case::new(WorkspaceWrite).options(evidence);
            let report = case.shell("\"$HOME/calls\" open \"$OUT/new/\"").run_in(world);
            report.assert_exit(0).assert_full().assert_denied(false);
            // EISDIR, as it would be anywhere.
            assert_eq!(report.stdout(), "21\n", "{report}");
            assert!(names(world.beside()).is_empty());
        }
    });
}

/// Attempts that fail without confinement, too, because of the slash at the end of a name.
const SLASHES: [&str; 10] = [
    "open \"$OUT/f/\"",
    "unlink \"$OUT/f/\"",
    "truncate \"$OUT/f/\"",
    "chmod \"$OUT/f/\"",
    "mkfifo \"$OUT/new/\"",
    "symlink \"$OUT/new/\"",
    "link \"$OUT/f\" \"$OUT/new/\"",
    "link \"$OUT/f/\" \"$OUT/new\"",
    "rename \"$OUT/f\" \"$OUT/new/\"",
    "rename \"$OUT/f/\" \"$OUT/new\"",
];

#[test]
fn no_call_is_denied_what_a_slash_at_the_end_of_a_name_forbids_already() {
    for_each_user(|world| {
        compile_calls(world);
        world.prepare(KEEP);
        let mut wrong = Vec::new();
        for words in SLASHES {
            let free = unconfined(world, words);
            assert_ne!(free, "done\n", "{words}");
            for evidence in WATCHED {
                let case = Case::new(WorkspaceWrite).options(evidence);
                let report = case.shell(&format!("\"$HOME/calls\" {words}")).run_in(world);
                report.assert_exit(0).assert_full();
                if report.field("/sandbox/denied") != false {
                    wrong.push(format!("{evidence:?} {words}: {}", report.field("/sandbox/denials")));
                }
                untouched(world);
                assert_eq!(names(world.beside()), ["f"]);
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

#[test]
fn a_path_that_cannot_be_read_never_makes_a_denial_unsaid() {
    for_each_user(|world| {
        compile_calls(world);
        for how in ["write-only", "secret"] {
            for evidence in WATCHED {
                let case = Case::new(WorkspaceWrite).options(evidence);
                let text = format!("\"$HOME/calls\" hidden {how} \"$OUT/new\"");
                let report = case.shell(&text).run_in(world);
                report.assert_exit(0).assert_full();
                assert!(names(world.beside()).is_empty(), "{report}");
                if report.stdout() == "none\n" {
                    eprintln!("NOT RUN, needs a kernel with memfd_secret(2)");
                    continue;
                }
                let denied = report.field("/sandbox/denied");
                assert!(denied.is_null() || denied == true, "{report}");
                assert_ne!(report.stdout(), "done\n", "{report}");
            }
        }
    });
}

#[test]
fn read_only_without_namespaces_refuses_metadata_and_says_so() {
    for_each_user(|world| {
        world.prepare(KEEP);
        let text = "chmod 777 \"$OUT/f\"; touch -d 2001-01-01 \"$OUT/f\"; exit 0";
        let report = Case::new(ReadOnly).inside(CONTAINER).shell(text).run_in(world);
        report.assert_exit(0).assert_full();
        assert_recorded(&report, "chmod", &world.outside("f"));
        assert_recorded(&report, "utime", &world.outside("f"));
        untouched(world);
        if world.uid() != 0 {
            let text = "cd \"$TMPDIR\"; echo a > f; chmod 751 f && stat -c %a f";
            let report = Case::new(ReadOnly).inside(CONTAINER).shell(text).run_in(world);
            report.assert_exit(0).assert_denied(false);
            assert_eq!(report.stdout(), "751\n", "{report}");
        }
    });
}

#[test]
fn a_thread_that_is_cancelled_while_it_opens_cleans_up() {
    for_each_user(|world| {
        let source = include_str!("../programs/cancelled.c");
        compile(world, "cc", "cancelled-c", source);
        let mut programs = vec!["cancelled-c"];
        if world.bash("command -v g++").status() == 0 {
            compile(world, "g++ -x c++", "cancelled-cc", source);
            programs.push("cancelled-cc");
        }
        world.prepare("mkfifo p");
        for program in programs {
            for evidence in EVIDENCE {
                let case = Case::new(WorkspaceWrite).options(evidence);
                let report = case.shell(&format!("\"$HOME/{program}\" p")).run_in(world);
                report.assert_exit(0);
                assert_eq!(report.stdout(), "1 1 1\n".repeat(3), "{report}");
            }
        }
    });
}

#[test]
fn programs_run_where_the_directory_of_the_c_library_is_writable() {
    for_each_user(|world| {
        let library =
            world.prepare("ldd /bin/sh | sed -n 's/.*=> *\\(.*libc[^ ]*\\) .*/\\1/p' | xargs realpath | xargs dirname");
        let listing = format!("ls -la {} | sha256sum", library.trim_end());
        let before = world.prepare(&listing);
        for evidence in EVIDENCE {
            let case = Case::new(WorkspaceWrite)
                .options(evidence)
                .options(["--write", library.trim_end()]);
            let report = case
                .shell("ls / | wc -l > here; echo x > \"$OUT/new\"; cat here; exit 0")
                .run_in(world);
            report.assert_exit(0).assert_full();
            assert!(report.stdout().trim().parse::<u32>().unwrap() > 0, "{report}");
            assert_eq!(text(world.inside("here")), report.stdout());
            assert!(names(world.beside()).is_empty());
        }
        assert_eq!(world.prepare(&listing), before);
    });
}
