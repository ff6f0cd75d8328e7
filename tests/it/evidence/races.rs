//! A path that changes its meaning between look and use: nothing outside changes, and no record
//! says that something inside was refused.

use ringfence::SandboxMode::WorkspaceWrite;

use super::{WATCHED, assert_same, compile, denials, snapshot, watched};
use crate::support::{Case, Report, World, for_each_user};

const FLIP: &str = include_str!("../programs/flip.c");

/// The workspace `$OUT/a` and its neighbour `$OUT/b`, whose paths differ in one byte.
fn prepare(world: &World) {
    world.prepare("for d in a b; do mkdir $OUT/$d; echo keep > $OUT/$d/f; chmod 644 $OUT/$d/f; done");
    compile(world, "flip", FLIP, "-pthread");
}

fn run(world: &World, evidence: &str, words: &[&str]) -> Report {
    let case = Case::new(WorkspaceWrite).options(["--workspace", "$OUT/a"]).argv(
        [format!("{}/flip", super::tools(world))]
            .into_iter()
            .chain(words.iter().map(|&word| word.to_owned())),
    );
    watched(&case, evidence, world).run_in(world)
}

/// Every change was made inside at least once, and every denial is of something outside.
fn assert_sound(world: &World, report: &Report) {
    report.assert_exit(0).assert_full();
    let words: Vec<_> = report.stdout().split_whitespace().collect();
    for made in &words[..4] {
        assert_ne!(*made, "0", "{report}");
    }
    let outside = world.outside("b/f");
    for denial in denials(report) {
        assert_eq!(denial["path"], outside.to_str().unwrap(), "{report}");
        assert!(
            ["chmod", "write", "utime", "xattr"].contains(&denial["op"].as_str().unwrap()),
            "{report}"
        );
    }
}

fn race(kind: &str, inside: &str, outside: &str) {
    for evidence in WATCHED {
        for_each_user(|world| {
            prepare(world);
            let before = snapshot(&world.outside("b"));
            // Some are refused in any run that is long enough; one that meets none proves nothing.
            let met = (0..5).any(|_| {
                let report = run(world, evidence, &[kind, "4000", inside, outside]);
                assert_sound(world, &report);
                assert_same(&before, &snapshot(&world.outside("b")), "the outside changed");
                !denials(&report).is_empty()
            });
            assert!(met, "{evidence}: nothing was ever refused");
        });
    }
}

#[test]
fn a_path_whose_text_changes_lets_nothing_out() {
    race("memory", "$OUT/a/f", "$OUT/b/f");
}

#[test]
fn a_link_that_changes_lets_nothing_out() {
    race("link", "f", "../b/f");
}

#[test]
fn a_directory_on_the_way_that_changes_lets_nothing_out() {
    race("directory", ".", "../b");
}
