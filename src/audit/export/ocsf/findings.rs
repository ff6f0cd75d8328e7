//! What somebody has to know who looks after the machine: a finding.

use serde_json::json;

use super::super::super::record::Event;
use super::super::Read;
use super::super::words::{error_code, sentence};
use super::Shape;
use super::classes::{CREATE_FINDING, FINDING};
use super::parts::{blocked, plain};

/// The finding that a record is.
pub(super) fn finding(event: &Event, read: &mut Read<'_>) -> Shape {
    let (title, blocks) = match event {
        Event::SandboxUnavailable { .. } => ("A run could not be confined and did not start", true),
        Event::RunnerFailed { .. } => ("A run did not start", true),
        Event::Gap { .. } => ("Records were left out of the audit trail", false),
        Event::Torn { .. } => ("The end of the audit trail was torn", false),
        Event::Pruned { .. } => ("Old records were removed from the audit trail", false),
        _ => ("A record of the audit trail", false),
    };
    let fields = [
        (
            "finding_info",
            json!({
                "uid": read.record.id,
                "title": title,
                "desc": sentence(event),
                "types": [read.kind()],
                "created_time": read.micros().div_euclid(1000),
            }),
        ),
        // Of a finding, the status says how far somebody has looked into it.
        ("status_id", json!(1)),
        ("status", json!("New")),
    ];
    let mut shape = plain(FINDING, CREATE_FINDING, fields);
    if blocks {
        shape.security_control = true;
        let blocked = blocked().map(|(name, value)| (name.to_owned(), value));
        shape.fields.extend(blocked);
    }
    if let Event::RunnerFailed { code, message } = event {
        read.payload.take("code");
        read.payload.take("message");
        shape.fields.insert("status_code".to_owned(), json!(error_code(*code)));
        shape.fields.insert("status_detail".to_owned(), json!(message));
    }
    shape
}
