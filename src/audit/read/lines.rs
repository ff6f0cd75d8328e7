//! The lines of all segments, one after the other, whatever their length.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use nix::fcntl::OFlag;

use super::super::line::MAX_LINE;
use super::super::segment;
use crate::state::StateDir;

/// A line, or a part of one that is too long or that does not end.
#[derive(Debug)]
pub(in super::super) struct Piece<'a> {
    /// The first number of its segment.
    pub(in super::super) segment: u64,
    /// The number of its line in the segment, from 1 on.
    pub(in super::super) number: u64,
    /// Its bytes, without the newline.
    pub(in super::super) bytes: &'a [u8],
    /// Whether it is a line from its beginning to its newline.
    pub(in super::super) whole: bool,
    /// Whether a newline follows.
    pub(in super::super) ends: bool,
}

/// The lines of all segments.
#[derive(Debug)]
pub(in super::super) struct Lines<'a> {
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
    pub(super) number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(dir: &'a StateDir, segments: VecDeque<u64>) -> Self {
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
    pub(in super::super) fn first(&self) -> Option<u64> {
        self.segments.front().copied()
    }

    /// The segment that is being read.
    pub(in super::super) fn segment(&self) -> u64 {
        self.current.as_ref().map_or(self.newest, |(first, _)| *first)
    }

    /// What follows the last newline of the newest segment.
    pub(in super::super) fn rest(&self) -> &[u8] {
        if self.given { &[] } else { &self.line }
    }

    /// The next line or part of one; nothing at the end of the newest segment.
    pub(in super::super) fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
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
