//! Removing what is old, and leaving what it takes to verify the rest.

use std::time::Duration;

use super::host::{Host, Moment, UNKNOWN};
use super::line::Record;
use super::record::Event;
use super::trail::Trail;
use super::{AuditError, Durability, segment};

/// What is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Records that are not older than this.
    pub age: Option<Duration>,
    /// The newest segments that together are not larger than this.
    pub bytes: Option<u64>,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The number of the last record that was removed; absent when none was.
    pub through: Option<u64>,
    /// How many files.
    pub segments: usize,
    /// How many bytes they had.
    pub bytes: u64,
}

impl Trail {
    /// Removes whole sealed segments, oldest first, that `keep` does not cover, after a record of each is
    /// on the disk. What is to be removed must verify; the newest segment stays.
    ///
    /// # Errors
    /// [`AuditError::Faulty`] for a trail that does not verify, which stays as it is, and the others for one
    /// that cannot be read or written.
    pub fn prune(&self, keep: Keep) -> Result<Pruned, AuditError> {
        let reading = self.reading()?;
        let unreadable = |error: std::io::Error| reading.unreadable(&error);
        let segments = segment::list(&self.dir).map_err(unreadable)?;
        let mut sizes = Vec::new();
        for first in &segments {
            let file = segment::open(&self.dir, *first).map_err(unreadable)?;
            sizes.push(file.metadata().map_err(unreadable)?.len());
        }
        let mut total: u64 = sizes.iter().sum();
        let mut ends = Vec::new();
        for (pair, size) in segments.windows(2).zip(&sizes) {
            let too_much = keep.bytes.is_some_and(|most| total > most);
            let too_old = match keep.age {
                Some(age) if !too_much => self.age_of(pair[1] - 1)?.is_some_and(|it| it > age),
                _ => false,
            };
            if !too_much && !too_old {
                break;
            }
            total -= size;
            ends.push(pair[1] - 1);
        }
        if ends.is_empty() {
            return Ok(Pruned::default());
        }
        let walk = reading.walk(&ends)?.map_err(AuditError::Faulty)?;
        // A record for each segment: wherever the removal stops, one of them says what is gone.
        let records: Vec<_> = walk
            .marks
            .iter()
            .filter_map(|(tree, hash)| {
                let frontier = tree.frontier()?.iter().map(ToString::to_string).collect();
                let event = Event::Pruned {
                    through: tree.size(),
                    hash: hash.to_string(),
                    frontier,
                };
                Some(event.into())
            })
            .collect();
        self.append(&records, Durability::Disk)?;
        let mut pruned = Pruned::default();
        for ((first, size), end) in segments.iter().zip(&sizes).zip(&ends).take(records.len()) {
            match self.dir.remove_file(segment::name(*first)) {
                Ok(()) => {}
                // Somebody else removes the same at the same time.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(self.unwritable(format!("{}: {error}", segment::name(*first)))),
            }
            pruned.through = Some(*end);
            pruned.segments += 1;
            pruned.bytes += size;
        }
        self.dir.sync().map_err(|error| self.unwritable(error.to_string()))?;
        Ok(pruned)
    }

    /// How old a record is: the less of what both clocks say, so that one which jumps removes nothing.
    fn age_of(&self, seq: u64) -> Result<Option<Duration>, AuditError> {
        let needle = format!("\"seq\":{seq},");
        let reading = self.reading()?;
        let found = reading.records_from(seq)?.containing(&needle);
        let Some(record) = found.flatten().find(|record: &Record| record.seq == seq) else {
            return Ok(None);
        };
        let now = Moment::now();
        let by_day = record
            .time
            .parse::<jiff::Timestamp>()
            .ok()
            .and_then(|then| Duration::try_from(now.wall.duration_since(then)).ok());
        let boot = Host::here().boot;
        if boot == UNKNOWN || record.boot != boot {
            return Ok(by_day);
        }
        let steady = Duration::from_nanos(now.mono_ns.saturating_sub(record.mono_ns));
        Ok(by_day.map(|age| age.min(steady)))
    }
}
