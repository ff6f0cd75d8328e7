//! The memory a stream is read into: a ring that begins on a page and holds the stream's end.
//!
//! The kernel copies a pipe's pages several times faster into memory that lies as they do, so the
//! ring is page-aligned and read into directly. A stream that stays short never gets more than one
//! page; one that fills what it has gets four times that, up to the full size.

use std::io::IoSliceMut;
use std::os::fd::AsFd;

/// The unit that memory is aligned to.
const PAGE: usize = 4096;
/// How much is read at a time: the capacity of a pipe.
pub(super) const STEP: usize = 64 * 1024;
/// How much is read between two looks at the alignment, so that it costs little to mend it.
const PATIENCE: u64 = if cfg!(test) { 32 * 1024 } else { 1024 * 1024 };

/// The end of a stream of bytes. Offsets count from the stream's beginning.
#[derive(Debug)]
pub(super) struct Ring {
    memory: Vec<u8>,
    /// Where the first page of `memory` begins.
    start: usize,
    size: usize,
    full: usize,
    /// The byte with offset `n` is at `(n + shift) % size`.
    shift: u64,
    total: u64,
    /// Whether the last read took all that there was room for.
    hungry: bool,
    /// From here on the alignment may be looked at again.
    settled: u64,
}

impl Ring {
    /// A ring that can grow until `keep` bytes are safe while another [`STEP`] is read.
    pub(super) fn new(keep: usize) -> Self {
        Self {
            memory: Vec::new(),
            start: 0,
            size: 0,
            full: keep.next_multiple_of(PAGE).saturating_add(STEP),
            shift: 0,
            total: 0,
            hungry: true,
            settled: PATIENCE,
        }
    }

    /// How many bytes came in all.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Whether the ring is as large as it gets and cannot take another step without bytes from
    /// `oldest` on being lost.
    pub(super) fn crowded(&self, oldest: u64) -> bool {
        self.size == self.full && self.room(oldest) < STEP
    }

    /// How much memory it has.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.memory.capacity()
    }

    /// Reads once, and loses nothing from `oldest` on. Also whether the source has no more for now:
    /// a pipe gives less than it was asked for only when it is empty.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn read(&mut self, source: impl AsFd, oldest: u64) -> nix::Result<(usize, bool)> {
        if self.hungry && self.size < self.full {
            self.grow(oldest);
        }
        self.align();
        let room = self.room(oldest).min(STEP);
        let at = self.place(self.total);
        let ring = &mut self.memory[self.start..][..self.size];
        let (before, behind) = ring.split_at_mut(at);
        let first = room.min(behind.len());
        let got = if first == room {
            nix::unistd::read(source, &mut behind[..room])?
        } else {
            let rest = &mut before[..room - first];
            nix::sys::uio::readv(source, &mut [IoSliceMut::new(behind), IoSliceMut::new(rest)])?
        };
        self.total += got as u64;
        self.hungry = got == room;
        Ok((got, !self.hungry))
    }

    /// The bytes from `from` to the end, in their order. They must still be there.
    pub(super) fn since(&self, from: u64) -> [&[u8]; 2] {
        let length = distance(from, self.total);
        if length == 0 {
            return [&[], &[]];
        }
        let (at, ring) = (self.place(from), &self.memory[self.start..][..self.size]);
        let first = length.min(self.size - at);
        [&ring[at..at + first], &ring[..length - first]]
    }

    /// How many bytes can come without one from `oldest` on being lost.
    fn room(&self, oldest: u64) -> usize {
        self.size - distance(oldest, self.total)
    }

    /// The place of an offset.
    fn place(&self, offset: u64) -> usize {
        usize::try_from((offset + self.shift) % self.size.max(1) as u64).unwrap_or(0)
    }

    fn grow(&mut self, oldest: u64) {
        let size = self.size.saturating_mul(4).clamp(PAGE, self.full);
        // One page more than is used, so that a page begins early enough.
        let memory = vec![0; size + PAGE];
        let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
        let mut larger = Self {
            memory,
            start,
            size,
            ..Self::new(0)
        };
        let mut at = larger.place(oldest);
        for piece in self.since(oldest) {
            let first = piece.len().min(size - at);
            let ring = &mut larger.memory[start..][..size];
            ring[at..at + first].copy_from_slice(&piece[..first]);
            ring[..piece.len() - first].copy_from_slice(&piece[first..]);
            at = (at + piece.len()) % size;
        }
        (self.memory, self.start, self.size, self.shift) = (larger.memory, start, size, 0);
    }

    /// Lets the next byte lie where a page begins, now and then. After a short read the pipe is
    /// empty, and what comes next begins on a page of the pipe's.
    fn align(&mut self) {
        if self.hungry || self.size < self.full || self.total < self.settled {
            return;
        }
        self.settled = self.total + PATIENCE;
        let over = self.place(self.total) % PAGE;
        if over > 0 {
            let gap = PAGE - over;
            self.memory[self.start..][..self.size].rotate_right(gap);
            self.shift += gap as u64;
        }
    }
}

/// From one offset to a later one, in memory.
fn distance(from: u64, to: u64) -> usize {
    usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX)
}
