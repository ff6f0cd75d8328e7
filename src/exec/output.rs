//! What is kept of a stream: its end, exactly.

use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno;

use crate::facts::CapturedStream;

/// How much is read at a time: the capacity of a pipe, once a stream has shown that it is not short.
const STEP: usize = 64 * 1024;
const FIRST_STEP: usize = 4 * 1024;
/// How much is read in one turn, so that a fast writer cannot keep deadlines from being looked at.
const TURN: u64 = 1024 * 1024;

/// A stream being read, of which the last `cap` bytes are kept.
#[derive(Debug)]
pub(super) struct Stream {
    fd: Option<OwnedFd>,
    kept: Vec<u8>,
    len: usize,
    cap: usize,
    total: u64,
}

impl Stream {
    /// Reads from `fd`, which must be non-blocking, and keeps the last `cap` bytes.
    pub(super) fn new(fd: OwnedFd, cap: usize) -> Self {
        Self {
            fd: Some(fd),
            kept: Vec::new(),
            len: 0,
            cap,
            total: 0,
        }
    }

    /// The descriptor to wait for, until the stream has ended.
    pub(super) const fn fd(&self) -> Option<&OwnedFd> {
        self.fd.as_ref()
    }

    /// Reads what is there, up to a turn's worth.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn read_available(&mut self) -> io::Result<()> {
        let before = self.total;
        while let Some(fd) = &self.fd
            && self.total < before + TURN
        {
            // Room for one step behind what must be kept; the buffer grows to its full size once.
            let step = if self.total < FIRST_STEP as u64 {
                FIRST_STEP
            } else {
                STEP
            };
            if self.kept.len() < self.len + step {
                if self.len > self.cap {
                    self.kept.copy_within(self.len - self.cap..self.len, 0);
                    self.len = self.cap;
                }
                self.kept.resize(self.len + step, 0);
            }
            match nix::unistd::read(fd, &mut self.kept[self.len..]) {
                Ok(0) => self.fd = None,
                Ok(n) => {
                    self.len += n;
                    self.total += n as u64;
                }
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// The end of the stream as text that begins with a whole character.
    pub(super) fn finish(self) -> CapturedStream {
        let from = self.len.saturating_sub(self.cap);
        let mut bytes = &self.kept[from..self.len];
        let truncated = self.total > bytes.len() as u64;
        if truncated {
            // A character has at most three bytes after its first.
            let partial = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
            bytes = &bytes[partial..];
        }
        let text = String::from_utf8_lossy(bytes);
        CapturedStream {
            lossy_utf8: matches!(text, std::borrow::Cow::Owned(_)),
            text: text.into_owned(),
            truncated,
            bytes: self.total,
            spill_path: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::OFlag;

    /// What is kept of `chunks`, written and read one after another.
    fn kept(cap: usize, chunks: &[&[u8]]) -> CapturedStream {
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
        let mut stream = Stream::new(read, cap);
        for chunk in chunks {
            for piece in chunk.chunks(4096) {
                nix::unistd::write(&write, piece).unwrap();
                stream.read_available().unwrap();
            }
        }
        drop(write);
        stream.read_available().unwrap();
        assert!(stream.fd().is_none(), "the end was seen");
        stream.finish()
    }

    #[test]
    fn exactly_the_cap_is_not_truncated() {
        let stream = kept(5, &[b"abc", b"de"]);
        assert_eq!(
            (stream.text.as_str(), stream.truncated, stream.bytes),
            ("abcde", false, 5)
        );
    }

    #[test]
    fn the_last_bytes_are_kept_however_they_came() {
        let long: Vec<u8> = (0..300_000_u32).map(|i| b'a' + u8::try_from(i % 26).unwrap()).collect();
        for chunks in [vec![long.as_slice()], long.chunks(7).collect()] {
            let stream = kept(1000, &chunks);
            assert_eq!(stream.text.as_bytes(), &long[long.len() - 1000..]);
            assert!(stream.truncated);
            assert_eq!(stream.bytes, 300_000);
        }
    }

    #[test]
    fn a_character_is_never_split_at_the_cut() {
        let stream = kept(4, &["aa€b".as_bytes()]);
        assert_eq!((stream.text.as_str(), stream.lossy_utf8), ("€b", false));
        let stream = kept(3, &["aa€b".as_bytes()]);
        assert_eq!((stream.text.as_str(), stream.lossy_utf8), ("b", false));
    }

    #[test]
    fn bytes_that_are_no_text_lose_nothing_else() {
        let stream = kept(100, &[b"a\xff\xfe\0b"]);
        assert!(stream.text.starts_with('a') && stream.text.ends_with('b'));
        assert!(stream.lossy_utf8 && !stream.truncated);
    }
}
