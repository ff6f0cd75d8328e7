//! The denials of a run: each kind once, counted, and only so many.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::facts::{Denial, Operation};

/// How many distinct denials one run keeps.
const MOST: usize = 1000;

/// Collects denials.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    denials: Vec<Denial>,
    index: HashMap<(Operation, PathBuf, String), usize>,
    omitted: u64,
}

impl Ledger {
    /// Counts a denial, with the kind it is of. Returns it when it is the first of its kind.
    pub(super) fn record(&mut self, denial: Denial) -> Option<&Denial> {
        let key = (denial.op, denial.path.clone(), denial.program.clone());
        if let Some(known) = self.index.get(&key) {
            self.denials[*known].count += denial.count;
            return None;
        }
        if self.denials.len() == MOST {
            self.omitted += denial.count;
            return None;
        }
        self.index.insert(key, self.denials.len());
        self.denials.push(denial);
        self.denials.last()
    }

    /// Every kind that was kept, in the order in which they came, and how many more denials there were.
    pub(super) fn finish(self) -> (Vec<Denial>, u64) {
        (self.denials, self.omitted)
    }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

    fn denial(path: usize) -> Denial {
        Denial {
            op: Operation::Create,
            path: format!("/x/{path}").into(),
            program: "p".to_owned(),
            pid: 1,
            errno: Errno::EROFS,
            count: 1,
        }
    }

    #[test]
    fn the_same_denial_is_kept_once_and_counted() {
        let mut ledger = Ledger::default();
        for _ in 0..3 {
            ledger.record(denial(1));
        }
        let (denials, omitted) = ledger.finish();
        assert_eq!((denials.len(), denials[0].count, omitted), (1, 3, 0));
    }

    #[test]
    fn a_storm_is_bounded_and_what_was_left_out_is_counted() {
        let mut ledger = Ledger::default();
        for path in 0..MOST + 5 {
            ledger.record(denial(path));
        }
        let (denials, omitted) = ledger.finish();
        assert_eq!((denials.len(), omitted), (MOST, 5));
    }
}
