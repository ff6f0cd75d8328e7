//! The memory a stream is read into: a ring that begins on a page and holds the stream's end.
//!
//! On some processors the kernel copies a pipe's pages several times faster into memory that begins
//! on a page, so the ring does, and is read into directly. A stream that stays short never gets more
//! than one page; one that fills what it has gets four times that, up to the full size.

use std::io::IoSliceMut;
use std::os::fd::AsFd;

/// The unit that memory is aligned to.
const PAGE: usize = 4096;
/// How much is read at a time: the capacity of a pipe.
const STEP: usize = 64 * 1024;

/// The end of a stream of bytes. Offsets count from the stream's beginning.
#[derive(Debug)]
pub(super) struct Ring {
    memory: Vec<u8>,
    /// Where the first page of `memory` begins.
    start: usize,
    /// The byte with offset `n` is at `n % size`.
    size: usize,
    full: usize,
    total: u64,
    /// Whether the last read took all that there was room for.
    hungry: bool,
}

impl Ring {
    /// A ring that can grow until `keep` bytes are safe while another [`STEP`] is read.
    pub(super) fn new(keep: usize) -> Self {
        Self {
            memory: Vec::new(),
            start: 0,
            size: 0,
            full: keep
                .checked_next_multiple_of(PAGE)
                .and_then(|keep| keep.checked_add(STEP))
                .unwrap_or(usize::MAX - PAGE),
            total: 0,
            hungry: true,
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
        usize::try_from(offset % self.size.max(1) as u64).unwrap_or(0)
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
        let held = self.since(oldest).concat();
        let at = larger.place(oldest);
        let (first, rest) = held.split_at(held.len().min(size - at));
        let ring = &mut larger.memory[start..][..size];
        ring[at..at + first.len()].copy_from_slice(first);
        ring[..rest.len()].copy_from_slice(rest);
        (self.memory, self.start, self.size) = (larger.memory, start, size);
        self.hungry = false;
    }
}

/// From one offset to a later one, in memory.
fn distance(from: u64, to: u64) -> usize {
    usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use nix::fcntl::OFlag;

    use super::*;

    #[test]
    fn a_short_stream_takes_a_page_however_often_it_is_looked_at() {
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
        let mut ring = Ring::new(64_000);
        assert_eq!(ring.memory(), 0);
        for number in 0..100 {
            assert!(ring.read(&read, 0).is_err(), "nothing is there");
            nix::unistd::write(&write, b"0123456789").unwrap();
            assert_eq!(ring.read(&read, 0).unwrap(), (10, true));
            assert_eq!(ring.total(), (number + 1) * 10);
        }
        assert_eq!(ring.memory(), 2 * PAGE);
        assert_eq!(ring.since(990), [b"0123456789", &b""[..]]);
    }

    #[test]
    fn what_is_read_into_begins_on_a_page() {
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
        let mut ring = Ring::new(64_000);
        for _ in 0..40 {
            nix::unistd::write(&write, &[b'x'; PAGE]).unwrap();
            ring.read(&read, ring.total().saturating_sub(64_000)).unwrap();
            assert_eq!(ring.memory[ring.start..].as_ptr().align_offset(PAGE), 0);
        }
        assert_eq!(ring.size, 64 * 1024 + STEP);
    }

    #[test]
    fn what_is_held_stays_in_its_order_when_the_memory_grows_around_its_end() {
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
        let mut ring = Ring::new(3000);
        let all: Vec<u8> = (0..17_596_u32).map(|i| i.to_le_bytes()[i as usize % 2]).collect();
        // Short reads, then one that takes all there is room for, and a short one that must not harm them.
        let (short, long) = all.split_at(16_000);
        for piece in short.chunks(1000).chain([long]) {
            nix::unistd::write(&write, piece).unwrap();
            while !ring.read(&read, ring.total().saturating_sub(3000)).unwrap().1 {
                let total = usize::try_from(ring.total()).unwrap();
                assert_eq!(ring.since(ring.total() - 3000).concat(), all[total - 3000..total]);
            }
        }
        assert_eq!(ring.since(14_596).concat(), all[14_596..]);
    }

    #[test]
    fn no_limit_is_too_large() {
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
        nix::unistd::write(&write, b"x").unwrap();
        let mut ring = Ring::new(usize::MAX);
        assert_eq!(ring.read(&read, 0).unwrap(), (1, true));
        assert_eq!(ring.memory(), 2 * PAGE);
    }
}
