//! Many runs in one process leave nothing behind in it.
//!
//! `RINGFENCE_SOAK=10000 cargo test --test library soak` makes it as many as that.

use std::path::PathBuf;

use ringfence::{Abort, Exit, Runner, SandboxExecutionPolicy, SandboxMode};

use crate::{Place, alone, request};

const SEQUENTIAL: usize = 300;
const PARALLEL: usize = 64;

/// What a process holds, as /proc tells.
#[derive(Debug, PartialEq, Eq)]
struct Holdings {
    descriptors: usize,
    threads: usize,
    children: String,
}

fn names(of: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(of).unwrap().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn holdings() -> Holdings {
    let tasks = names("/proc/self/task");
    let children = tasks
        .iter()
        .map(|task| std::fs::read_to_string(task.join("children")).unwrap_or_default());
    Holdings {
        descriptors: names("/proc/self/fd").len(),
        children: children.collect(),
        threads: tasks.len(),
    }
}

/// Resident memory in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// One run that writes, forks, leaves somebody behind and is denied something.
fn run(runner: &Runner, policy: &SandboxExecutionPolicy, number: usize) {
    let text = format!(
        "echo {number} > f{number}; cat f{number}; rm f{number}; echo $TMPDIR; setsid sleep 60 & : > /etc/x; exit 7"
    );
    let spec = runner.resolve(request(policy, &text)).unwrap();
    let report = runner.run_blocking(spec, &Abort::new()).unwrap();
    assert_eq!(report.exit, Exit::Code(7), "{report:#?}");
    let stdout = report.stdout.unwrap().text;
    let (first, temp) = stdout.trim_end().split_once('\n').unwrap();
    assert_eq!(first, number.to_string());
    assert!(temp.contains("/rf-") && !PathBuf::from(temp).exists(), "{temp}");
    assert_eq!(report.sandbox.survivors.unwrap().found, 1);
}

#[test]
fn runs_leave_no_descriptor_child_thread_or_file_and_no_memory() {
    let _alone = alone();
    let asked = std::env::var("RINGFENCE_SOAK").ok().and_then(|text| text.parse().ok());
    let sequential = asked.unwrap_or(SEQUENTIAL);
    let place = Place::new();
    let runner = Runner::new(None);
    let policy = place.policy(SandboxMode::WorkspaceWrite);
    // What is made once and kept (rulesets, the allocator's pools) is made now.
    for number in 0..50 {
        run(&runner, &policy, number);
    }
    let (before, memory) = (holdings(), resident());
    for number in 0..sequential {
        run(&runner, &policy, number);
    }
    let grown = resident().saturating_sub(memory);
    assert!(grown < 1024, "memory grew by {grown} KiB in {sequential} runs");
    assert_eq!(holdings(), before, "after {sequential} runs, one after another");
    std::thread::scope(|scope| {
        let (runner, policy) = (&runner, &policy);
        let threads: Vec<_> = (0..PARALLEL)
            .map(|number| scope.spawn(move || (0..4).for_each(|round| run(runner, policy, number * 4 + round))))
            .collect();
        // Joined one by one: the scope ends before its threads have.
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(holdings(), before, "after {PARALLEL} at a time");
    assert_eq!(std::fs::read_dir(place.root()).unwrap().count(), 0);
}
