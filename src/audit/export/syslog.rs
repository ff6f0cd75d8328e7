//! Messages of RFC 5424: what one filters by as structured data, the record itself as the message.
//!
//! The message is the line of the trail, byte for byte, so the chain of hashes can be verified wherever
//! the messages end up. It is UTF-8 without a byte order mark, which readers of JSON do not expect.

use std::io::Write;

use super::level::Level;
use super::words::one_line;
use super::{Outcome, Read};

/// The name of the structured data. 32473 is the number that RFC 5612 sets aside for those who have none.
const ELEMENT: &str = "ringfence@32473";
/// Security and authorization messages that are not for everybody's eyes.
const AUTHPRIV: u8 = 10;
/// The longest value of structured data; the message has the whole.
const MOST: usize = 256;

/// What is written as structured data, where a record has it.
const CHOSEN: [&str; 16] = [
    "op",
    "path",
    "program",
    "errno",
    "count",
    "mode",
    "backend",
    "enforcement",
    "exitCode",
    "signal",
    "denied",
    "request",
    "outcome",
    "code",
    "source",
    "retryOf",
];

/// Appends one message, without what frames it.
pub(super) fn message(read: &Read<'_>, out: &mut Vec<u8>) {
    let record = &read.record;
    let level = Level::of(&record.entry.event);
    let header = format!(
        "<{}>1 {} {} ringfence - {} [{ELEMENT}",
        AUTHPRIV * 8 + level.syslog(),
        stamp(&record.time),
        plain(&record.host, 255),
        plain(read.kind(), 32),
    );
    out.extend_from_slice(header.as_bytes());
    parameter("seq", &record.seq.to_string(), out);
    parameter("id", &record.id, out);
    parameter("uid", &record.uid.to_string(), out);
    for (name, value) in [("session", &record.entry.session), ("run", &record.entry.run)] {
        if let Some(value) = value {
            parameter(name, value, out);
        }
    }
    parameter("result", Outcome::of(&record.entry.event).word(), out);
    for name in CHOSEN {
        if let Some(value) = read.payload.text(name) {
            parameter(name, &value, out);
        }
    }
    out.extend_from_slice(b"] ");
    out.extend_from_slice(read.line);
}

/// The time as the record has it, which is a time of RFC 5424, or the sign that there is none.
fn stamp(time: &str) -> &str {
    if time.parse::<jiff::Timestamp>().is_ok() && time.ends_with('Z') && !time.contains(' ') {
        time
    } else {
        "-"
    }
}

/// A word of the header: printable ASCII without spaces.
fn plain(text: &str, most: usize) -> String {
    let word: String = text.chars().filter(char::is_ascii_graphic).take(most).collect();
    if word.is_empty() { "-".to_owned() } else { word }
}

fn parameter(name: &str, value: &str, out: &mut Vec<u8>) {
    let mut escaped = String::with_capacity(value.len());
    for c in one_line(value, MOST).chars() {
        if matches!(c, '"' | '\\' | ']') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    // Into memory, which does not fail.
    let _ = write!(out, " {name}=\"{escaped}\"");
}
