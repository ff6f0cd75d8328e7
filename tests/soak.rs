//! Many runs in one process leave nothing behind in it.
//!
//! A binary of its own: descriptors, threads and children are counted for the whole process.
//! `RINGFENCE_SOAK=10000 cargo test --test soak` makes it as many as that.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ringfence::policy::open_root;
use ringfence::{
    Abort, Deployment, ExecRequest, Exit, Runner, SandboxExecutionPolicy, SandboxMode, Surroundings, Temp, resolve,
};

const SEQUENTIAL: usize = 300;
const PARALLEL: usize = 64;

/// What a process holds, as /proc tells.
#[derive(Debug, PartialEq, Eq)]
struct Holdings {
    descriptors: BTreeSet<PathBuf>,
    threads: usize,
    children: String,
    temp: BTreeSet<PathBuf>,
}

fn holdings() -> Holdings {
    let names = |of: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(of).unwrap().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let tasks = names("/proc/self/task");
    let children = tasks
        .iter()
        .map(|task| std::fs::read_to_string(task.join("children")).unwrap_or_default());
    let temp = names("/tmp").into_iter().chain(names("/var/tmp"));
    Holdings {
        // The list itself is read through one more.
        descriptors: names("/proc/self/fd").into_iter().filter(|fd| fd.exists()).collect(),
        children: children.collect(),
        threads: tasks.len(),
        temp: temp.filter(|path| path.to_string_lossy().contains("/rf-")).collect(),
    }
}

/// Resident memory in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

fn policy(mode: SandboxMode, root: &Path) -> SandboxExecutionPolicy {
    let deployment = Deployment {
        mode,
        temp: Some(Temp::Private),
        ..Deployment::default()
    };
    let surroundings = Surroundings {
        caller_dir: open_root(root).unwrap(),
        host_temp: Vec::new(),
        home: None,
        state_dir: None,
        allow_broad_root: false,
    };
    resolve(&deployment, None, None, &surroundings).unwrap()
}

/// One run that writes, forks, leaves somebody behind and is denied something.
fn run(runner: &Runner, policy: &SandboxExecutionPolicy, number: usize) {
    let text = format!("echo {number} > f{number}; cat f{number}; rm f{number}; setsid sleep 60 & : > /etc/x; exit 7");
    let mut request = ExecRequest::new(["bash", "-c", &text].map(Into::into).to_vec(), policy.clone());
    request.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let report = runner
        .run_blocking(runner.resolve(request).unwrap(), &Abort::new().unwrap())
        .unwrap();
    assert_eq!(report.exit, Exit::Code(7), "{report:#?}");
    assert_eq!(report.stdout.unwrap().text, format!("{number}\n"));
    assert_eq!(report.sandbox.survivors.unwrap().found, 1);
}

#[test]
fn runs_leave_no_descriptor_child_thread_or_file_and_no_memory() {
    let asked = std::env::var("RINGFENCE_SOAK").ok().and_then(|text| text.parse().ok());
    let sequential = asked.unwrap_or(SEQUENTIAL);
    let root = tempfile::tempdir_in("/var/lib")
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    let runner = Runner::new(None);
    let policy = policy(SandboxMode::WorkspaceWrite, root.path());
    // What is made once and kept (rulesets, the allocator's pools) is made now.
    for number in 0..50 {
        run(&runner, &policy, number);
    }
    let (before, memory) = (holdings(), resident());
    for number in 0..sequential {
        run(&runner, &policy, number);
    }
    assert_eq!(holdings(), before, "after {sequential} runs, one after another");
    let grown = resident().saturating_sub(memory);
    assert!(grown < 1024, "memory grew by {grown} KiB in {sequential} runs");
    std::thread::scope(|scope| {
        for number in 0..PARALLEL {
            let (runner, policy) = (&runner, &policy);
            scope.spawn(move || (0..4).for_each(|round| run(runner, policy, number * 4 + round)));
        }
    });
    assert_eq!(holdings(), before, "after {PARALLEL} at a time");
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}
