//! Whether the trail is what was recorded: each line in its place, bound to the one before.

mod walker;

use super::AuditError;
use super::checkpoint::Checkpoint;
use super::hash::Hash;
use super::line::Envelope;
use super::merkle::Range;
use super::read::{Lines, Reading};
use crate::error::trail::{Fault, FaultKind};
use walker::Walker;

/// What a trail that verifies consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The number of the first record that is there; one more than the last when there is none.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
    /// The root of the Merkle tree over all records, those that were pruned included.
    pub root: Hash,
    /// How many torn stretches there are that the record after them names.
    pub mended: u64,
    /// How many bytes follow the last record that are none, as a crash leaves them.
    pub torn: u64,
}

impl Verified {
    /// The state that was verified, as a checkpoint of the trail `origin`.
    #[must_use]
    pub const fn checkpoint(&self, origin: String) -> Checkpoint {
        Checkpoint {
            origin,
            size: self.last,
            root: self.root,
        }
    }
}

/// What was found on the way through a trail.
pub(super) struct Walk {
    pub(super) verified: Verified,
    /// The tree and the hash of the last line at each of the sizes asked for that is there.
    pub(super) marks: Vec<(Range, Hash)>,
    /// The tree of what was pruned.
    pruned: Range,
}

impl Reading {
    /// Goes through the whole trail, and holds it against a checkpoint if there is one.
    ///
    /// # Errors
    /// [`AuditError::Unreadable`] where it cannot be read. What is wrong with it is the inner error.
    pub fn verify(&self, against: Option<&Checkpoint>) -> Result<Result<Verified, Fault>, AuditError> {
        let sizes: Vec<_> = against.iter().map(|checkpoint| checkpoint.size).collect();
        Ok(self.walk(&sizes)?.and_then(|walk| match against {
            Some(checkpoint) => walk.continues(checkpoint).map(|()| walk.verified),
            None => Ok(walk.verified),
        }))
    }

    /// The same, and remembers the tree at these sizes, which ascend.
    pub(super) fn walk(&self, sizes: &[u64]) -> Result<Result<Walk, Fault>, AuditError> {
        let mut lines = self.lines_from(0)?;
        let mut walker = Walker::new(lines.first().unwrap_or(1), sizes);
        loop {
            let piece = match lines.next() {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(error) => return Err(self.unreadable(&error)),
            };
            if let Err(mut fault) = walker.take(&piece) {
                if fault.kind == FaultKind::Removed && found_later(&mut lines, walker.expected()) {
                    fault.kind = FaultKind::Reordered;
                }
                return Ok(Err(fault));
            }
        }
        let rest = lines.rest().len() as u64;
        Ok(walker.finish(rest))
    }
}

/// Whether a record that was missed comes later.
fn found_later(lines: &mut Lines<'_>, seq: u64) -> bool {
    while let Ok(Some(piece)) = lines.next() {
        if Envelope::read(piece.bytes).is_some_and(|envelope| envelope.seq == seq) {
            return true;
        }
    }
    false
}

impl Walk {
    /// Whether this trail continues the one of the checkpoint.
    fn continues(&self, checkpoint: &Checkpoint) -> Result<(), Fault> {
        let Verified { first, last, .. } = self.verified;
        let size = checkpoint.size;
        let fault = |kind, what: String| Fault {
            kind,
            segment: None,
            line: None,
            record: None,
            what,
        };
        if size > last {
            return Err(fault(
                FaultKind::Truncated,
                format!("the checkpoint counts {size} records, and the trail has {last}"),
            ));
        }
        let root = match self.marks.iter().find(|(range, _)| range.size() == size) {
            Some((range, _)) => range.root(),
            None => self.pruned.root_at(size),
        };
        match root {
            Some(root) if root == checkpoint.root => Ok(()),
            Some(_) => Err(fault(
                FaultKind::Rewritten,
                format!(
                    "the first {size} records are not those of which the checkpoint of {:?} was made",
                    checkpoint.origin
                ),
            )),
            None => Err(fault(
                FaultKind::Unprovable,
                format!(
                    "the checkpoint counts {size} records, the first {} have been pruned since, and what is kept of \
                     them does not tell whether it was the same trail; a newer checkpoint would",
                    first - 1
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests;
