//! The trail in the forms of other engines, read back by those engines.
//!
//! Every kind of record goes through each of them, with values that break what is put together
//! carelessly. What an engine says it read is compared with the trail itself.

mod corpus;
mod journal;
mod ocsf;
mod program;
mod syslog;
mod tables;
mod vector;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::support::{User, World};

/// A world in whose trail stands every kind of record.
struct Trail {
    world: World,
    /// The lines, without their ends.
    lines: Vec<Vec<u8>>,
}

impl Trail {
    fn new() -> Self {
        let world = World::new(User::Caller);
        corpus::record(&world.state());
        let lines = lines(&segments(&world.state()));
        assert!(lines.len() >= corpus::kinds().len());
        Self { world, lines }
    }

    /// The records, as JSON.
    fn records(&self) -> Vec<Value> {
        self.lines
            .iter()
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    /// The trail in another form, as the program gives it out.
    fn exported(&self, format: &str) -> Vec<u8> {
        let mut command = self.world.command(self.world.program());
        command.args(["audit", "export", "--format", format]);
        let outcome = self.world.outcome(command);
        assert_eq!((outcome.status(), outcome.stderr()), (0, String::new()));
        outcome.output.stdout
    }

    /// A fresh path in the world.
    fn place(&self, name: &str) -> PathBuf {
        self.world.outside(name)
    }
}

/// The names of the segments of a trail, oldest first.
fn names(state: &Path) -> Vec<String> {
    let mut names = crate::support::names(state.join("audit"));
    names.retain(|name| Path::new(name).extension().is_some_and(|it| it == "jsonl"));
    names
}

/// All segments of a trail, one after the other.
fn segments(state: &Path) -> Vec<u8> {
    let names = names(state).into_iter();
    names
        .flat_map(|name| std::fs::read(state.join("audit").join(name)).unwrap())
        .collect()
}

/// A program of those that `.ci/engines` installs.
fn tool(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/test-tools/engines");
    let place = std::env::var_os("RINGFENCE_TEST_ENGINES").map_or(here, PathBuf::from);
    let tool = place.join("bin").join(name);
    assert!(
        tool.exists(),
        "this test needs {}: run `.ci/engines`, which installs it there from PyPI, or name another such directory in \
         RINGFENCE_TEST_ENGINES",
        tool.display()
    );
    tool
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

/// One JSON object a line.
fn objects(bytes: &[u8]) -> Vec<Value> {
    lines(bytes)
        .iter()
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// The leaves of a document, each with the path that leads to it. What is null is not there.
fn leaves(value: &Value) -> Map<String, Value> {
    fn walk(at: &str, value: &Value, all: &mut Map<String, Value>) {
        match value {
            Value::Null => {}
            Value::Object(fields) => fields
                .iter()
                .for_each(|(name, value)| walk(&format!("{at}/{name}"), value, all)),
            Value::Array(items) => {
                let numbered = items.iter().enumerate();
                numbered.for_each(|(number, value)| walk(&format!("{at}/{number}"), value, all));
            }
            leaf => {
                all.insert(at.to_owned(), leaf.clone());
            }
        }
    }
    let mut all = Map::new();
    walk("", value, &mut all);
    all
}
