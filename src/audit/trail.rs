//! Writing to the trail.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit};

use super::AuditError;
use super::hash::Hash;
use super::host::Host;
use super::line::Record;
use super::record::{Entry, Event};
use super::segment::{self, Ending};
use crate::state::{Durability, Held, StateDir};

/// How long to wait for others who write.
const PATIENCE: Duration = Duration::from_secs(10);
/// The name of the lock of those who write.
pub(super) const LOCK: &str = "lock";

/// The trail of one state directory.
#[derive(Debug)]
pub struct Trail {
    pub(super) state: StateDir,
    pub(super) dir: StateDir,
    host: OnceLock<Host>,
}

/// Where an entry went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The number of the last record that was written.
    pub seq: u64,
}

/// The end of the trail, held by whoever is about to write there.
#[derive(Debug)]
struct End {
    _held: Held,
    /// The segment to go on with, and how it ends; absent when a new one has to be made.
    segment: Option<(File, Ending)>,
    /// The number and hash of the last record.
    seq: u64,
    hash: Hash,
}

impl Trail {
    /// Opens the trail in `state_dir`, and makes its directory if it is not there.
    ///
    /// # Errors
    /// [`AuditError::Unwritable`] where no trail can be kept that runs cannot write.
    pub fn open(state_dir: &Path) -> Result<Self, AuditError> {
        let unwritable = |reason| AuditError::Unwritable {
            path: state_dir.join("audit"),
            reason,
        };
        Self::of(StateDir::open(state_dir, None).map_err(unwritable)?)
    }

    /// The same, in a state directory that is held open already.
    pub(crate) fn of(state: StateDir) -> Result<Self, AuditError> {
        let dir = state.within("audit").map_err(|error| AuditError::Unwritable {
            path: state.path().join("audit"),
            reason: error.to_string(),
        })?;
        Ok(Self {
            state,
            dir,
            host: OnceLock::new(),
        })
    }

    /// Appends entries, all of them or none, one directly after the other.
    ///
    /// What looks like a secret is replaced, and what is too long for a line is cut, with a mark. Where
    /// [`Durability::Disk`] fails the entries may stand in the trail all the same.
    ///
    /// # Errors
    /// [`AuditError::Unwritable`] when they could not be written.
    pub fn append(&self, entries: &[Entry], durability: Durability) -> Result<Receipt, AuditError> {
        self.end()
            .and_then(|end| self.write(end, entries, durability))
            .map_err(|reason| self.unwritable(reason))
    }

    pub(super) fn unwritable(&self, reason: String) -> AuditError {
        AuditError::Unwritable {
            path: self.dir.path().to_owned(),
            reason,
        }
    }

    fn host(&self) -> &Host {
        self.host.get_or_init(Host::here)
    }

    /// Takes the lock, and looks at where the trail ends.
    fn end(&self) -> Result<End, String> {
        let held = self.dir.lock(LOCK, PATIENCE).map_err(|error| error.to_string())?;
        let segments = segment::list(&self.dir).map_err(|error| error.to_string())?;
        let mut end = End {
            _held: held,
            segment: None,
            seq: 0,
            hash: Hash::ZERO,
        };
        // The newest may have no whole record yet; then the one before tells what it goes on from.
        for (age, first) in segments.iter().rev().enumerate() {
            let seen = segment::open(&self.dir, *first).and_then(|file| Ok((segment::ending(&file)?, file)));
            let (ending, file) = seen.map_err(|error| format!("{}: {error}", segment::name(*first)))?;
            let last = ending.last;
            if age == 0 {
                end.segment = Some((file, ending));
            }
            if let Some((seq, hash)) = last {
                (end.seq, end.hash) = (seq, hash);
            } else if *first > 1 {
                continue;
            }
            // What is written to a segment of another name would not verify.
            return match segments.last() {
                Some(newest) if age > 0 && *newest != end.seq + 1 => Err(format!(
                    "{} has no record, and record {} is the next",
                    segment::name(*newest),
                    end.seq + 1
                )),
                _ => Ok(end),
            };
        }
        match segments.last() {
            None => Ok(end),
            Some(first) => Err(format!(
                "{} has no record, and the one before it is gone",
                segment::name(*first)
            )),
        }
    }

