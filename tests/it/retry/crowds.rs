//! Many at once, and ends at any moment: no record is lost, torn or there twice, and no approval used twice.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};

use ringfence::SandboxMode::WorkspaceWrite;
use serde_json::Value;

use super::{YES, deploy_hook, finished, of_type, retry_command, trail};
use crate::support::{Case, World};

fn start(world: &World, text: &str) -> Child {
    let mut command = Case::new(WorkspaceWrite).shell(text).command_in(world);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Asserts that every use of an approval was of one that was allowed, each once, and each for one run.
fn assert_each_used_once(records: &[Value]) -> usize {
    let text = |record: &Value, key: &str| record[key].as_str().unwrap_or_default().to_owned();
    let allowed: BTreeSet<_> = of_type(records, "approval.decided")
        .into_iter()
        .filter(|record| record["outcome"] == "allowed-once")
        .map(|record| text(record, "request"))
        .collect();
    let consumed: Vec<_> = of_type(records, "approval.consumed")
        .into_iter()
        .map(|record| text(record, "request"))
        .collect();
    let once: BTreeSet<_> = consumed.iter().cloned().collect();
    assert_eq!(once.len(), consumed.len(), "an approval was used twice");
    assert!(once.is_subset(&allowed), "an approval was used that nobody gave");
    let started: Vec<_> = of_type(records, "run.start")
        .into_iter()
        .map(|record| text(record, "approval"))
        .filter(|approval| !approval.is_empty())
        .collect();
    let runs: BTreeSet<_> = started.iter().cloned().collect();
    assert_eq!(runs.len(), started.len(), "two runs had one approval");
    assert!(
        runs.is_subset(&once),
        "a run had an approval that was not used up for it"
    );
    consumed.len()
}

#[test]
fn two_hundred_runs_and_fifty_retries_at_once_are_each_recorded_once() {
    let world = World::anyone();
    deploy_hook(&world, YES, "");
    let run = finished(&world, "echo x >> $OUT/count");
    let mut children: Vec<_> = (0..200).map(|_| start(&world, "touch $OUT/denied; true")).collect();
    children.extend((0..50).map(|_| {
        let mut command = retry_command(&world, &run, &["--write", "$OUT"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }));
    let ended = children
        .into_iter()
        .map(|mut child| child.wait().unwrap().code().unwrap());
    assert_eq!(ended.filter(|code| *code == 0).count(), 250);
    let records = trail(&world);
    for kind in ["run.start", "run.end"] {
        let runs: BTreeSet<_> = of_type(&records, kind).iter().map(|it| it["run"].to_string()).collect();
        assert_eq!((of_type(&records, kind).len(), runs.len()), (251, 251), "{kind}");
    }
    // The first run was denied as well, and the approved ones were not.
    assert_eq!(of_type(&records, "denial").len(), 201);
    assert_eq!(assert_each_used_once(&records), 50);
    let lines = std::fs::read_to_string(world.outside("count")).unwrap();
    assert_eq!(lines.lines().count(), 50, "each approval was one run");
}

#[test]
fn whoever_is_killed_at_any_moment_leaves_a_trail_that_verifies_and_no_approval_that_is_used_twice() {
    const ROUNDS: usize = 500;
    let world = World::anyone();
    deploy_hook(&world, YES, "");
    let run = finished(&world, "echo x >> $OUT/count");
    let mut alive: Vec<Child> = Vec::new();
    // How far a process gets before the next one starts and the oldest is killed differs from round to round.
    for round in 0..ROUNDS {
        let mut command = if round % 5 == 0 {
            retry_command(&world, &run, &["--write", "$OUT"])
        } else {
            Case::new(WorkspaceWrite).shell("touch $OUT/denied").command_in(&world)
        };
        alive.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        if alive.len() > round % 7 {
            let mut oldest = alive.remove(0);
            oldest.kill().unwrap();
            oldest.wait().unwrap();
        }
    }
    for mut child in alive {
        child.wait().unwrap();
    }
    // One that ends by itself goes on where the others were killed.
    finished(&world, "true");
    let used = assert_each_used_once(&trail(&world));
    let count = std::fs::read_to_string(world.outside("count")).unwrap_or_default();
    assert!(count.lines().count() <= used, "a run took place without an approval");
}
