//! The trail in the forms that other engines read.
//!
//! Each record becomes one record of the other form, in the order of the trail, and nothing is kept in
//! between: a trail of any length is exported in the memory of one record. What the other form has no
//! name for is carried along under ours, so no form but CSV for spreadsheets changes a value.

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

use super::line::{Envelope, Record};
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

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Given {
    /// It was written.
    Written,
    /// It is no record, or one that this version does not know. Nothing was written.
    NotKnown,
}

/// Writes records in one form.
#[derive(Debug)]
pub struct Exporter<W> {
    format: Format,
    out: W,
    buffer: Vec<u8>,
}

impl<W: Write> Exporter<W> {
    /// Begins an export.
    ///
    /// # Errors
    /// What `out` says.
    pub fn new(format: Format, mut out: W) -> io::Result<Self> {
        if format == Format::Csv {
            out.write_all(&csv::headings())?;
        }
        Ok(Self {
            format,
            out,
            buffer: Vec::new(),
        })
    }

    /// Writes one line of the trail, which comes without its newline.
    ///
    /// # Errors
    /// What the writer says.
    pub fn line(&mut self, line: &[u8]) -> io::Result<Given> {
        self.buffer.clear();
        if self.format == Format::Jsonl {
            if Envelope::read(line).is_none() {
                return Ok(Given::NotKnown);
            }
            self.buffer.extend_from_slice(line);
            self.buffer.push(b'\n');
        } else {
            let Some(read) = Read::new(line) else {
                return Ok(Given::NotKnown);
            };
            self.convert(read);
        }
        self.out.write_all(&self.buffer)?;
        Ok(Given::Written)
    }

    fn convert(&mut self, read: Read<'_>) {
        let out = &mut self.buffer;
        match self.format {
            Format::Jsonl => out.extend_from_slice(read.line),
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

    /// Ends the export, and gives back what was written to.
    ///
    /// # Errors
    /// What the writer says.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// A record, and what it was read from.
struct Read<'a> {
    line: &'a [u8],
    record: Record,
    /// What belongs to its kind alone.
    payload: Payload,
}

impl<'a> Read<'a> {
    fn new(line: &'a [u8]) -> Option<Self> {
        Envelope::read(line)?;
        let record: Record = serde_json::from_slice(line).ok()?;
        let payload = Payload::of(&record.entry.event)?;
        Some(Self { line, record, payload })
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
pub(super) mod tests;
