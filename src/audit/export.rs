//! The trail in the forms that other engines read.
//!
//! Each record becomes one record of the other form, in the order of the trail, and nothing is kept in
//! between: a trail of any length is exported in the memory of one record. What the other form has no
//! name for is carried along under ours, so that nothing is lost on the way.

mod csv;
mod ecs;
mod journal;
mod level;
mod ocsf;
mod payload;
mod syslog;
mod words;

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use super::line::{Envelope, Record, VERSION};
use super::query::Filter;
use super::{AuditError, Reading};
use level::Outcome;
use payload::Payload;

/// A form in which the trail is given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The records as they are.
    Jsonl,
    /// Events of the Open Cybersecurity Schema Framework, one JSON object a line.
    Ocsf,
    /// Documents of the Elastic Common Schema, one JSON object a line.
    Ecs,
    /// A table with a line of headings.
    Csv,
    /// The export format of the systemd journal.
    Journal,
    /// Messages of RFC 5424, one a line.
    Syslog,
    /// Messages of RFC 5424, each with its length before it (RFC 6587, octet counting).
    SyslogOctets,
}

impl Format {
    /// Every form.
    pub const ALL: [Self; 7] = [
        Self::Jsonl,
        Self::Ocsf,
        Self::Ecs,
        Self::Csv,
        Self::Journal,
        Self::Syslog,
        Self::SyslogOctets,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Ocsf => "ocsf",
            Self::Ecs => "ecs",
            Self::Csv => "csv",
            Self::Journal => "journal",
            Self::Syslog => "syslog",
            Self::SyslogOctets => "syslog-octets",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// A word that names no form.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no format of an export; there are jsonl, ocsf, ecs, csv, journal, syslog and syslog-octets")]
pub struct UnknownFormat(String);

/// What was given out, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Exported {
    /// How many records were written.
    pub records: u64,
    /// How many lines are no records at all, as a crash leaves them: the trail names them itself.
    pub torn: u64,
    /// How many records are of a kind or version that this program does not know.
    pub unknown: u64,
    /// The number of the first of these.
    pub first_unknown: Option<u64>,
}

/// Why an export ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The trail cannot be read.
    #[error(transparent)]
    Trail(#[from] AuditError),
    /// What was exported could not be written.
    #[error("the export could not be written: {0}")]
    Output(#[from] io::Error),
}

impl Reading {
    /// Writes the records that `filter` asks for in another form, oldest first.
    ///
    /// # Errors
    /// [`ExportError`], after which a part of the records may have been written.
    pub fn export(&self, format: Format, filter: &Filter, out: &mut impl Write) -> Result<Exported, ExportError> {
        let mut exported = Exported::default();
        let mut buffer = Vec::new();
        if format == Format::Csv {
            out.write_all(&csv::headings())?;
        }
        let mut lines = self.lines_from(0)?;
        while let Some(piece) = lines.next().map_err(|error| self.unreadable(&error))? {
            buffer.clear();
            match Read::new(piece.bytes) {
                Ok(read) if filter.admits(&read.record) => {
                    convert(read, format, &mut buffer);
                    out.write_all(&buffer)?;
                    exported.records += 1;
                }
                Ok(_) => {}
                Err(NotRead::Torn) => exported.torn += 1,
                Err(NotRead::Unknown(seq)) => {
                    exported.unknown += 1;
                    exported.first_unknown.get_or_insert(seq);
                }
            }
        }
        out.flush()?;
        Ok(exported)
    }
}

fn convert(read: Read<'_>, format: Format, out: &mut Vec<u8>) {
    match format {
        Format::Jsonl => {
            out.extend_from_slice(read.line);
            out.push(b'\n');
        }
        Format::Ocsf => json_line(&ocsf::event(read), out),
        Format::Ecs => json_line(&ecs::document(read), out),
        Format::Csv => csv::row(&read, out),
        Format::Journal => journal::entry(&read, out),
        Format::Syslog => {
            syslog::message(&read, out);
            out.push(b'\n');
        }
        Format::SyslogOctets => {
            let mut message = Vec::new();
            syslog::message(&read, &mut message);
            out.extend_from_slice(format!("{} ", message.len()).as_bytes());
            out.extend_from_slice(&message);
        }
    }
}

/// Why a line was not read.
enum NotRead {
    /// It is no record.
    Torn,
    /// It is the record of this number, in a form that is not known here.
    Unknown(u64),
}

/// A record, and what it was read from.
struct Read<'a> {
    line: &'a [u8],
    record: Record,
    /// What belongs to its kind alone.
    payload: Payload,
}

impl<'a> Read<'a> {
    fn new(line: &'a [u8]) -> Result<Self, NotRead> {
        let Ok(record) = serde_json::from_slice::<Record>(line) else {
            let known = Envelope::read(line).map(|envelope| envelope.seq);
            return Err(known.map_or(NotRead::Torn, NotRead::Unknown));
        };
        if record.v != VERSION {
            return Err(NotRead::Unknown(record.seq));
        }
        let payload = Payload::of(&record.entry.event).ok_or(NotRead::Unknown(record.seq))?;
        Ok(Self { line, record, payload })
    }

    /// The word for its kind.
    const fn kind(&self) -> &'static str {
        self.record.entry.event.name()
    }

    /// When it was written, in microseconds since 1970.
    fn micros(&self) -> i64 {
        let time: Option<jiff::Timestamp> = self.record.time.parse().ok();
        time.map_or(0, jiff::Timestamp::as_microsecond)
    }
}

fn json_line(value: &serde_json::Value, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_string().as_bytes());
    out.push(b'\n');
}

#[cfg(test)]
mod tests;
