//! Entries in the export format of the systemd journal.
//!
//! A value with a newline or a control character is written with its length before it, and a path that
//! is no UTF-8 as the bytes it is. A field stands once in an entry, since the journal keeps no order
//! among equals: lists are JSON.

use super::super::record::Event;
use super::level::Level;
use super::words::sentence;
use super::{Read, payload};

/// Appends one entry.
pub(super) fn entry(read: &Read<'_>, out: &mut Vec<u8>) {
    let record = &read.record;
    let event = &record.entry.event;
    // What the journal keeps in its own books comes first.
    field("__REALTIME_TIMESTAMP", read.micros().max(1).to_string().as_bytes(), out);
    let micros = record.mono_ns / 1000;
    field("__MONOTONIC_TIMESTAMP", micros.max(1).to_string().as_bytes(), out);
    field("_BOOT_ID", boot(&record.boot).as_bytes(), out);
    field("_HOSTNAME", record.host.as_bytes(), out);
    field("_UID", record.uid.to_string().as_bytes(), out);
    field("MESSAGE", sentence(event).as_bytes(), out);
    field("MESSAGE_ID", message_id(event).as_bytes(), out);
    field("PRIORITY", Level::of(event).syslog().to_string().as_bytes(), out);
    field("SYSLOG_FACILITY", b"10", out);
    field("SYSLOG_IDENTIFIER", b"ringfence", out);
    field("RINGFENCE_TYPE", read.kind().as_bytes(), out);
    field("RINGFENCE_SEQ", record.seq.to_string().as_bytes(), out);
    field("RINGFENCE_ID", record.id.as_bytes(), out);
    field("RINGFENCE_PREV", record.prev.as_bytes(), out);
    for (name, value) in [
        ("RINGFENCE_SESSION", &record.entry.session),
        ("RINGFENCE_RUN", &record.entry.run),
    ] {
        if let Some(value) = value {
            field(name, value.as_bytes(), out);
        }
    }
    let bytes = read.payload.text("pathBytes").and_then(|it| payload::decoded(&it));
    for (name, value) in read.payload.flat() {
        let name = format!("RINGFENCE_{}", name.join("_").to_ascii_uppercase());
        match &bytes {
            Some(bytes) if name == "RINGFENCE_PATH" => field(&name, bytes, out),
            Some(_) if name == "RINGFENCE_PATH_BYTES" => {}
            _ => field(&name, value.as_bytes(), out),
        }
    }
    // The line itself, so that nothing depends on the names above.
    field("RINGFENCE_RECORD", read.line, out);
    out.push(b'\n');
}

/// One field: as text where it is plain, else as binary data.
fn field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    let plain = std::str::from_utf8(value).is_ok_and(|text| !text.chars().any(char::is_control));
    if plain {
        out.push(b'=');
    } else {
        out.push(b'\n');
        out.extend_from_slice(&(value.len() as u64).to_le_bytes());
    }
    out.extend_from_slice(value);
    out.push(b'\n');
}

/// The boot in the journal's spelling. Where the host names none, it is one and the same.
fn boot(boot: &str) -> String {
    let digits: String = boot.chars().filter(char::is_ascii_hexdigit).collect();
    if digits.len() == 32 {
        digits.to_ascii_lowercase()
    } else {
        "f0b8054b7d414f71b120288a6a9f33cb".to_owned()
    }
}

/// The fixed id of each kind of record.
fn message_id(event: &Event) -> &'static str {
    match event {
        Event::RunStart { .. } => "b953fc46e3c142d6a5091840a2e881d5",
        Event::Denial { .. } => "324c5011d8c0431b97c06082d644bd2a",
        Event::RunEnd { .. } => "d2eb600cfcec4f4e99b7bae56adddba5",
        Event::SandboxUnavailable { .. } => "1ee1fbc438ff404888eddf76ecd1a521",
        Event::RunnerFailed { .. } => "b89601ff4db641a084dc1bfbe669e75e",
        Event::SessionCreated { .. } => "75ccf08be48940d9afca1fbd3aec78eb",
        Event::ModeChanged { .. } => "85ea4cd22fd24f51a7f079338449ad76",
        Event::ApprovalAsked { .. } => "ab9eb7555a754ef1872492799792be83",
        Event::ApprovalDecided { .. } => "8ac40fca8e5a40e38314d6f1e266a42b",
        Event::ApprovalConsumed { .. } => "1abaaeec6690416c9e07e51ff64c7e13",
        Event::PolicyLoaded { .. } => "7b8528e5170f476d9ef82e29589e91f9",
        Event::Gap { .. } => "ec33ba97fc9146d4beb11560c8f648e6",
        Event::Torn { .. } => "c242153a317943db9a7182b8610c883b",
        Event::Pruned { .. } => "5f1d3c0e0a5b4b1f9a4e2d7c6b8a9f10",
    }
}
