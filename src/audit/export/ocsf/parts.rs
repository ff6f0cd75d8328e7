//! What shapes are put together from.

use serde_json::{Map, Value, json};

use super::Shape;
use super::classes::{Activity, Class};

/// A shape with these fields.
pub(super) fn plain<const N: usize>(class: Class, activity: Activity, fields: [(&str, Value); N]) -> Shape {
    Shape {
        class,
        activity,
        security_control: false,
        fields: map(fields),
    }
}

/// The fields by which the profile `security_control` says that something was refused.
pub(super) fn blocked() -> [(&'static str, Value); 4] {
    [
        ("action_id", json!(2)),
        ("action", json!("Denied")),
        ("disposition_id", json!(2)),
        ("disposition", json!("Blocked")),
    ]
}

pub(super) fn map<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
