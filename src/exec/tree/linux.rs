//! The processes of a run: the descendants of its reaper, as /proc shows them.

use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use ringfence_backend::{Launched, descriptor};

/// How long a tree is looked at again that goes on growing. What is left is killed after the grace
/// period in any case.
const PATIENCE: Duration = Duration::from_millis(200);
/// How many processes are opened at a time.
const AT_ONCE: usize = 256;

/// Whether the command was stopped and not continued since (proc_pid_stat(5), the state after the name in
/// parentheses).
pub(in crate::exec) fn is_stopped(process: &Launched) -> bool {
    let stat = process
        .command
        .and_then(|pid| read_to_string(format!("/proc/{pid}/stat")).ok());
    stat.is_some_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
}

/// Sends these signals to every process of a run, those included that are made meanwhile.
///
/// A number is signalled only while it names a process of the tree: it is looked up, opened
/// (pidfd_open(2)) and looked up again before anything is sent.
pub(in crate::exec) fn signal(process: &Launched, signals: &[Signal]) {
    let ancestor = process.reaper();
    let over = Instant::now() + PATIENCE;
    let mut told = BTreeSet::new();
    while Instant::now() < over {
        let opened: Vec<(i32, OwnedFd)> = descendants(ancestor)
            .into_iter()
            .filter(|pid| !told.contains(pid))
            .filter_map(|pid| Some((pid, descriptor::open_process(pid).ok()?)))
            .take(AT_ONCE)
            .collect();
        if opened.is_empty() {
            return;
        }
        let still = descendants(ancestor);
        for (pid, process) in opened.iter().filter(|(pid, _)| still.contains(pid)) {
            for signal in signals {
                // A process that has ended meanwhile needs no signal.
                let _ = descriptor::signal(process.as_fd(), *signal as i32);
            }
            told.insert(*pid);
        }
    }
}

/// The children of a process and their children, as /proc shows them (proc_pid_task_children(5)).
fn descendants(ancestor: i32) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut next = vec![ancestor];
    while let Some(pid) = next.pop() {
        let Ok(tasks) = read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_ascii_whitespace().filter_map(|word| word.parse().ok()) {
                if found.insert(child) {
                    next.push(child);
                }
            }
        }
    }
    found
}
