//! The journal export format, read by systemd-journal-remote and shown by journalctl.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;

use serde_json::Value;

use super::corpus::BYTES;
use super::{Trail, objects};

/// Where distributions keep a program that is not in the path.
const REMOTE: [&str; 2] = [
    "/usr/lib/systemd/systemd-journal-remote",
    "/lib/systemd/systemd-journal-remote",
];

/// A journal made of an export.
struct Journal {
    trail: Trail,
}

impl Journal {
    fn new() -> Self {
        let trail = Trail::new();
        let export = trail.place("export");
        std::fs::write(&export, trail.exported("journal")).unwrap();
        let journal = trail.place("journal");
        std::fs::create_dir(&journal).unwrap();
        let remote = REMOTE.into_iter().find(|path| Path::new(path).exists());
        let remote = remote.expect("systemd-journal-remote; Debian has it in the package systemd-journal-remote");
        let mut command = trail.world.command_of_harness(remote);
        command.arg("--output").arg(journal.join("ringfence.journal")).arg("-");
        command.stdin(File::open(export).unwrap());
        let outcome = trail.world.outcome(command);
        assert_eq!(outcome.status(), 0, "{}", outcome.stderr());
        Self { trail }
    }

    fn journalctl<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Vec<u8> {
        let mut command = self.trail.world.command_of_harness("journalctl");
        command.arg("-D").arg(self.trail.place("journal")).args(words);
        let outcome = self.trail.world.outcome(command);
        assert_eq!(outcome.status(), 0, "{}", outcome.stderr());
        outcome.output.stdout
    }

    /// What journalctl has for these matches.
    fn found(&self, matches: &[&str]) -> Vec<Value> {
        objects(&self.journalctl(["--all", "-o", "json"].into_iter().chain(matches.iter().copied())))
    }
}

#[test]
fn journalctl_reads_back_every_record_byte_for_byte() {
    let journal = Journal::new();
    let entries = journal.found(&[]);
    assert_eq!(entries.len(), journal.trail.lines.len(), "one entry for each record");
    for (entry, line) in entries.iter().zip(&journal.trail.lines) {
        assert_eq!(&bytes(&entry["RINGFENCE_RECORD"]), line);
        let record: Value = serde_json::from_slice(line).unwrap();
        assert_eq!(entry["SYSLOG_IDENTIFIER"], "ringfence");
        assert_eq!(entry["RINGFENCE_TYPE"], record["type"]);
        assert_eq!(entry["RINGFENCE_SEQ"], record["seq"].to_string());
        assert_eq!(entry["_HOSTNAME"], record["host"]);
        assert_eq!(entry["_UID"], record["uid"].to_string());
        let boot = record["boot"].as_str().unwrap().replace('-', "");
        assert_eq!(entry["_BOOT_ID"], boot);
        let time: jiff::Timestamp = record["time"].as_str().unwrap().parse().unwrap();
        assert_eq!(entry["__REALTIME_TIMESTAMP"], time.as_microsecond().to_string());
    }
}

#[test]
fn the_journal_has_each_value_under_a_name_of_its_own() {
    let journal = Journal::new();
    for (entry, record) in journal.found(&[]).iter().zip(journal.trail.records()) {
        for (name, value) in record.as_object().unwrap() {
            let name = format!("RINGFENCE_{}", screaming(name));
            let known_otherwise = [
                "RINGFENCE_V",
                "RINGFENCE_TIME",
                "RINGFENCE_MONO_NS",
                "RINGFENCE_BOOT",
                "RINGFENCE_HOST",
                "RINGFENCE_UID",
                "RINGFENCE_PATH_BYTES",
            ];
            if value.is_null() || value.is_object() || known_otherwise.contains(&name.as_str()) {
                continue;
            }
            if name == "RINGFENCE_PATH" && record.get("pathBytes").is_some_and(Value::is_string) {
                assert_eq!(bytes(&entry[&name]), BYTES, "the path as the bytes it is");
                continue;
            }
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let kept = entry.get(&name).unwrap_or_else(|| panic!("{name} of {record}"));
            assert_eq!(bytes(kept), text.as_bytes(), "{name}");
        }
    }
}

#[test]
fn a_kind_of_record_is_found_by_its_message_id_and_by_its_fields() {
    let journal = Journal::new();
    let records = journal.trail.records();
    for kind in super::corpus::kinds() {
        let by_field = journal.found(&[&format!("RINGFENCE_TYPE={kind}")]);
        let there = records.iter().filter(|record| record["type"] == *kind).count();
        assert_eq!(by_field.len(), there, "{kind}");
        let id = by_field[0]["MESSAGE_ID"].as_str().expect("an id").to_owned();
        assert_eq!(journal.found(&[&format!("MESSAGE_ID={id}")]), by_field, "{kind}");
    }
    let failed = journal.found(&["RINGFENCE_TYPE=denial", "RINGFENCE_OP=mount", "PRIORITY=4"]);
    assert_eq!(failed.len(), 2);
}

#[test]
fn the_journal_made_of_an_export_is_whole() {
    let journal = Journal::new();
    journal.journalctl(["--verify"]);
}

/// A field as journalctl prints it: text, or a list of bytes where it is none.
fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        Value::Array(bytes) => bytes
            .iter()
            .map(|byte| u8::try_from(byte.as_u64().unwrap()).unwrap())
            .collect(),
        other => panic!("{other} is no field"),
    }
}

fn screaming(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(c.to_ascii_uppercase());
    }
    text
}
