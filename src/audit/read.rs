//! Reading the trail, line by line, from the oldest segment to the newest. Nothing is made and nothing is
//! locked: it may lie on a read-only file system, belong to somebody else, or be written meanwhile.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::line::{MAX_LINE, Record};
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

/// A line, or a part of one that is too long or that does not end.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    /// The first number of its segment.
    pub(super) segment: u64,
    /// The number of its line in the segment, from 1 on.
    pub(super) number: u64,
    /// Its bytes, without the newline.
    pub(super) bytes: &'a [u8],
    /// Whether it is a line from its beginning to its newline.
    pub(super) whole: bool,
    /// Whether a newline follows.
    pub(super) ends: bool,
}

/// The lines of all segments.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    dir: &'a StateDir,
    segments: VecDeque<u64>,
    newest: u64,
    current: Option<(u64, BufReader<File>)>,
    /// What has been read of the line.
    line: Vec<u8>,
    /// Whether `line` has been given out.
    given: bool,
    /// Whether `line` is the beginning of its line.
    begins: bool,
    number: u64,
}

impl<'a> Lines<'a> {
    fn new(dir: &'a StateDir, segments: VecDeque<u64>) -> Self {
        Self {
            dir,
            newest: segments.back().copied().unwrap_or_default(),
            segments,
            current: None,
            line: Vec::new(),
            given: true,
            begins: true,
            number: 0,
        }
    }

    /// The number that the oldest segment's name says, before anything was read.
    pub(super) fn first(&self) -> Option<u64> {
        self.segments.front().copied()
    }

    /// The segment that is being read.
    pub(super) fn segment(&self) -> u64 {
        self.current.as_ref().map_or(self.newest, |(first, _)| *first)
    }

    /// What follows the last newline of the newest segment.
    pub(super) fn rest(&self) -> &[u8] {
        if self.given { &[] } else { &self.line }
    }

    /// The next line or part of one; nothing at the end of the newest segment.
    pub(super) fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        loop {
            if self.given {
                self.line.clear();
                self.given = false;
            }
            let Some((segment, reader)) = &mut self.current else {
                if !self.advance()? {
                    return Ok(None);
                }
                continue;
            };
            let segment = *segment;
            let room = (MAX_LINE - self.line.len()) as u64;
            let read = reader.take(room).read_until(b'\n', &mut self.line)?;
            let ends = self.line.last() == Some(&b'\n');
            if ends || self.line.len() == MAX_LINE {
                return Ok(Some(self.piece(segment, ends)));
            }
            if read > 0 {
                continue;
            }
            // The end of the segment. Of the newest it may be the end of today.
            if self.segments.is_empty() {
                self.look_for_more()?;
                if self.segments.is_empty() {
                    return Ok(None);
                }
            }
            if !self.line.is_empty() {
                return Ok(Some(self.piece(segment, false)));
            }
            self.current = None;
        }
    }

    fn piece(&mut self, segment: u64, ends: bool) -> Piece<'_> {
        let whole = self.begins && ends;
        if self.begins {
            self.number += 1;
        }
        self.begins = ends;
        self.given = true;
        let length = self.line.len() - usize::from(ends);
        Piece {
            segment,
            number: self.number,
            bytes: &self.line[..length],
            whole,
            ends,
        }
    }

    /// Goes on to the next segment.
    fn advance(&mut self) -> io::Result<bool> {
        if self.segments.is_empty() {
            self.look_for_more()?;
        }
        let Some(first) = self.segments.pop_front() else {
            return Ok(false);
        };
        let file = self.dir.open_file(segment::name(first), OFlag::O_RDONLY)?;
        self.current = Some((first, BufReader::with_capacity(256 << 10, file)));
        (self.number, self.begins) = (0, true);
        Ok(true)
    }

    fn look_for_more(&mut self) -> io::Result<()> {
        let newest = self.newest;
        self.segments = segment::list(self.dir)?
            .into_iter()
            .filter(|first| *first > newest)
            .collect();
        self.newest = self.segments.back().copied().unwrap_or(newest);
        Ok(())
    }
}
