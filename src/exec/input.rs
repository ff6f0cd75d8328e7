//! What is fed to the command's standard input.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;

/// How much is taken from a source at a time.
const STEP: usize = 64 * 1024;

/// Where the bytes come from.
#[derive(Debug)]
pub(super) enum Source {
    /// From memory.
    Bytes(Vec<u8>),
    /// From a file.
    File(File),
    /// From the runner's own standard input.
    Callers,
}

/// Bytes on their way into the command's standard input.
///
/// A command that does not read its input is no fault: the pump ends quietly.
#[derive(Debug)]
pub(super) struct Pump {
    source: Source,
    sink: OwnedFd,
    waiting: Vec<u8>,
    sent: usize,
    exhausted: bool,
}

/// What a pump waits for.
pub(super) enum Wants<'a> {
    /// Its source has something.
    Source(BorrowedFd<'a>),
    /// The command takes something.
    Sink(BorrowedFd<'a>),
}

/// Refuses a directory: it can be opened, but holds nothing to read, and would look like an empty file.
pub(super) fn no_directory(file: File) -> io::Result<File> {
    if file.metadata()?.is_dir() {
        return Err(Errno::EISDIR.into());
    }
    Ok(file)
}

impl Pump {
    /// Pumps from `source` into `sink`, which must be non-blocking.
    pub(super) fn new(source: Source, sink: OwnedFd) -> Self {
        let (source, waiting) = match source {
            Source::Bytes(bytes) => (Source::Bytes(Vec::new()), bytes),
            other => (other, Vec::new()),
        };
        Self {
            source,
            sink,
            waiting,
            sent: 0,
            exhausted: false,
        }
    }

    /// The command's end of the pump.
    pub(super) fn sink(&self) -> BorrowedFd<'_> {
        self.sink.as_fd()
    }

    /// What to wait for now.
    pub(super) fn wants<'a>(&'a self, stdin: &'a io::Stdin) -> Wants<'a> {
        match &self.source {
            Source::Callers if self.is_hungry() => Wants::Source(stdin.as_fd()),
            Source::File(file) if self.is_hungry() => Wants::Source(file.as_fd()),
            _ => Wants::Sink(self.sink.as_fd()),
        }
    }

    /// Whether everything was sent, and more may come.
    const fn is_hungry(&self) -> bool {
        self.sent == self.waiting.len() && !self.exhausted
    }

    /// Moves what can be moved now. False when nothing more will come, and the pump may be dropped.
    pub(super) fn turn(&mut self, stdin: &io::Stdin) -> bool {
        if self.sent == self.waiting.len() && !self.refill(stdin) {
            return false;
        }
        if self.waiting.is_empty() {
            return true;
        }
        match nix::unistd::write(&self.sink, &self.waiting[self.sent..]) {
            Ok(n) => {
                self.sent += n;
                true
            }
            Err(Errno::EAGAIN | Errno::EINTR) => true,
            // EPIPE: the command closed its input, or never had a use for it.
            Err(_) => false,
        }
    }

    /// Takes the next bytes from the source. False at its end.
    fn refill(&mut self, stdin: &io::Stdin) -> bool {
        let fd = match &self.source {
            Source::Bytes(_) => return false,
            Source::File(file) => file.as_fd(),
            Source::Callers => stdin.as_fd(),
        };
        self.waiting.resize(STEP, 0);
        self.sent = 0;
        let n = match nix::unistd::read(fd, &mut self.waiting) {
            Err(Errno::EAGAIN | Errno::EINTR) => {
                self.waiting.clear();
                return true;
            }
            // A source that cannot be read any further ends the input, as it would end a pipeline.
            other => other.unwrap_or(0),
        };
        self.waiting.truncate(n);
        self.exhausted = n == 0;
        n > 0
    }
}
