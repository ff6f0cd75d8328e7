//! Roots and protected paths that contradict, contain or repeat one another, under each backend.

use ringfence::SandboxMode::WorkspaceWrite;

use super::NAMED;
use crate::support::{Case, Report, World, names, text};

/// Runs a script in a fresh world of each user under each backend, after this preparation.
fn each(setup: &str, options: &[&str], script: &str, check: impl Fn(&World, &Report)) {
    for backend in NAMED {
        Case::new(WorkspaceWrite)
            .setup(setup)
            .options(backend)
            .options(["--temp", "none"])
            .options(options.iter().copied())
            .shell(script)
            .run_as_each_user(&check);
    }
}

#[test]
fn roots_within_one_another_and_twice_the_same_are_all_writable_and_nothing_more() {
    let options = [
        "--write",
        "$OUT/a",
        "--write",
        "$OUT/a/b",
        "--write",
        "$OUT/a",
        "--write",
        "$OUT/a/b/../b",
        "--write",
        "$W",
        "--write",
        ".",
    ];
    each(
        "mkdir -p $OUT/a/b $OUT/c",
        &options,
        "for d in $OUT $OUT/a $OUT/a/b $OUT/c .; do echo in > $d/f; chmod 600 $d/f; done; exit 0",
        |world, report| {
            report.assert_exit(0).assert_full();
            for written in [world.outside("a/f"), world.outside("a/b/f"), world.inside("f")] {
                assert_eq!(text(written), "in\n", "{report}");
            }
            assert_eq!(names(world.beside()), ["a", "c"]);
            assert!(names(world.outside("c")).is_empty());
        },
    );
}

#[test]
fn a_root_that_is_a_file_is_written_and_its_neighbour_is_not() {
    each(
        "echo keep > $OUT/a; echo keep > $OUT/b",
        &["--write", "$OUT/a"],
        "echo in > $OUT/a; echo x > $OUT/b; rm -f $OUT/a; exit 0",
        |world, report| {
            report.assert_exit(0).assert_full();
            assert_eq!(
                (text(world.outside("a")), text(world.outside("b"))),
                ("in\n".to_owned(), "keep\n".to_owned())
            );
        },
    );
}

#[test]
fn what_is_protected_stays_even_where_a_root_lies_beneath_it() {
    let options = ["--protect", "kept", "--write", "$W/kept/open"];
    each(
        "mkdir -p kept/open; echo keep > kept/f; echo keep > kept/open/f",
        &options,
        "echo x > kept/f; echo x > kept/open/f; exit 0",
        |world, report| {
            report.assert_exit(0);
            assert_eq!(text(world.inside("kept/f")), "keep\n", "{report}");
            assert_eq!(text(world.inside("kept/open/f")), "keep\n", "protection wins: {report}");
        },
    );
}

#[test]
fn what_is_protected_within_a_root_within_a_root_stays() {
    let options = ["--write", "$OUT/a", "--write", "$OUT/a/b", "--protect", "$OUT/a/b/kept"];
    each(
        "mkdir -p $OUT/a/b/kept; echo keep > $OUT/a/b/kept/f",
        &options,
        "echo x > $OUT/a/b/kept/f; mv $OUT/a/b $OUT/a/c; echo in > $OUT/a/b/f; exit 0",
        |world, report| {
            report.assert_exit(0).assert_full();
            assert_eq!(text(world.outside("a/b/kept/f")), "keep\n", "{report}");
            assert_eq!(text(world.outside("a/b/f")), "in\n", "{report}");
            assert_eq!(names(world.outside("a")), ["b"], "{report}");
        },
    );
}

#[test]
fn a_protected_path_is_what_it_leads_to() {
    let setup = "mkdir real; echo keep > real/f; echo keep > file; ln -s real dir-link; ln -s file file-link";
    let options = ["--protect", "dir-link", "--protect", "file-link"];
    each(
        setup,
        &options,
        "echo x > real/f; echo x > dir-link/f; echo x > file; echo x > file-link; exit 0",
        |world, report| {
            report.assert_exit(0);
            assert_eq!(
                (text(world.inside("real/f")), text(world.inside("file"))),
                ("keep\n".to_owned(), "keep\n".to_owned()),
                "{report}"
            );
            // The links themselves can be exchanged, which is said.
            report.assert_partial(&["protected-paths"]);
        },
    );
}

#[test]
fn a_protected_path_through_a_link_in_the_middle_is_held_where_it_leads() {
    each(
        "mkdir -p real/kept; echo keep > real/kept/f; ln -s real through",
        &["--protect", "through/kept"],
        "echo x > real/kept/f; echo x > through/kept/f; exit 0",
        |world, report| {
            report.assert_exit(0);
            assert_eq!(text(world.inside("real/kept/f")), "keep\n", "{report}");
        },
    );
}

#[test]
fn what_is_not_there_or_leads_nowhere_is_named_and_nothing_is_made_for_it() {
    for missing in ["none", "none/deeper", "dangling"] {
        each(
            "ln -s nowhere dangling",
            &["--protect", missing],
            "exit 0",
            |world, report| {
                report.assert_exit(0).assert_partial(&["protected-paths"]);
                assert_eq!(names(world.workspace()), ["dangling"], "{report}");
            },
        );
    }
}

#[test]
fn what_lies_outside_every_root_needs_no_protection_and_gets_no_less() {
    each(
        "echo keep > $OUT/f; mkdir $OUT/d",
        &["--protect", "$OUT/f", "--protect", "$OUT/d", "--protect", "/etc"],
        "echo x > $OUT/f; touch $OUT/d/x; exit 0",
        |world, report| {
            report.assert_exit(0).assert_full();
            assert_eq!(text(world.outside("f")), "keep\n");
            assert!(names(world.outside("d")).is_empty());
        },
    );
}

#[test]
fn a_protected_path_that_loops_and_a_root_that_is_not_there_are_refused() {
    for options in [
        &["--protect", "loop"][..],
        &["--write", "$OUT/none"],
        &["--write", "loop"],
        &["--write", ""],
        &["--protect", ""],
    ] {
        each("ln -s loop loop", options, "touch ran", |world, report| {
            report.assert_error("POLICY_INVALID");
            assert!(!world.inside("ran").exists());
        });
    }
}

#[test]
fn the_whole_workspace_can_be_protected() {
    each(
        "echo keep > f",
        &["--protect", "."],
        "echo x > f; touch new; exit 0",
        |world, report| {
            report.assert_exit(0).assert_full();
            assert_eq!(text(world.inside("f")), "keep\n");
            assert_eq!(names(world.workspace()), ["f"]);
        },
    );
}

#[test]
fn fifty_roots_are_all_writable() {
    let roots: Vec<String> = (0..50)
        .flat_map(|n| ["--write".to_owned(), format!("$OUT/{n}")])
        .collect();
    let roots: Vec<_> = roots.iter().map(String::as_str).collect();
    each(
        "mkdir $(seq -f \"$OUT/%.0f\" 0 60)",
        &roots,
        "for n in $(seq 0 60); do echo in > $OUT/$n/f; done; exit 0",
        |world, report| {
            report.assert_exit(0).assert_full();
            for n in 0..=60 {
                assert_eq!(
                    names(world.outside(&n.to_string())).len(),
                    usize::from(n < 50),
                    "{n}: {report}"
                );
            }
        },
    );
}