    /// Writes entries at the end, in one write(2).
    fn write(&self, end: End, entries: &[Entry], durability: Durability) -> Result<Receipt, String> {
        let End {
            _held: held,
            segment,
            mut seq,
            mut hash,
        } = end;
        let mut text = Vec::new();
        let mut put = |entry: Entry, text: &mut Vec<u8>| {
            let line = Record::new(entry, seq + 1, hash, self.host()).line()?;
            (seq, hash) = (seq + 1, Hash::of(&line));
            text.extend_from_slice(&line);
            text.push(b'\n');
            Ok::<_, String>(())
        };
        let mut mended = false;
        if let Some((_, ending)) = &segment {
            if ending.unfinished {
                text.push(b'\n');
            }
            if let Some(torn) = &ending.torn {
                let mut bytes = torn.bytes.clone();
                if bytes.last() != Some(&b'\n') {
                    text.push(b'\n');
                    bytes.push(b'\n');
                }
                let event = Event::Torn {
                    bytes: bytes.len() as u64,
                    sha256: Hash::of(&bytes).to_string(),
                };
                put(event.into(), &mut text)?;
            }
            mended = !text.is_empty();
        }
        for entry in entries {
            put(entry.without_secrets(), &mut text)?;
        }
        let (file, length, new) = match segment {
            Some((file, ending)) if mended || !self.is_full(&file, &ending, text.len())? => (file, ending.length, None),
            _ if text.is_empty() => return Ok(Receipt { seq }),
            _ => {
                let first = seq + 1 - entries.len() as u64;
                let file = segment::create(&self.dir, first).map_err(|error| error.to_string())?;
                (file, 0, Some(first))
            }
        };
        let written = write_at_once(&file, length, &text);
        if let (Err(_), Some(first)) = (&written, new)
            && file.metadata().is_ok_and(|about| about.len() == 0)
        {
            let _ = self.dir.remove_file(segment::name(first));
        }
        // Nobody waits for the disk but who asked for it: the order of the records is settled by now.
        drop(held);
        let done = match durability {
            Durability::Kernel => written,
            Durability::Disk => written.and_then(|()| self.sync(&file)),
        };
        done.map(|()| Receipt { seq }).map_err(|error| error.to_string())
    }

    /// Returns when a segment is on the disk, with everything that it is found by.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()?;
        // Another process may have made the segment, or the directory, a moment ago.
        self.dir.sync()?;
        self.state.sync()
    }

    fn is_full(&self, file: &File, ending: &Ending, more: usize) -> Result<bool, String> {
        if ending.length == 0 {
            return Ok(false);
        }
        if ending.length + more as u64 > segment::FULL {
            return Ok(true);
        }
        segment::is_old(file, self.host()).map_err(|error| error.to_string())
    }
}

/// Writes all of it or, as far as the file system allows, nothing.
fn write_at_once(mut file: &File, length: u64, text: &[u8]) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    // Who writes beyond this limit is killed for it.
    let (most, _) = getrlimit(Resource::RLIMIT_FSIZE)?;
    if length.saturating_add(text.len() as u64) > most {
        let reason = format!("no file of this process may be larger than {most} bytes (ulimit -f)");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    let outcome = loop {
        match file.write(text) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other,
        }
    };
    let error = match outcome {
        Ok(written) if written == text.len() => return Ok(()),
        Ok(_) => io::Error::from(io::ErrorKind::StorageFull),
        Err(error) => error,
    };
    // What cannot be cut off stays, and the next who writes says so.
    let _ = file.set_len(length);
    Err(error)
}
