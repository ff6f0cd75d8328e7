//! How denials are known: each refused call once, as it was, and nothing that the policy did not refuse.

mod accelerator;
mod calls;
mod hidden;
mod hostile;
mod library;
mod natural;
mod nested;
mod paths;
mod programs;
mod races;
mod senseless;
mod work;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::Value;

use crate::support::{Case, Report, World};

/// Both ways in which calls are watched: every one of them, or only what the kernel refused.
const WATCHED: [&str; 2] = ["strict", "auto"];

/// The program that makes one call, by its number or through the C library.
const CALL: &str = include_str!("programs/one_call.c");

/// Whether this host's C library is one that can be accelerated.
const ACCELERATED: bool = cfg!(all(target_arch = "x86_64", target_env = "gnu"));

/// Compiles a C program into the user's home, where no run can write and every run can read.
fn compile(world: &World, name: &str, source: &str, options: &str) {
    let directory = tools(world);
    world.prepare(&format!(
        "mkdir -p {directory}; cat > {directory}/{name}.c <<'END'\n{source}\nEND\n\
         cc -O1 -o {directory}/{name} {directory}/{name}.c {options}"
    ));
}

/// Where [`compile`] puts programs.
fn tools(world: &World) -> String {
    world.home().join("tools").display().to_string()
}

/// A case whose calls are watched in this way, with the compiled programs in `$TOOLS`.
fn watched(case: &Case, evidence: &str, world: &World) -> Case {
    case.clone()
        .options(["--evidence", evidence])
        .options(["--env", &format!("TOOLS={}", tools(world))])
}

/// The list of denials, after asserting that what is said of it as a whole is true of it.
fn denials(report: &Report) -> &[Value] {
    assert_eq!(report.text("/sandbox/evidence"), "observed", "{report}");
    let list = report.field("/sandbox/denials").as_array().expect("a list");
    let omitted = report.field("/sandbox/denialsOmitted").as_u64().expect("a number");
    report.assert_denied(!list.is_empty() || omitted > 0);
    for denial in list {
        assert!(denial["pid"].as_i64() > Some(0), "{report}");
        assert!(denial["count"].as_u64() > Some(0), "{report}");
        assert!(
            denial["path"].as_str().is_some_and(|path| path.starts_with('/')),
            "{report}"
        );
    }
    list
}

/// Each denial in a line: what, on what, the errno, by which program. Sorted, without the counts.
fn records(world: &World, report: &Report) -> Vec<String> {
    let mut lines: Vec<_> = denials(report)
        .iter()
        .map(|denial| {
            let field = |name: &str| denial[name].as_str().unwrap_or("?").to_owned();
            let path = short(world, &field("path"));
            format!("{} {path} {} {}", field("op"), field("errno"), field("program"))
        })
        .collect();
    lines.sort();
    lines
}

/// What was attempted on what, sorted, each once.
fn attempts(world: &World, report: &Report) -> Vec<String> {
    let mut attempts: Vec<_> = denials(report)
        .iter()
        .map(|denial| {
            let path = short(world, denial["path"].as_str().unwrap_or("?"));
            format!("{} {path}", denial["op"].as_str().unwrap_or("?"))
        })
        .collect();
    attempts.sort();
    attempts.dedup();
    attempts
}

/// A path without the part that every path of the world begins with: `out/f`, `w/f`.
fn short(world: &World, path: &str) -> String {
    let top = world.workspace().parent().unwrap().to_owned();
    let rest = Path::new(path).strip_prefix(top);
    rest.map_or_else(|_| path.to_owned(), |rest| rest.display().to_string())
}

/// Everything beneath a directory that any change whatever would change: the time of the last
/// change of each inode, which nobody can set, and what it is at all.
fn snapshot(directory: &Path) -> Vec<String> {
    let about = fs::symlink_metadata(directory).unwrap();
    let mut lines = vec![format!(
        "{} {} {:o} {} {}.{:09}",
        directory.display(),
        about.ino(),
        about.mode(),
        about.len(),
        about.ctime(),
        about.ctime_nsec()
    )];
    if about.is_dir() {
        let mut entries: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        entries.sort();
        lines.extend(entries.iter().flat_map(|entry| snapshot(entry)));
    }
    lines
}

/// Asserts that two lists of lines are the same, and shows where they are not.
fn assert_same(expected: &[String], seen: &[String], about: &str) {
    let missing: Vec<_> = expected.iter().filter(|line| !seen.contains(line)).collect();
    let surplus: Vec<_> = seen.iter().filter(|line| !expected.contains(line)).collect();
    assert!(
        missing.is_empty() && surplus.is_empty() && expected.len() == seen.len(),
        "{about}\nmissing: {missing:#?}\nsurplus: {surplus:#?}"
    );
}
