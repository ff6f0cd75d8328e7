//! What is wrong with a trail.

use std::fmt;

use serde::Serialize;

/// The first thing that is wrong with a trail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// What kind of thing.
    pub kind: FaultKind,
    /// The file in the directory of the trail; absent where no single one is to blame.
    pub segment: Option<String>,
    /// The line in that file, from 1 on.
    pub line: Option<u64>,
    /// The record in question.
    pub record: Option<u64>,
    /// What was found, in a sentence.
    pub what: String,
}

/// What kind of thing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// A record is not what it was when the next was written.
    Changed,
    /// Records are missing.
    Removed,
    /// Records stand in another order, or twice.
    Reordered,
    /// Something stands there that was never recorded.
    Foreign,
    /// Torn bytes are not those that the record after them names.
    Torn,
    /// A record has a form that this version does not know.
    Version,
    /// A file has the name of another.
    Misnamed,
    /// The beginning is missing, and no record says that it was pruned.
    Beginning,
    /// There are fewer records than the checkpoint counts.
    Truncated,
    /// The records that the checkpoint counts are not those it was made of.
    Rewritten,
    /// What the checkpoint counts was pruned since, and cannot be compared.
    Unprovable,
    /// The checkpoint lacks the signature that was asked for.
    Unsigned,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(segment) = &self.segment {
            write!(f, "{segment}")?;
            if let Some(line) = self.line {
                write!(f, ", line {line}")?;
            }
            write!(f, ": ")?;
        }
        write!(f, "{}", self.what)
    }
}
