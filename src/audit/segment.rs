//! The files of the trail, and how the newest of them ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use nix::fcntl::OFlag;

use super::hash::Hash;
use super::host::{Host, Moment, UNKNOWN};
use super::line::{Envelope, LAST, VERSION};
use crate::state::StateDir;

/// A segment is sealed when it is about to become larger.
pub(super) const FULL: u64 = 64 << 20;
/// Or when its first record is older.
pub(super) const OLD: std::time::Duration = std::time::Duration::from_hours(24);

/// The name of the segment that begins with this record.
pub(super) fn name(first: u64) -> String {
    format!("{first:016}.jsonl")
}

/// The number that a segment's name says; nothing for any other file.
pub(super) fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".jsonl")?;
    let number = digits.parse().ok()?;
    ((1..=LAST).contains(&number) && self::name(number) == name).then_some(number)
}

/// The first record's number of each segment, oldest first.
pub(super) fn list(dir: &StateDir) -> io::Result<Vec<u64>> {
    let mut numbers: Vec<_> = dir.file_names()?.iter().filter_map(|name| first_of(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Bytes after the last whole record that are none.
#[derive(Debug)]
pub(super) struct TornEnd {
    pub(super) bytes: Vec<u8>,
}

/// How a segment ends.
#[derive(Debug)]
pub(super) struct Ending {
    /// Its length.
    pub(super) length: u64,
    /// The number and the hash of its last whole record, when it has one.
    pub(super) last: Option<(u64, Hash)>,
    /// The last record is whole, and only its newline is missing.
    pub(super) unfinished: bool,
    /// What follows it.
    pub(super) torn: Option<TornEnd>,
}

/// Reads the end of a segment, and as little of it as that takes. `before` is the number and hash of the
/// record before its first, where it is known.
pub(super) fn ending(file: &File) -> io::Result<Ending> {
    let length = file.metadata()?.len();
    let mut window: u64 = 8 << 10;
    loop {
        let from = length.saturating_sub(window);
        let mut bytes = vec![0; usize::try_from(length - from).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, from)?;
        if let Some(ending) = look(&bytes, from == 0, length)? {
            return Ok(ending);
        }
        window = window.saturating_mul(8);
    }
}

/// Looks for the last whole record. Nothing when more of the file has to be read.
fn look(bytes: &[u8], whole_file: bool, length: u64) -> io::Result<Option<Ending>> {
    let newline = |before: usize| bytes[..before].iter().rposition(|byte| *byte == b'\n');
    let mut end = newline(bytes.len()).map_or(0, |at| at + 1);
    let mut last = None;
    while end > 0 {
        let begin = match newline(end - 1) {
            Some(at) => at + 1,
            None if whole_file => 0,
            None => return Ok(None),
        };
        let line = &bytes[begin..end - 1];
        if let Some(envelope) = known(line)? {
            last = Some((envelope.seq, Hash::of(line)));
            break;
        }
        end = begin;
    }
    if last.is_none() && !whole_file {
        return Ok(None);
    }
    let rest = &bytes[end..];
    if let Some(envelope) = known(rest)?
        && last.is_none_or(|(seq, hash)| envelope.seq == seq + 1 && envelope.prev == hash)
    {
        return Ok(Some(Ending {
            length,
            last: Some((envelope.seq, Hash::of(rest))),
            unfinished: true,
            torn: None,
        }));
    }
    Ok(Some(Ending {
        length,
        last,
        unfinished: false,
        torn: (!rest.is_empty()).then(|| TornEnd { bytes: rest.to_vec() }),
    }))
}

/// A record, provided that this version can go on from it.
fn known(line: &[u8]) -> io::Result<Option<Envelope<'_>>> {
    match Envelope::read(line) {
        Some(envelope) if envelope.v != VERSION => Err(io::Error::other(format!(
            "it was written by another version of Ringfence (form {})",
            envelope.v
        ))),
        other => Ok(other),
    }
}

/// Whether the first record of a segment is older than a day: by the clock that does not jump, and by the
/// time of day only where another boot wrote it.
pub(super) fn is_old(file: &File, host: &Host) -> io::Result<bool> {
    let mut head = vec![0; 1024];
    let read = file.read_at(&mut head, 0)?;
    let head = String::from_utf8_lossy(&head[..read]);
    let field = |name: &str| {
        let from = head.find(name)? + name.len();
        let rest = head[from..].trim_start_matches('"');
        rest.split(['"', ',']).next()
    };
    let now = Moment::now();
    let age = if host.boot != UNKNOWN && field("\"boot\":") == Some(&host.boot) {
        field("\"monoNs\":")
            .and_then(|number| number.parse::<u64>().ok())
            .map(|then| std::time::Duration::from_nanos(now.mono_ns.saturating_sub(then)))
    } else {
        field("\"time\":")
            .and_then(|time| time.parse::<jiff::Timestamp>().ok())
            .map(|then| now.wall.duration_since(then).unsigned_abs())
    };
    Ok(age.is_some_and(|age| age > OLD))
}

/// Opens a segment to go on with it.
pub(super) fn open(dir: &StateDir, first: u64) -> io::Result<File> {
    dir.open_file(name(first), OFlag::O_RDWR | OFlag::O_APPEND)
}

/// Makes a new segment.
pub(super) fn create(dir: &StateDir, first: u64) -> io::Result<File> {
    let flags = OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_CREAT | OFlag::O_EXCL;
    dir.open_file(name(first), flags)
}
