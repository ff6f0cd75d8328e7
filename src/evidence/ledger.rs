//! The denials of a run: each kind once, counted, and only so many.

use std::collections::HashMap;
use std::path::PathBuf;

use nix::errno::Errno;
use serde::Serialize;

/// How many distinct denials one run keeps.
const MOST: usize = 1000;

/// What was attempted, in a report's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Making a file by opening it.
    Create,
    /// Opening for writing.
    Write,
    /// Cutting or extending.
    Truncate,
    /// Removing a name or a directory.
    Remove,
    /// Renaming.
    Rename,
    /// Making a second name.
    Link,
    /// Making a symbolic link.
    Symlink,
    /// Making a directory.
    Mkdir,
    /// Making a node.
    Mknod,
    /// Changing mode bits.
    Chmod,
    /// Changing owner or group.
    Chown,
    /// Changing times.
    Utime,
    /// Changing an extended attribute.
    Xattr,
    /// Changing inode flags.
    Flags,
    /// Changing mounts.
    Mount,
}

/// One kind of denial: everything but the count is the first one's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// What was attempted.
    pub op: Operation,
    /// On what: absolute, resolved as the process saw it.
    pub path: PathBuf,
    /// The program's name, as the kernel keeps it (15 bytes at most).
    pub program: String,
    /// The process.
    pub pid: i32,
    /// What it was told.
    pub errno: Errno,
    /// How often.
    pub count: u64,
}

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
