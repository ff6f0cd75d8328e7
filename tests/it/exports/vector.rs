//! The configuration for Vector: the program in it, compiled and run by Vector's own language. Vector itself
//! is not run.

use std::path::Path;

use serde_json::Value;

use super::{Trail, objects, tool};

/// Runs the program of the configuration on each line, and prints what became of it.
const RUNNER: &str = r#"
import json, sys, tomllib, pyvrl
configuration = tomllib.load(open(sys.argv[1], "rb"))
program = pyvrl.Transform(configuration["transforms"]["records"]["source"])
for line in sys.stdin.buffer.read().split(b"\n")[:-1]:
    try:
        event = program.remap({"message": line.decode(), "file": "f", "timestamp": "read"})
        event["timestamp"] = event["timestamp"].isoformat()
    except ValueError as error:
        event = {"dropped": str(error)}
    print(json.dumps(event))
"#;

fn through_the_program(trail: &Trail, lines: &[u8]) -> Vec<Value> {
    let file = trail.place("lines");
    std::fs::write(&file, lines).unwrap();
    let configuration = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/contrib/vector.toml");
    let mut command = trail.world.command_of_harness(tool("python3"));
    command.args(["-B", "-c", RUNNER]).arg(configuration);
    command.stdin(std::fs::File::open(file).unwrap());
    let outcome = trail.world.outcome(command);
    assert_eq!(outcome.status(), 0, "{}", outcome.stderr());
    objects(&outcome.output.stdout)
}

#[test]
fn the_program_for_vector_keeps_every_field_of_every_record() {
    let trail = Trail::new();
    let events = through_the_program(&trail, &super::segments(&trail.world.state()));
    assert_eq!(events.len(), trail.lines.len());
    for (event, line) in events.iter().zip(&trail.lines) {
        let record: Value = serde_json::from_slice(line).unwrap();
        assert_eq!(event["ringfence"], record);
        assert_eq!(
            event["message"].as_str().unwrap().as_bytes(),
            line,
            "the line as it was"
        );
        let time = |text: &Value| text.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        assert_eq!(time(&event["timestamp"]), time(&record["time"]));
    }
}

#[test]
fn the_program_for_vector_sets_aside_what_is_no_record_of_this_version() {
    let trail = Trail::new();
    let events = through_the_program(&trail, b"{\"v\":1,\"se\n{\"v\":2}\n[1]\n{}\n");
    assert_eq!(events.len(), 4);
    assert!(events.iter().all(|event| event["dropped"].is_string()), "{events:?}");
}
