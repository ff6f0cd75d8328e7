//! Ways in that were once open: found by trying, mended, and tried again at every change.
//!
//! Each case shows where it cheaply can that the attack does something where nobody confines it.

mod descriptors;
mod kernel;
mod links;
mod state;
mod time;
mod truth;

use std::fs;
use std::path::Path;

use crate::support::{Report, World};

/// Makes one call of many, and says `done` or its errno: `$HOME/calls`.
const CALLS: &str = include_str!("programs/calls.c");

/// What is observed: the calls that were refused, every call, and none.
const EVIDENCE: [[&str; 2]; 3] = [["--evidence", "auto"], ["--evidence", "strict"], ["--evidence", "off"]];
const WATCHED: [[&str; 2]; 2] = [EVIDENCE[0], EVIDENCE[1]];

/// Compiles a program into the user's home.
fn compile(world: &World, compiler: &str, name: &str, source: &str) {
    fs::write(world.home().join(format!("{name}.c")), source).unwrap();
    world.prepare(&format!(
        "cd \"$HOME\"; {compiler} -O1 -fexceptions -pthread -o {name} {name}.c"
    ));
}

fn compile_calls(world: &World) {
    compile(world, "cc", "calls", CALLS);
}

/// What `$HOME/calls` prints without confinement, whatever its status.
fn unconfined(world: &World, words: &str) -> String {
    world.bash(&format!("\"$HOME/calls\" {words}")).stdout()
}

/// Asserts that a denial of an operation on a path is in the report.
fn assert_recorded(report: &Report, op: &str, path: &Path) {
    report.assert_denied(true);
    let denials = report.field("/sandbox/denials").as_array().unwrap();
    let found = denials
        .iter()
        .any(|denial| denial["op"] == op && denial["path"] == path.to_str().unwrap());
    assert!(found, "no {op} of {} is recorded:\n{report}", path.display());
}
