//! One step through a trail: what a line must be after those before it.

use super::super::hash::{Hash, Running};
use super::super::line::{Envelope, Record, VERSION};
use super::super::merkle::{self, Range};
use super::super::read::Piece;
use super::super::record::Event;
use super::super::segment;
use super::{Verified, Walk};
use crate::error::trail::{Fault, FaultKind};

/// What has been seen of a trail.
#[derive(Clone)]
pub(super) struct Walker<'a> {
    first: u64,
    /// The number and the hash of the last record.
    seq: u64,
    hash: Hash,
    /// What the first record names as the one before.
    before_first: Hash,
    segment: u64,
    /// What stands since the last record and is none: where it begins, how long it is, and its hash.
    strange: Option<(u64, u64, u64, Running)>,
    tree: Range,
    sizes: &'a [u64],
    marks: Vec<(Range, Hash)>,
    pruned: Option<(Hash, Range)>,
    mended: u64,
}

impl<'a> Walker<'a> {
    pub(super) fn new(first: u64, sizes: &'a [u64]) -> Self {
        let mut walker = Self {
            first,
            seq: first - 1,
            hash: Hash::ZERO,
            before_first: Hash::ZERO,
            segment: 0,
            strange: None,
            tree: Range::starting_at(first - 1),
            sizes,
            marks: Vec::new(),
            pruned: None,
            mended: 0,
        };
        while walker.sizes.first().is_some_and(|size| *size < first - 1) {
            walker.sizes = &walker.sizes[1..];
        }
        walker.mark();
        walker
    }

    pub(super) const fn expected(&self) -> u64 {
        self.seq + 1
    }

    fn mark(&mut self) {
        while let Some((size, rest)) = self.sizes.split_first()
            && *size == self.tree.size()
        {
            self.marks.push((self.tree.clone(), self.hash));
            self.sizes = rest;
        }
    }

    pub(super) fn take(&mut self, piece: &Piece<'_>) -> Result<(), Fault> {
        let begins = piece.segment != self.segment;
        if begins {
            if let Some((segment, line, bytes, _)) = &self.strange {
                return Err(at(
                    *segment,
                    *line,
                    FaultKind::Foreign,
                    Some(self.expected()),
                    format!("{bytes} bytes at its end are no record"),
                ));
            }
            self.segment = piece.segment;
        }
        if let Some(envelope) = Envelope::read(piece.bytes).filter(|_| piece.whole) {
            return self.record(piece, &envelope);
        }
        let (.., bytes, running) = self
            .strange
            .get_or_insert_with(|| (piece.segment, piece.number, 0, Running::default()));
        *bytes += piece.bytes.len() as u64 + u64::from(piece.ends);
        running.add(piece.bytes);
        if piece.ends {
            running.add(b"\n");
        }
        Ok(())
    }

    fn record(&mut self, piece: &Piece<'_>, envelope: &Envelope<'_>) -> Result<(), Fault> {
        let expected = self.expected();
        let seq = envelope.seq;
        let here = |kind, record, what| Err(at(piece.segment, piece.number, kind, Some(record), what));
        if envelope.v != VERSION {
            let what = format!("a record of form {}, which this version does not know", envelope.v);
            return here(FaultKind::Version, seq, what);
        }
        if let Some((segment, line, bytes, running)) = self.strange.take() {
            let there = |kind, what| Err(at(segment, line, kind, Some(expected), what));
            let named = (envelope.kind == "audit.torn").then(|| torn(piece.bytes)).flatten();
            match named {
                Some((length, hash)) if length == bytes && hash == running.finish() => self.mended += 1,
                _ if seq > expected => {
                    return there(FaultKind::Changed, format!("record {expected} is no record any more"));
                }
                Some(_) => {
                    let what = format!("{bytes} torn bytes here are not those that record {seq} names");
                    return there(FaultKind::Torn, what);
                }
                None => {
                    let what =
                        format!("{bytes} bytes here are no record, and the record after them does not name them");
                    return there(FaultKind::Foreign, what);
                }
            }
        } else if envelope.kind == "audit.torn" && seq == expected {
            let what = format!("record {seq} names torn bytes before it, and there are none");
            return here(FaultKind::Torn, seq, what);
        }
        if seq > expected {
            let what = format!("record {expected} was expected, and this is record {seq}");
            return here(FaultKind::Removed, expected, what);
        }
        if seq < expected {
            let what = format!("record {expected} was expected, and this is record {seq}, which comes earlier");
            return here(FaultKind::Reordered, seq, what);
        }
        if piece.number == 1 && piece.segment != seq {
            let what = format!("it begins with record {seq}, and its name says {}", piece.segment);
            return here(FaultKind::Misnamed, seq, what);
        }
        if seq == self.first && seq > 1 {
            self.before_first = envelope.prev;
            // A mark before the first record is of the line before it, which is gone.
            for (_, hash) in &mut self.marks {
                *hash = envelope.prev;
            }
        } else if envelope.prev != self.hash {
            let what = if seq == 1 {
                "record 1 names a record before it".to_owned()
            } else {
                format!("record {} is not what it was when record {seq} was written", seq - 1)
            };
            return here(FaultKind::Changed, seq.max(2) - 1, what);
        }
        if envelope.kind == "audit.pruned"
            && let Some(pruned) = pruned(piece.bytes, self.first - 1)
        {
            self.pruned = Some(pruned);
        }
        self.seq = seq;
        self.hash = Hash::of(piece.bytes);
        self.tree.push(merkle::leaf(piece.bytes));
        self.mark();
        Ok(())
    }

    pub(super) fn finish(self, rest: u64) -> Result<Walk, Fault> {
        let first = self.first;
        let pruned = match self.pruned {
            _ if first == 1 => Range::starting_at(0),
            Some((hash, range)) if hash == self.before_first => range,
            _ => {
                let what = format!(
                    "the trail begins with record {first}, and no record says that those before it were pruned"
                );
                return Err(at(first, 1, FaultKind::Beginning, Some(1), what));
            }
        };
        let whole = |range: &Range| pruned.clone().joined(range);
        let root = whole(&self.tree).and_then(|tree| tree.root()).unwrap_or(Hash::ZERO);
        let marks = self
            .marks
            .iter()
            .filter_map(|(range, hash)| Some((whole(range)?, *hash)))
            .collect();
        Ok(Walk {
            verified: Verified {
                first,
                last: self.seq,
                root,
                mended: self.mended,
                torn: rest + self.strange.map_or(0, |(_, _, bytes, _)| bytes),
            },
            marks,
            pruned,
        })
    }
}

fn at(segment: u64, line: u64, kind: FaultKind, record: Option<u64>, what: String) -> Fault {
    Fault {
        kind,
        segment: Some(segment::name(segment)),
        line: Some(line),
        record,
        what,
    }
}

fn torn(line: &[u8]) -> Option<(u64, Hash)> {
    match serde_json::from_slice::<Record>(line).ok()?.entry.event {
        Event::Torn { bytes, sha256 } => Some((bytes, Hash::parse(&sha256)?)),
        _ => None,
    }
}

/// The hash of the last record that was pruned and the tree up to it, when it is this one.
fn pruned(line: &[u8], last: u64) -> Option<(Hash, Range)> {
    match serde_json::from_slice::<Record>(line).ok()?.entry.event {
        Event::Pruned {
            through,
            hash,
            frontier,
        } if through == last => {
            let hashes: Vec<_> = frontier.iter().map(|it| Hash::parse(it)).collect::<Option<_>>()?;
            Some((Hash::parse(&hash)?, Range::from_frontier(through, &hashes)?))
        }
        _ => None,
    }
}
