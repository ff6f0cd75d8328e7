//! A record on paper: one line of JSON.

use serde::{Deserialize, Serialize};

use super::hash::Hash;
use super::host::{Host, Moment};
use super::record::Entry;

/// The version of the form.
pub(super) const VERSION: u32 = 1;

/// The longest line, its newline included.
pub const MAX_LINE: usize = 64 * 1024;

/// What the trail knows of a happening, and what it adds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The version of the form: 1.
    pub v: u32,
    /// Its number, from 1 on, without a gap.
    pub seq: u64,
    /// A UUID of version 7.
    pub id: String,
    /// The time of day, RFC 3339 with microseconds. The clock may have been set back: `seq` has the order.
    pub time: String,
    /// Nanoseconds since the boot.
    pub mono_ns: u64,
    /// The boot.
    pub boot: String,
    /// The machine's name.
    pub host: String,
    /// The user who wrote it.
    pub uid: u32,
    /// What happened.
    #[serde(flatten)]
    pub entry: Entry,
    /// The SHA-256 hash of the line before, without its newline; zeros for the first.
    pub prev: String,
}

impl Record {
    /// The record of an entry that happens now.
    pub(super) fn new(entry: Entry, seq: u64, prev: Hash, host: &Host) -> Self {
        let now = Moment::now();
        Self {
            v: VERSION,
            seq,
            id: now.id(),
            time: now.time(),
            mono_ns: now.mono_ns,
            boot: host.boot.clone(),
            host: host.name.clone(),
            uid: host.uid,
            entry,
            prev: prev.to_string(),
        }
    }

    /// The line, without its newline.
    pub(super) fn line(mut self) -> Result<Vec<u8>, String> {
        for room in [usize::MAX, 32 << 10, 8 << 10, 2 << 10, 512] {
            if room != usize::MAX {
                self.entry.shorten(room);
            }
            let line = serde_json::to_vec(&self).map_err(|error| error.to_string())?;
            if line.len() < MAX_LINE {
                return Ok(line);
            }
        }
        Err("a record is longer than 64 KiB and cannot be shortened".to_owned())
    }
}

/// The largest number of a record.
pub(super) const LAST: u64 = i64::MAX.cast_unsigned();

/// What the chain rests on.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    pub(super) v: u32,
    pub(super) seq: u64,
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    #[serde(rename = "prev")]
    prev_text: &'a str,
    #[serde(skip, default = "zero")]
    pub(super) prev: Hash,
}

const fn zero() -> Hash {
    Hash::ZERO
}

impl<'a> Envelope<'a> {
    /// Reads a line, without its newline. Nothing when it is no record of any version.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        if line.first() != Some(&b'{') || line.len() >= MAX_LINE {
            return None;
        }
        let text = std::str::from_utf8(line).ok()?;
        let mut envelope: Self = serde_json::from_str(text).ok()?;
        envelope.prev = Hash::parse(envelope.prev_text)?;
        // No trail comes that far, and from here on there is always a next number.
        (1..=LAST).contains(&envelope.seq).then_some(envelope)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Event;
    use super::*;

    fn record(argv: Vec<String>) -> Record {
        let entry = Entry {
            session: None,
            run: Some("r".to_owned()),
            event: Event::ApprovalAsked {
                request: "q".to_owned(),
                argv,
                workdir: "/w".to_owned(),
                difference: "d".to_owned(),
                justification: "\u{1}".repeat(100_000),
                digest: String::new(),
                expires_at: String::new(),
            },
        };
        Record::new(entry, 7, Hash::of(b""), &Host::here())
    }

    #[test]
    fn a_line_is_read_back_as_the_record_it_was() {
        let mut record = record(vec!["a\n".to_owned()]);
        let Event::ApprovalAsked { justification, .. } = &mut record.entry.event else {
            unreachable!()
        };
        justification.truncate(10);
        let line = record.clone().line().unwrap();
        assert_eq!(serde_json::from_slice::<Record>(&line).unwrap(), record);
        let envelope = Envelope::read(&line).unwrap();
        assert_eq!(
            (envelope.v, envelope.seq, envelope.kind, envelope.prev),
            (1, 7, "approval.asked", Hash::of(b""))
        );
    }

    #[test]
    fn whatever_is_too_long_is_cut_and_says_so() {
        for argv in [
            vec!["\u{1}".repeat(3_000_000)],
            vec!["é\u{2}".repeat(7); 200_000],
            vec![String::new(); 500_000],
        ] {
            let line = record(argv).line().unwrap();
            assert!(line.len() < MAX_LINE && !line.contains(&b'\n'));
            let back: Record = serde_json::from_slice(&line).unwrap();
            let Event::ApprovalAsked {
                argv, justification, ..
            } = back.entry.event
            else {
                panic!("it is another record now")
            };
            assert!(justification.contains("left out"), "{justification}");
            assert!(argv.last().unwrap().contains("left out"), "{argv:?}");
        }
    }

    #[test]
    fn what_is_no_record_is_not_taken_for_one() {
        let line = record(Vec::new()).line().unwrap();
        for cut in [0, 1, 17, line.len() - 1] {
            assert!(Envelope::read(&line[..cut]).is_none());
        }
        let far = String::from_utf8(line.clone())
            .unwrap()
            .replace(":7,", ":18446744073709551615,");
        let none = far.replace(":18446744073709551615,", ":0,");
        for text in [
            far.as_str(),
            none.as_str(),
            "",
            "{}",
            "[1]",
            "\0\0\0",
            r#"{"v":1,"seq":1,"type":"x","prev":"00"}"#,
        ] {
            assert!(Envelope::read(text.as_bytes()).is_none(), "{text}");
        }
    }
}
