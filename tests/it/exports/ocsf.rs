//! OCSF, read by Tenzir, which has the schema: every field has its type and its place, and every number
//! the name that we say it has. What an event must have is asked of the schema itself.

use serde_json::{Value, json};

use super::{Trail, leaves, objects, tool};

/// What Tenzir is asked to do. The schema's times are numbers of milliseconds on paper. What has a name in
/// the schema for its number is thrown away, and named by Tenzir.
const PIPELINE: &str = r#"
from_stdin { read_ndjson raw=true }
time = from_epoch(time * 1ms)
if this.has("start_time") {
  start_time = from_epoch(start_time * 1ms)
  end_time = from_epoch(end_time * 1ms)
}
if this.has("finding_info") {
  finding_info.created_time = from_epoch(finding_info.created_time * 1ms)
}
ocsf_cast
ocsf_derive
write_ndjson
"#;

/// What stands beside a number in the schema's own words.
const CAPTIONS: [&str; 9] = [
    "class_name",
    "category_name",
    "activity_name",
    "type_name",
    "severity",
    "status",
    "action",
    "disposition",
    "type",
];

#[test]
fn tenzir_reads_every_record_as_ocsf_and_drops_nothing() {
    let trail = Trail::new();
    let ours = objects(&trail.exported("ocsf"));
    let theirs = read_by_tenzir(&trail, &ours);
    assert_eq!(theirs.len(), trail.lines.len(), "one event for each record");
    for (our, their) in ours.iter().zip(&theirs) {
        let their = leaves(their);
        for (path, value) in leaves(our) {
            if !path.ends_with("time") || path == "/metadata/original_time" {
                assert_eq!(their.get(&path), Some(&value), "{path} of {our}");
            } else {
                assert_eq!(millis(&their[&path]), value.as_i64(), "{path} of {our}");
            }
        }
    }
}

#[test]
fn tenzir_has_the_same_names_for_our_numbers() {
    let trail = Trail::new();
    let ours = objects(&trail.exported("ocsf"));
    let bare: Vec<_> = ours.iter().map(without_captions).collect();
    for (our, their) in ours.iter().zip(read_by_tenzir(&trail, &bare)) {
        let names = |value: &Value| -> Vec<_> {
            let leaves = leaves(value).into_iter();
            leaves.filter(|(path, _)| is_caption(path, value)).collect()
        };
        assert_eq!(names(our), names(&their), "{our}");
    }
}

#[test]
fn each_kind_of_record_is_the_class_of_event_that_it_is_said_to_be() {
    let trail = Trail::new();
    let events = read_by_tenzir(&trail, &objects(&trail.exported("ocsf")));
    for (record, event) in trail.records().iter().zip(&events) {
        let kind = record["type"].as_str().unwrap();
        let class = match kind {
            "denial" => "File System Activity",
            "run.start" | "run.end" => "Process Activity",
            "approval.asked" | "approval.decided" | "approval.consumed" => "Authorize Session",
            "session.created" | "mode.changed" | "policy.loaded" => "Device Config State Change",
            _ => "Detection Finding",
        };
        assert_eq!(event["class_name"], class, "{kind}");
        assert_eq!(event["metadata"]["uid"], record["id"]);
        assert_eq!(event["metadata"]["sequence"], record["seq"]);
        assert_eq!(event["metadata"]["event_code"], record["type"]);
        assert_eq!(event["metadata"]["original_time"], record["time"]);
        assert_eq!(event["device"]["hostname"], record["host"]);
        assert_eq!(event["unmapped"]["prev"], record["prev"]);
        if kind == "denial" {
            let refused = ["action", "disposition", "status"].map(|name| event[name].as_str().unwrap());
            assert_eq!(refused, ["Denied", "Blocked", "Failure"]);
            assert_eq!(event["file"]["path"], record["path"]);
            assert_eq!(event["status_code"], record["errno"]);
            assert_eq!(event["unmapped"]["op"], record["op"]);
            assert_eq!(event["actor"]["process"]["pid"], record["pid"]);
        }
        if kind == "run.start" {
            assert_eq!(event["unmapped"]["argv"], record["argv"], "the words as they were");
        }
    }
}

#[test]
fn a_field_that_the_schema_does_not_have_is_seen_by_tenzir() {
    let trail = Trail::new();
    let event = json!({"class_uid": 1001, "time": 0, "metadata": {"version": "1.5.0"}, "nosuch": 1});
    let (_, said) = through_tenzir(&trail, &[event]);
    assert!(said.contains("does not exist in schema"), "{said}");
}

