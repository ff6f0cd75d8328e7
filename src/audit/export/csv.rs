//! A table of RFC 4180, for spreadsheets and databases. Columns are only ever added at the end.
//!
//! A cell whose text a spreadsheet would take for a formula gets an apostrophe before it. `payload` and
//! every other form have the text as it was.

use super::Read;
use super::level::Outcome;
use super::words::sentence;

/// The columns that every record has, before those of its kind.
const COMMON: [&str; 9] = ["seq", "id", "time", "host", "uid", "session", "run", "type", "result"];
/// The columns of kinds, by their names in the trail.
const OF_KIND: [&str; 20] = [
    "op",
    "path",
    "pathBytes",
    "program",
    "pid",
    "errno",
    "count",
    "argv",
    "workdir",
    "mode",
    "backend",
    "enforcement",
    "exitCode",
    "signal",
    "durationMs",
    "denied",
    "request",
    "outcome",
    "code",
    "digest",
];
const LAST: [&str; 3] = ["message", "payload", "prev"];

/// The line of headings.
pub(super) fn headings() -> Vec<u8> {
    let names: Vec<_> = COMMON.into_iter().chain(OF_KIND).chain(LAST).collect();
    (names.join(",") + "\r\n").into_bytes()
}

/// Appends the row of a record.
pub(super) fn row(read: &Read<'_>, out: &mut Vec<u8>) {
    let record = &read.record;
    let optional = |text: &Option<String>| text.clone().unwrap_or_default();
    let common = [
        record.seq.to_string(),
        record.id.clone(),
        record.time.clone(),
        record.host.clone(),
        record.uid.to_string(),
        optional(&record.entry.session),
        optional(&record.entry.run),
        read.kind().to_owned(),
        Outcome::of(&record.entry.event).word().to_owned(),
    ];
    let of_kind = OF_KIND.map(|name| read.payload.text(name).unwrap_or_default());
    let last = [sentence(&record.entry.event), read.payload.json(), record.prev.clone()];
    for (at, value) in common.iter().chain(&of_kind).chain(&last).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        cell(value, out);
    }
    out.extend_from_slice(b"\r\n");
}

fn cell(value: &str, out: &mut Vec<u8>) {
    let formula = value.starts_with(['=', '+', '-', '@', '\t', '\r']) && value.parse::<i64>().is_err();
    let quoted = formula || value.contains(['"', ',', '\r', '\n', '\t']);
    if quoted {
        out.push(b'"');
    }
    if formula {
        out.push(b'\'');
    }
    for byte in value.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    if quoted {
        out.push(b'"');
    }
}
