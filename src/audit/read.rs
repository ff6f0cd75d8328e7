//! Reading the trail, line by line, from the oldest segment to the newest. Nothing is made and nothing is
//! locked: it may lie on a read-only file system, belong to somebody else, or be written meanwhile.

mod lines;

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use nix::errno::Errno;

pub(super) use lines::{Lines, Piece};

use super::line::Record;
use super::{AuditError, Trail, segment};
use crate::state::StateDir;

/// A trail that is only read.
#[derive(Debug)]
pub struct Reading {
    pub(super) dir: StateDir,
}

impl Trail {
    /// Opens the trail in `state_dir` to be read.
    ///
    /// # Errors
    /// [`AuditError::Missing`] where there is none, [`AuditError::Unreadable`] where it cannot be opened.
    pub fn read(state_dir: &Path) -> Result<Reading, AuditError> {
        let path = state_dir.join("audit");
        match StateDir::to_read(&path) {
            Ok(dir) => Ok(Reading { dir }),
            Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => Err(AuditError::Missing { path }),
            Err(error) => Err(AuditError::Unreadable {
                path,
                reason: error.to_string(),
            }),
        }
    }
}

impl Trail {
    /// The same trail, to be read.
    pub(super) fn reading(&self) -> Result<Reading, AuditError> {
        Self::read(self.state.path())
    }
}

impl Reading {
    /// Every record, oldest first. At the end the iterator can be asked again: it gives what was written since.
    ///
    /// # Errors
    /// [`AuditError::Unreadable`] where the directory cannot be listed.
    pub fn records(&self) -> Result<Records<'_>, AuditError> {
        self.records_from(0)
    }

    /// The records of the last segments, of at least `count` lines if there are as many.
    ///
    /// # Errors
    /// [`AuditError::Unreadable`] where a segment cannot be read.
    pub fn last(&self, count: usize) -> Result<(VecDeque<Result<Record, Unread>>, Records<'_>), AuditError> {
        let segments = segment::list(&self.dir).map_err(|error| self.unreadable(&error))?;
        let mut from = 0;
        for first in segments.iter().rev() {
            from = *first;
            let mut lines = self.lines_from(from)?;
            let mut seen = 0_usize;
            while seen < count && lines.next().map_err(|error| self.unreadable(&error))?.is_some() {
                seen += 1;
            }
            if seen >= count {
                break;
            }
        }
        let mut lines = self.lines_from(from)?;
        let mut kept: VecDeque<(u64, u64, Vec<u8>)> = VecDeque::new();
        while let Some(piece) = lines.next().map_err(|error| self.unreadable(&error))? {
            if kept.len() == count {
                kept.pop_front();
            }
            if count > 0 {
                kept.push_back((piece.segment, piece.number, piece.bytes.to_vec()));
            }
        }
        let parsed = kept
            .iter()
            .map(|(segment, number, bytes)| parse(*segment, *number, bytes))
            .collect();
        let records = Records {
            lines,
            only: None,
            broken: false,
        };
        Ok((parsed, records))
    }

    /// The records from this number on, and perhaps some before it.
    ///
    /// # Errors
    /// [`AuditError::Unreadable`] where the directory cannot be listed.
    pub fn records_from(&self, seq: u64) -> Result<Records<'_>, AuditError> {
        Ok(Records {
            lines: self.lines_from(seq)?,
            only: None,
            broken: false,
        })
    }

    pub(super) fn lines_from(&self, seq: u64) -> Result<Lines<'_>, AuditError> {
        let mut segments: VecDeque<_> = segment::list(&self.dir)
            .map_err(|error| self.unreadable(&error))?
            .into();
        while segments.get(1).is_some_and(|next| *next <= seq) {
            segments.pop_front();
        }
        Ok(Lines::new(&self.dir, segments))
    }

    pub(super) fn unreadable(&self, error: &io::Error) -> AuditError {
        AuditError::Unreadable {
            path: self.dir.path().to_owned(),
            reason: error.to_string(),
        }
    }
}

/// The records of a trail. What is no record comes as an [`Unread`] in its place.
#[derive(Debug)]
pub struct Records<'a> {
    lines: Lines<'a>,
    only: Option<String>,
    broken: bool,
}

impl Records<'_> {
    /// Leaves out, unread, the lines in which this text does not stand.
    #[must_use]
    pub fn containing(mut self, text: &str) -> Self {
        self.only = Some(text.to_owned());
        self
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, Unread>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken {
            return None;
        }
        loop {
            let place = (self.lines.segment(), self.lines.number);
            match self.lines.next() {
                Ok(None) => return None,
                Ok(Some(piece)) => {
                    let skip = self
                        .only
                        .as_deref()
                        .is_some_and(|only| std::str::from_utf8(piece.bytes).is_ok_and(|line| !line.contains(only)));
                    if !skip {
                        return Some(parse(piece.segment, piece.number, piece.bytes));
                    }
                }
                Err(error) => {
                    self.broken = true;
                    return Some(Err(Unread {
                        segment: segment::name(place.0),
                        line: place.1 + 1,
                        reason: error.to_string(),
                    }));
                }
            }
        }
    }
}

fn parse(segment: u64, line: u64, bytes: &[u8]) -> Result<Record, Unread> {
    serde_json::from_slice(bytes).map_err(|error| Unread {
        segment: segment::name(segment),
        line,
        reason: error.to_string(),
    })
}

/// A line that is no record this version knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{segment}, line {line} is no record that can be read: {reason}")]
pub struct Unread {
    /// The file in the directory of the trail.
    pub segment: String,
    /// The number of the line in it.
    pub line: u64,
    /// Why, in words.
    pub reason: String,
}