/// Holds each event against the schema of its class and profiles, and prints what is wrong with it.
const VALIDATOR: &str = r#"
import json, sys
from jsonschema import Draft202012Validator
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema
schema = OcsfJsonSchemaEmbedded(get_ocsf_schema("1.5.0"))
classes = {1001: "file_activity", 1007: "process_activity", 2004: "detection_finding",
           3003: "authorize_session", 5019: "device_config_state_change"}
for line in sys.stdin:
    event = json.loads(line)
    of_class = schema.get_class_schema(classes[event["class_uid"]], event["metadata"]["profiles"])
    for error in Draft202012Validator(of_class).iter_errors(event):
        print(event["metadata"]["event_code"], "/".join(map(str, error.path)), error.message)
"#;

/// What the schema has against events.
fn objections(trail: &Trail, events: &[Value]) -> String {
    let file = trail.place("events.ndjson");
    std::fs::write(&file, ndjson(events)).unwrap();
    let mut command = trail.world.command_of_harness(tool("python3"));
    command.args(["-B", "-c", VALIDATOR]);
    command.stdin(std::fs::File::open(file).unwrap());
    let outcome = trail.world.outcome(command);
    assert_eq!(outcome.status(), 0, "{}", outcome.stderr());
    outcome.stdout()
}

#[test]
fn every_event_has_what_the_schema_of_its_class_and_profiles_demands_and_nothing_else() {
    let trail = Trail::new();
    let events = objects(&trail.exported("ocsf"));
    assert_eq!(objections(&trail, &events), "");
    let mut wrong = events;
    for event in &mut wrong {
        event.as_object_mut().unwrap().remove("device");
    }
    let found = objections(&trail, &wrong);
    assert!(found.contains("denial  'device' is a required property"), "{found}");
}

/// Events as Tenzir has them once it has given each field its type. It must have nothing to say.
fn read_by_tenzir(trail: &Trail, events: &[Value]) -> Vec<Value> {
    let (mut events, said) = through_tenzir(trail, events);
    assert_eq!(said, "", "Tenzir reads them without a word");
    // Each side of an `if` comes by itself.
    events.sort_by_key(|event| event["metadata"]["sequence"].as_u64());
    events
}

fn through_tenzir(trail: &Trail, events: &[Value]) -> (Vec<Value>, String) {
    let file = trail.place("events.ndjson");
    std::fs::write(&file, ndjson(events)).unwrap();
    let pipeline = trail.place("pipeline.tql");
    std::fs::write(&pipeline, PIPELINE).unwrap();
    let mut command = trail.world.command_of_harness(tool("tenzir"));
    command.args(["--bare-mode", "--color=never", "-f"]).arg(pipeline);
    command.stdin(std::fs::File::open(file).unwrap());
    let outcome = trail.world.outcome(command);
    (objects(&outcome.output.stdout), outcome.stderr())
}

/// One event a line.
fn ndjson(events: &[Value]) -> Vec<u8> {
    let lines = events
        .iter()
        .flat_map(|event| [event.to_string().into_bytes(), b"\n".to_vec()]);
    lines.flatten().collect()
}

/// A time as Tenzir prints it, in milliseconds.
fn millis(time: &Value) -> Option<i64> {
    let time: jiff::Timestamp = time.as_str()?.parse().ok()?;
    Some(time.as_millisecond())
}

/// Whether a name stands beside a number that the schema has a name for.
fn is_caption(path: &str, event: &Value) -> bool {
    let (above, name) = path.rsplit_once('/').unwrap();
    let beside = |name: &str| event.pointer(&format!("{above}/{name}"));
    let number = match name {
        "class_name" => "class_uid",
        "category_name" => "category_uid",
        "activity_name" => "activity_id",
        "type_name" => "type_uid",
        _ => return CAPTIONS.contains(&name) && beside(&format!("{name}_id")).is_some_and(|id| id != 99),
    };
    beside(number).is_some_and(|id| id != 99)
}

/// The event without the names that Tenzir derives.
fn without_captions(event: &Value) -> Value {
    let mut bare = event.clone();
    let paths: Vec<_> = leaves(event).into_iter().map(|(path, _)| path).collect();
    for path in paths.iter().filter(|path| is_caption(path, event)) {
        let (above, name) = path.rsplit_once('/').unwrap();
        bare.pointer_mut(above).unwrap().as_object_mut().unwrap().remove(name);
    }
    assert_ne!(&bare, event);
    bare
}
