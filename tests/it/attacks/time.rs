//! What could keep a run from ending, or leave something of it behind.

use std::path::Path;
use std::time::{Duration, Instant};

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use crate::support::{Case, Report, World, for_each_user, names};

use super::{WATCHED, compile};

/// Far more than any of these runs needs, and far less than one that does not end.
const BOUND: Duration = Duration::from_mins(1);

fn ends(case: &Case, world: &World) -> Report {
    let started = Instant::now();
    let report = case.run_in(world);
    assert!(started.elapsed() < BOUND, "{:?}:\n{report}", started.elapsed());
    report
}

#[test]
fn a_writer_that_says_nothing_does_not_keep_the_deadline_from_acting() {
    for_each_user(|world| {
        world.prepare("mkfifo $OUT/p");
        let neighbour = world.neighbour("exec 7<> $OUT/p; echo ready; exec sleep 600");
        let case = Case::new(WorkspaceWrite).options(["--stdin", "$OUT/p", "-t", "1s"]);
        let late = |report: &Report| {
            assert_eq!(report.field("/timedOut"), true, "{report}");
            assert_eq!(report.status(), 124, "{report}");
        };
        late(&ends(&case.clone().argv(["cat"]), world));
        // A command that wants no input ends by itself.
        ends(&case.clone().argv(["true"]), world).assert_exit(0);
        drop(neighbour);
        // Nobody writes at all.
        late(&ends(&case.clone().argv(["cat"]), world));
        let neighbour = world.neighbour("echo ready; echo text > $OUT/p; exec sleep 600");
        let report = ends(&case.argv(["cat"]), world);
        assert_eq!(report.assert_exit(0).stdout(), "text\n", "{report}");
        drop(neighbour);
    });
}

#[test]
fn long_chains_of_links_do_not_keep_the_deadline_from_acting() {
    for_each_user(|world| {
        compile(world, "cc", "chains", include_str!("../programs/chains.c"));
        for evidence in WATCHED {
            world.prepare("rm -rf d; mkdir d");
            let case = Case::new(WorkspaceWrite)
                .options(evidence)
                .options(["-t", "1s", "--grace", "500ms"]);
            let report = ends(&case.shell("cd d; exec \"$HOME/chains\""), world);
            assert_eq!(report.field("/timedOut"), true, "{report}");
            assert_eq!(report.stdout(), "busy\n");
        }
    });
}

#[test]
fn a_private_directory_with_names_that_collide_is_removed() {
    for_each_user(|world| {
        // Names such as the removal itself could take, full and in each other's way.
        let text = "cd \"$TMPDIR\"; echo \"$TMPDIR\"; \
            for i in $(seq 40); do for n in .rf-moved-$i .rf-$i moved-$i .rf-0000000000000000-$i; do \
            mkdir -p $n/.rf-moved-$((i + 1))/.rf-moved-1/.rf-$i/$i; echo x > $n/.rf-moved-$((i + 1))/f; \
            mkdir -p deep/$n/$n/$n; chmod 0 deep/$n/$n; done; done; ln -s \"$OUT\" deep/out; chmod 0 deep; exit 0";
        for evidence in WATCHED {
            let report = Case::new(ReadOnly).options(evidence).shell(text).run_in(world);
            report.assert_exit(0).assert_full();
            let scratch = Path::new(report.stdout().trim_end());
            assert!(scratch.is_absolute(), "{report}");
            assert!(!scratch.exists(), "{} is still there", scratch.display());
            assert!(names(world.beside()).is_empty());
            assert!(world.beside().is_dir());
        }
    });
}
