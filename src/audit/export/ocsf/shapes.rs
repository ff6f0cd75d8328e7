//! Which class each kind of record is, and what its fields are called there.

use serde_json::{Map, Value, json};

use super::super::super::record::{Decider, Event};
use super::super::Read;
use super::super::words::command_line;
use super::classes::{
    ASSIGN_PRIVILEGES, AUTHORIZE, Activity, CONFIGURATION, FILE_SYSTEM, LAUNCH, LOG, PROCESS, TERMINATE, activity,
};
use super::parts::{blocked, map, plain};
use super::{Shape, findings};
use crate::facts::Operation;

/// The shape of a record. What was named is taken out of its payload.
pub(super) fn shape(read: &mut Read<'_>) -> Shape {
    let event = read.record.entry.event.clone();
    match &event {
        Event::Denial { .. } => denial(&event, read),
        Event::RunStart { argv, workdir, .. } => {
            read.payload.take("workdir");
            let mut process = process(read);
            process.extend(words(argv));
            process.insert("working_directory".to_owned(), json!(workdir));
            plain(PROCESS, LAUNCH, [("process", Value::Object(process))])
        }
        Event::RunEnd { .. } => run_end(&event, read),
        Event::ApprovalAsked {
            difference,
            justification,
            ..
        } => {
            read.payload.take("justification");
            let asked = [
                ("status_detail", json!(justification)),
                ("privileges", json!([difference])),
            ];
            approval(Activity::other("Request Privileges"), asked, read)
        }
        Event::ApprovalDecided { by, outcome, .. } => {
            read.payload.take("outcome");
            let mut shape = approval(
                if outcome == "allowed-once" {
                    ASSIGN_PRIVILEGES
                } else {
                    Activity::other("Refuse Privileges")
                },
                [
                    ("status_code", json!(outcome)),
                    ("privileges", json!(["one looser run"])),
                ],
                read,
            );
            shape.fields.insert("actor".to_owned(), decider(by, outcome));
            if let Some(reason) = &by.reason {
                shape.fields.insert("status_detail".to_owned(), json!(reason));
            }
            shape
        }
        Event::ApprovalConsumed { .. } => {
            let used = [("privileges", json!(["one looser run"]))];
            approval(Activity::other("Use Privileges"), used, read)
        }
        Event::SessionCreated { .. } | Event::ModeChanged { .. } | Event::PolicyLoaded { .. } => {
            plain(CONFIGURATION, LOG, [])
        }
        Event::SandboxUnavailable { .. }
        | Event::RunnerFailed { .. }
        | Event::Gap { .. }
        | Event::Torn { .. }
        | Event::Pruned { .. } => findings::finding(&event, read),
    }
}

fn denial(event: &Event, read: &mut Read<'_>) -> Shape {
    let Event::Denial {
        op,
        path,
        program,
        pid,
        errno,
        count,
        ..
    } = event
    else {
        return plain(FILE_SYSTEM, Activity::other("Deny"), []);
    };
    for name in ["path", "program", "pid", "errno", "count"] {
        read.payload.take(name);
    }
    let mut shape = plain(FILE_SYSTEM, attempted(*op), blocked());
    shape.security_control = true;
    shape.fields.extend(map([
        ("file", file(path, *op)),
        ("status_code", json!(errno)),
        ("count", json!(count)),
    ]));
    let mut process = Map::new();
    if let Some(program) = program {
        process.insert("name".to_owned(), json!(program));
    }
    if let Some(pid) = pid {
        process.insert("pid".to_owned(), json!(pid));
    }
    if !process.is_empty() {
        shape.fields.insert("actor".to_owned(), json!({"process": process}));
    }
    shape
}

/// What an operation is called. The payload keeps our own word for it.
fn attempted(op: Operation) -> Activity {
    match op {
        Operation::Create | Operation::Link | Operation::Symlink | Operation::Mkdir | Operation::Mknod => {
            activity(1, "Create")
        }
        Operation::Write | Operation::Truncate => activity(3, "Update"),
        Operation::Remove => activity(4, "Delete"),
        Operation::Rename => activity(5, "Rename"),
        Operation::Utime | Operation::Xattr | Operation::Flags => activity(6, "Set Attributes"),
        Operation::Chmod | Operation::Chown => activity(7, "Set Security"),
        Operation::Mount => activity(12, "Mount"),
    }
}

fn file(path: &str, op: Operation) -> Value {
    let (type_id, kind) = match op {
        Operation::Mkdir => (2, "Folder"),
        Operation::Symlink => (7, "Symbolic Link"),
        _ if path.ends_with('/') => (2, "Folder"),
        _ => (0, "Unknown"),
    };
    json!({"path": path, "name": name_of(path), "type_id": type_id, "type": kind})
}

/// The last part of a path.
fn name_of(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit('/').next() {
        Some("") | None => path,
        Some(name) => name,
    }
}

/// The process that a run is: its own id is not known to the trail, the run's is.
fn process(read: &Read<'_>) -> Map<String, Value> {
    let run = read.record.entry.run.as_deref().unwrap_or("unknown");
    map([("uid", json!(run))])
}

/// The words of a command, which stay in the payload as they are.
fn words(argv: &[String]) -> Map<String, Value> {
    let program = argv.first().map_or("", String::as_str);
    let mut fields = map([
        ("cmd_line", json!(command_line(argv))),
        ("name", json!(name_of(program))),
    ]);
    if program.starts_with('/') {
        let file = json!({"path": program, "name": name_of(program), "type_id": 1, "type": "Regular File"});
        fields.insert("file".to_owned(), file);
    }
    fields
}

fn run_end(event: &Event, read: &mut Read<'_>) -> Shape {
    let Event::RunEnd {
        exit_code,
        signal,
        duration_ms,
        ..
    } = event
    else {
        return plain(PROCESS, TERMINATE, []);
    };
    read.payload.take("durationMs");
    let end = read.micros().div_euclid(1000);
    let start = end.saturating_sub_unsigned(*duration_ms);
    let mut shape = plain(
        PROCESS,
        TERMINATE,
        [
            ("process", Value::Object(process(read))),
            ("duration", json!(duration_ms)),
            ("start_time", json!(start)),
            ("end_time", json!(end)),
        ],
    );
    if let Some(code) = exit_code {
        read.payload.take("exitCode");
        shape.fields.insert("exit_code".to_owned(), json!(code));
    }
    if let Some(signal) = signal {
        read.payload.take("signal");
        shape.fields.insert("status_code".to_owned(), json!(signal));
    }
    shape
}

fn approval<const N: usize>(activity: Activity, fields: [(&str, Value); N], read: &Read<'_>) -> Shape {
    let mut shape = plain(AUTHORIZE, activity, fields);
    let user = json!({"uid": read.record.uid.to_string()});
    shape.fields.insert("user".to_owned(), user);
    if let Some(session) = &read.record.entry.session {
        shape.fields.insert("session".to_owned(), json!({"uid": session}));
    }
    shape
}

/// Who decided, in the place of who wrote the record.
fn decider(by: &Decider, outcome: &str) -> Value {
    json!({"user": {"name": by.principal}, "authorizations": [{"decision": outcome}]})
}
