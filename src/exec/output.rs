//! What is kept of a stream: its end, exactly, and all of it in a file once the end is not all.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;

use super::ring::Ring;
use super::spill::SpillFile;
use crate::facts::CapturedStream;

/// How much is read in one turn, so that a fast writer cannot keep deadlines from being looked at.
const TURN: u64 = 1024 * 1024;
/// How much is collected in memory before it is written to a file, in bytes.
const BATCH: usize = 256 * 1024;

/// A stream being read, of which the last `cap` bytes are kept.
#[derive(Debug)]
pub(super) struct Stream {
    fd: Option<Arc<OwnedFd>>,
    ring: Ring,
    cap: u64,
    spill: SpillFile,
}

/// A stream that somebody else may look at while it is read.
#[derive(Clone, Debug)]
pub(super) struct SharedStream(Arc<Mutex<Stream>>);

impl SharedStream {
    pub(super) fn new(stream: Stream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// The stream, for a moment. What it holds is whole whatever happened to others who held it.
    pub(super) fn lock(&self) -> MutexGuard<'_, Stream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of a stream, for one of its readers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The part, as text.
    pub text: String,
    /// Where the next part begins, in bytes from the beginning of the stream.
    pub next: u64,
    /// Whether bytes from the offset asked for on are no longer kept.
    pub lossy: bool,
    /// Whether bytes that are no UTF-8 were replaced.
    pub lossy_utf8: bool,
    /// Whether the part has a NUL byte, or more than 30 % of it is no UTF-8.
    pub binary: bool,
    /// The file with the stream from its beginning, as soon as there is one.
    pub spill_path: Option<PathBuf>,
}

impl Stream {
    /// Reads from `fd`, which must be non-blocking, and keeps the last `cap` bytes; `spill` gets the
    /// whole stream if there are more.
    pub(super) fn new(fd: OwnedFd, cap: usize, spill: SpillFile) -> Self {
        let batch = if spill.wants().is_some() { BATCH } else { 0 };
        Self {
            fd: Some(Arc::new(fd)),
            ring: Ring::new(cap.max(batch)),
            cap: cap as u64,
            spill,
        }
    }

    /// The descriptor to wait for, until the stream has ended.
    pub(super) fn fd(&self) -> Option<Arc<OwnedFd>> {
        self.fd.clone()
    }

    /// How many bytes came in all.
    pub(super) const fn total(&self) -> u64 {
        self.ring.total()
    }

    /// Reads what is there, up to a turn's worth.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn read_available(&mut self) -> io::Result<()> {
        let until = self.ring.total() + TURN;
        while self.ring.total() < until {
            if self.ring.crowded(self.needed_from()) {
                self.spill();
            }
            let oldest = self.needed_from();
            let Some(fd) = &self.fd else { break };
            match self.ring.read(fd, oldest) {
                Ok((0, _)) => self.fd = None,
                // The pipe was empty just now: whatever comes next is waited for.
                Ok((_, true)) | Err(Errno::EAGAIN) => break,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Brings the file up to date, if more has come than is kept.
    pub(super) fn spill(&mut self) {
        if self.kept_from() > 0
            && let Some(from) = self.spill.wants()
        {
            self.spill.write(self.ring.since(from));
        }
    }

    /// The stream from `offset` on, as far as it is kept. Nothing is taken away: each reader goes on
    /// where its last part ended.
    ///
    /// A part never begins or ends within a character: one whose last bytes have yet to come is
    /// held back until they have, or the stream has ended.
    pub(super) fn read_from(&self, offset: u64) -> Part {
        let (kept, total) = (self.kept_from(), self.ring.total());
        let lossy = offset < kept;
        let mut bytes = self.ring.since(offset.clamp(kept, total)).concat();
        if lossy {
            // A character has at most three bytes after its first.
            let cut = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
            bytes.drain(..cut);
        }
        let held = if self.fd.is_some() { unfinished(&bytes) } else { 0 };
        bytes.truncate(bytes.len() - held);
        let invalid: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
        Part {
            next: total - held as u64,
            lossy,
            lossy_utf8: invalid > 0,
            binary: invalid * 10 > bytes.len() * 3 || bytes.contains(&0),
            spill_path: self.spill.path(),
            text: String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        }
    }

    /// All that is to be said of the stream, which is read no further.
    pub(super) fn finish(&mut self) -> CapturedStream {
        self.fd = None;
        self.spill();
        self.spill.close();
        let all = self.read_from(0);
        CapturedStream {
            text: all.text,
            truncated: all.lossy,
            bytes: all.next,
            spill_path: all.spill_path,
            lossy_utf8: all.lossy_utf8,
            binary: all.binary,
            spill: all.lossy.then(|| self.spill.account()),
        }
    }

    /// Where the part that is kept begins.
    fn kept_from(&self) -> u64 {
        self.ring.total().saturating_sub(self.cap)
    }

    /// From where on no byte may be overwritten: it is kept, or has yet to be written to the file.
    fn needed_from(&self) -> u64 {
        self.spill.wants().unwrap_or(u64::MAX).min(self.kept_from())
    }
}

/// How many bytes at the end begin a character and could still become one: at most three.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let Some(at) = tail.iter().rposition(|byte| *byte & 0xc0 != 0x80) else {
        return 0;
    };
    match std::str::from_utf8(&tail[at..]) {
        Err(error) if error.error_len().is_none() => tail.len() - at,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
