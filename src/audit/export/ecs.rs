//! Documents of the Elastic Common Schema. What it has no name for stands under `ringfence`.

use serde_json::{Map, Value, json};

use super::super::record::Event;
use super::Read;
use super::level::{Level, Outcome};
use super::words::{command_line, error_code, sentence};
use crate::facts::Operation;

/// The version of the schema.
const VERSION: &str = "8.17.0";

/// The document of a record.
pub(super) fn document(mut read: Read<'_>) -> Value {
    let event = read.record.entry.event.clone();
    let (category, kinds) = classes(&event);
    let record = &read.record;
    let mut document = json!({
        "@timestamp": record.time,
        "ecs": {"version": VERSION},
        "message": sentence(&event),
        "event": {
            "kind": "event",
            "module": "ringfence",
            "dataset": "ringfence.audit",
            "provider": "ringfence",
            "action": read.kind(),
            "category": category,
            "type": kinds,
            "outcome": Outcome::of(&event).word(),
            "severity": Level::of(&event).syslog(),
            "id": record.id,
            "sequence": record.seq,
        },
        "observer": {"product": "Ringfence", "vendor": "Ringfence", "version": env!("CARGO_PKG_VERSION")},
        "host": {"hostname": record.host, "boot": {"id": record.boot}},
        "user": {"id": record.uid.to_string()},
    });
    let mut own = Map::new();
    for (name, value) in [("session", &record.entry.session), ("run", &record.entry.run)] {
        if let Some(value) = value {
            own.insert(name.to_owned(), json!(value));
        }
    }
    own.insert("monoNs".to_owned(), json!(record.mono_ns));
    own.insert("prev".to_owned(), json!(record.prev));
    if let Value::Object(fields) = &mut document {
        fields.extend(named(&event, &mut read));
        if let Some(Value::Object(rest)) = read.payload.rest() {
            own.extend(rest);
        }
        fields.insert("ringfence".to_owned(), Value::Object(own));
    }
    document
}

/// The category and the types of an event.
fn classes(event: &Event) -> (&'static [&'static str], &'static [&'static str]) {
    match event {
        Event::RunStart { .. } => (&["process"], &["start"]),
        Event::RunEnd { .. } => (&["process"], &["end"]),
        Event::SandboxUnavailable { .. } | Event::RunnerFailed { .. } => (&["process"], &["error"]),
        Event::Denial { op, .. } => (
            &["file"],
            match op {
                Operation::Create | Operation::Link | Operation::Symlink | Operation::Mkdir | Operation::Mknod => {
                    &["creation", "denied"]
                }
                Operation::Remove => &["deletion", "denied"],
                _ => &["change", "denied"],
            },
        ),
        Event::SessionCreated { .. } => (&["session"], &["start"]),
        Event::ModeChanged { .. } => (&["configuration"], &["change"]),
        Event::PolicyLoaded { .. } => (&["configuration"], &["access"]),
        Event::ApprovalAsked { .. } => (&["iam"], &["info"]),
        Event::ApprovalDecided { outcome, .. } if outcome == "allowed-once" => (&["iam"], &["allowed"]),
        Event::ApprovalDecided { .. } => (&["iam"], &["denied"]),
        Event::ApprovalConsumed { .. } => (&["iam"], &["change"]),
        Event::Gap { .. } | Event::Torn { .. } => (&["configuration"], &["error"]),
        Event::Pruned { .. } => (&["configuration"], &["deletion"]),
    }
}

/// The fields that have a name in the schema.
fn named(event: &Event, read: &mut Read<'_>) -> Map<String, Value> {
    let (name, fields) = match event {
        Event::RunStart { argv, workdir, .. } | Event::ApprovalAsked { argv, workdir, .. } => {
            read.payload.take("argv");
            read.payload.take("workdir");
            let line = command_line(argv);
            let fields = json!({"args": argv, "command_line": line, "working_directory": workdir});
            ("process", fields)
        }
        Event::RunEnd {
            exit_code: Some(code), ..
        } => {
            read.payload.take("exitCode");
            ("process", json!({"exit_code": code}))
        }
        Event::RunnerFailed { code, message } => {
            read.payload.take("code");
            read.payload.take("message");
            ("error", json!({"code": error_code(*code), "message": message}))
        }
        Event::Denial { path, program, pid, .. } => {
            let mut fields = Map::new();
            read.payload.take("path");
            fields.insert("file".to_owned(), json!({"path": path}));
            let mut process = Map::new();
            if let Some(program) = program {
                read.payload.take("program");
                process.insert("name".to_owned(), json!(program));
            }
            if let Some(pid) = pid {
                read.payload.take("pid");
                process.insert("pid".to_owned(), json!(pid));
            }
            if !process.is_empty() {
                fields.insert("process".to_owned(), Value::Object(process));
            }
            return fields;
        }
        _ => return Map::new(),
    };
    Map::from_iter([(name.to_owned(), fields)])
}
