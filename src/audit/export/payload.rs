//! What belongs to one kind of record alone, by the names it has in the trail.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::super::record::Event;

/// The fields that stand beside the type.
pub(super) struct Payload(Map<String, Value>);

impl Payload {
    /// The fields of an event. What is absent is left out.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(event) else {
            return None;
        };
        fields.retain(|name, value| name != "type" && !value.is_null());
        Some(Self(fields))
    }

    /// Takes out a field that was written under another name.
    pub(super) fn take(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// All that is left, or nothing when nothing is.
    pub(super) fn rest(self) -> Option<Value> {
        (!self.0.is_empty()).then_some(Value::Object(self.0))
    }

    /// A field as a text; lists and objects are JSON.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// All of it as JSON.
    pub(super) fn json(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    /// Each field as a name in words (`["decided", "by"]`) and a text. Objects are taken apart, lists are JSON.
    pub(super) fn flat(&self) -> Vec<(Vec<String>, String)> {
        let mut all = Vec::new();
        flatten(&[], &self.0, &mut all);
        all
    }
}

fn flatten(above: &[String], fields: &Map<String, Value>, all: &mut Vec<(Vec<String>, String)>) {
    for (name, value) in fields {
        let name: Vec<_> = above.iter().cloned().chain(parts(name)).collect();
        match value {
            Value::Null => {}
            Value::Object(fields) => flatten(&name, fields, all),
            Value::String(text) => all.push((name, text.clone())),
            other => all.push((name, other.to_string())),
        }
    }
}

/// The words of a name such as `retryOf`, in small letters.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(c.to_ascii_lowercase());
        }
    }
    parts
}

/// The bytes of a path that is no UTF-8, from their base64.
pub(super) fn decoded(base64: &str) -> Option<Vec<u8>> {
    STANDARD.decode(base64).ok()
}
