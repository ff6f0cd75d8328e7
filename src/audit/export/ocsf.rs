//! Events of the Open Cybersecurity Schema Framework, version 1.5.0.
//!
//! What the schema has no name for, and what would lose something under the name it has, stands under
//! `unmapped` as the trail has it.

mod classes;
mod findings;
mod parts;
mod shapes;

use serde_json::{Map, Value, json};

use super::Read;
use super::level::{Level, Outcome};
use super::words::sentence;
use classes::{Activity, Class};

/// The version of the schema.
const VERSION: &str = "1.5.0";

/// What one kind of record is in the schema.
struct Shape {
    class: Class,
    activity: Activity,
    /// The profiles besides `host`.
    security_control: bool,
    fields: Map<String, Value>,
}

/// The event of a record.
pub(super) fn event(mut read: Read<'_>) -> Value {
    let shape = shapes::shape(&mut read);
    let record = &read.record;
    let happened = &record.entry.event;
    let Shape { class, activity, .. } = shape;
    let (severity_id, severity) = match Level::of(happened) {
        Level::Informational => (1, "Informational"),
        Level::Low => (2, "Low"),
        Level::Medium => (3, "Medium"),
        Level::High => (4, "High"),
    };
    let mut event = json!({
        "class_uid": class.uid,
        "class_name": class.name,
        "category_uid": class.category,
        "category_name": class.category_name,
        "activity_id": activity.id,
        "activity_name": activity.name,
        "type_uid": u64::from(class.uid) * 100 + u64::from(activity.id),
        "type_name": format!("{}: {}", class.name, activity.of_type()),
        "severity_id": severity_id,
        "severity": severity,
        "time": read.micros().div_euclid(1000),
        "message": sentence(happened),
        "metadata": metadata(&read, shape.security_control),
        "device": device(&read),
        "actor": actor(&read),
    });
    let Value::Object(fields) = &mut event else {
        return event;
    };
    let (status_id, status) = match Outcome::of(happened) {
        Outcome::Success => (1, "Success"),
        Outcome::Failure => (2, "Failure"),
        Outcome::Open => (99, "Open"),
    };
    fields.insert("status_id".to_owned(), json!(status_id));
    fields.insert("status".to_owned(), json!(status));
    for (name, value) in shape.fields {
        merge(fields, name, value);
    }
    let mut rest = match read.payload.rest() {
        Some(Value::Object(rest)) => rest,
        _ => Map::new(),
    };
    rest.insert("prev".to_owned(), json!(read.record.prev));
    rest.insert("monoNs".to_owned(), json!(read.record.mono_ns));
    fields.insert("unmapped".to_owned(), Value::Object(rest));
    event
}

/// Objects are joined, everything else is replaced.
fn merge(fields: &mut Map<String, Value>, name: String, value: Value) {
    match (fields.get_mut(&name), value) {
        (Some(Value::Object(there)), Value::Object(new)) => there.extend(new),
        (_, value) => {
            fields.insert(name, value);
        }
    }
}

fn metadata(read: &Read<'_>, security_control: bool) -> Value {
    let record = &read.record;
    let profiles: &[&str] = if security_control {
        &["host", "security_control"]
    } else {
        &["host"]
    };
    let mut metadata = json!({
        "version": VERSION,
        "product": {
            "name": "Ringfence",
            "vendor_name": "Ringfence",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "profiles": profiles,
        "uid": record.id,
        "sequence": record.seq,
        "event_code": read.kind(),
        "log_name": "audit",
        "log_version": record.v.to_string(),
        "original_time": record.time,
    });
    if let (Value::Object(fields), Some(run)) = (&mut metadata, &record.entry.run) {
        fields.insert("correlation_uid".to_owned(), json!(run));
    }
    metadata
}

fn device(read: &Read<'_>) -> Value {
    json!({
        "hostname": read.record.host,
        "type_id": 0,
        "type": "Unknown",
        "boot_uid": read.record.boot,
    })
}

/// Who did it, as far as every record knows it.
fn actor(read: &Read<'_>) -> Value {
    let mut actor = json!({
        "app_name": "ringfence",
        "user": {"uid": read.record.uid.to_string()},
    });
    if let (Value::Object(fields), Some(session)) = (&mut actor, &read.record.entry.session) {
        fields.insert("session".to_owned(), json!({"uid": session}));
    }
    actor
}
