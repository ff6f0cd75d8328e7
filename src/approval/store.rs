//! The files of the approvals: `approvals/{pending,decided,used,closed}/ID.json` in the state directory.
//!
//! * `pending` holds requests that wait for an answer; `closed` those that do not.
//! * `decided` holds the one decision of each request: of several who decide at once, one puts it there.
//! * `used` holds the decisions whose grant was used up.
//! * `waiting` holds a lock for each request, for as long as somebody waits for its answer or holds its
//!   grant: it ends with that process, however it ends.
//!
//! What is half-written, somebody else's, or for another request is no file of ours: it is never believed.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use serde::de::DeserializeOwned;

use super::decision::Decision;
use super::request::Request;
use crate::state::{Durability, Held, LockError, StateDir};

/// What a request may come to on paper: nobody reads more.
pub(crate) const MAX_REQUEST: usize = 16 * 1024 * 1024;
const MAX_DECISION: u64 = 64 * 1024;

/// What stands where a file of ours would.
#[derive(Debug)]
pub(crate) enum Found<T> {
    Nothing,
    Ours(T),
    /// Something else, and what is wrong with it.
    Foreign(String),
}

/// What became of an attempt to decide.
#[derive(Debug)]
pub(crate) enum Settled {
    /// This decision holds.
    Now,
    /// Another was there before.
    Before(Decision),
}

/// What became of an attempt to use a ticket up.
#[derive(Debug)]
pub(crate) enum Taken {
    Now,
    Before,
    /// It is not what it was, and why.
    Never(String),
}

/// The directories.
#[derive(Debug)]
pub(crate) struct Store {
    pending: StateDir,
    decided: StateDir,
    used: StateDir,
    closed: StateDir,
    waiting: StateDir,
}

impl Store {
    /// Opens them, and makes what is missing.
    ///
    /// # Errors
    /// Why they cannot be used, in a sentence.
    pub(crate) fn open(state_dir: &Path) -> Result<Self, String> {
        let state = StateDir::open(state_dir, None)?;
        let open = |within: &StateDir, name: &str| {
            within
                .within(name)
                .map_err(|error| format!("{} cannot be used: {error}", within.path().join(name).display()))
        };
        let approvals = open(&state, "approvals")?;
        Ok(Self {
            pending: open(&approvals, "pending")?,
            decided: open(&approvals, "decided")?,
            used: open(&approvals, "used")?,
            closed: open(&approvals, "closed")?,
            waiting: open(&approvals, "waiting")?,
        })
    }

    /// Where decisions appear.
    pub(crate) const fn decisions(&self) -> &StateDir {
        &self.decided
    }

    /// Holds the request for as long as this process waits for its answer.
    pub(crate) fn hold(&self, id: &str) -> Result<Held, LockError> {
        self.waiting.lock(id, Duration::ZERO)
    }

    /// Whether somebody waits for the answer of the request, or holds its grant.
    pub(crate) fn is_awaited(&self, id: &str) -> bool {
        self.waiting.is_held(id).unwrap_or(false)
    }

    /// Lets go of the request's lock for good.
    pub(crate) fn let_go(&self, id: &str) {
        // One that is left behind is held by nobody, and says so.
        let _ = self.waiting.remove_file(id);
    }

    /// Writes a request down; `open` when somebody is to answer it.
    pub(crate) fn put_request(&self, request: &Request, open: bool) -> io::Result<()> {
        let text = serde_json::to_vec(request)?;
        if text.len() > MAX_REQUEST {
            return Err(io::Error::other(format!(
                "it is larger than the {MAX_REQUEST} bytes that somebody could look at"
            )));
        }
        let to = if open { &self.pending } else { &self.closed };
        to.put_file(&file(&request.id), &text, Durability::Disk)
    }

    /// Takes a request from those that wait for an answer. Of several who do it at once, one is told that
    /// it did.
    pub(crate) fn close(&self, id: &str) -> io::Result<bool> {
        match self.pending.move_file(&file(id), &self.closed) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Whoever did it was stopped half-way.
                let _ = self.pending.remove_file(file(id));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes what is left of requests that were made before that moment of the wall clock and are closed.
    /// The trail keeps what became of them.
    pub(crate) fn forget_older(&self, than_ms: u64) {
        let names = self.closed.file_names().unwrap_or_default();
        for id in names.iter().filter_map(|name| name.strip_suffix(".json")) {
            if made_at(id).is_some_and(|made| made < than_ms) && !self.is_awaited(id) {
                for place in [&self.decided, &self.used, &self.closed] {
                    let _ = place.remove_file(file(id));
                }
                self.let_go(id);
            }
        }
    }

    /// The requests, by their names; `closed`, too, when asked for.
    pub(crate) fn ids(&self, closed: bool) -> io::Result<Vec<String>> {
        let mut ids = Vec::new();
        for (place, wanted) in [(&self.pending, true), (&self.closed, closed)] {
            if wanted {
                let names = place.file_names()?;
                ids.extend(
                    names
                        .iter()
                        .filter_map(|name| name.strip_suffix(".json"))
                        .map(str::to_owned),
                );
            }
        }
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    /// A request, and whether it waits for an answer.
    pub(crate) fn request(&self, id: &str) -> Found<(Request, bool)> {
        for (place, open) in [(&self.closed, false), (&self.pending, true)] {
            match load::<Request>(place, &file(id), MAX_REQUEST as u64) {
                Found::Nothing => {}
                Found::Ours(request) if request.is_sound(id) => return Found::Ours((request, open)),
                Found::Ours(_) => return Found::Foreign("it is not the request of its name".to_owned()),
                Found::Foreign(what) => return Found::Foreign(what),
            }
        }
        Found::Nothing
    }

    /// The decision of a request.
    pub(crate) fn decision(&self, request: &Request) -> Found<Decision> {
        decision_in(&self.decided, request)
    }

    /// The decision of a request whose grant was used up.
    pub(crate) fn used(&self, request: &Request) -> Option<Decision> {
        match decision_in(&self.used, request) {
            Found::Ours(decision) => Some(decision),
            Found::Nothing | Found::Foreign(_) => None,
        }
    }

    /// Decides a request, unless it is decided. What stands in the way and is no decision is put aside.
    pub(crate) fn decide(&self, request: &Request, decision: &Decision) -> io::Result<Settled> {
        let (name, text) = (file(&request.id), serde_json::to_vec(decision)?);
        for _ in 0..8 {
            match self.decided.put_new_file(&name, &text) {
                Ok(()) => return Ok(Settled::Now),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            match self.decision(request) {
                Found::Ours(before) => return Ok(Settled::Before(before)),
                Found::Foreign(_) => self.put_aside(&request.id)?,
                Found::Nothing => {}
            }
        }
        Err(io::Error::other(
            "what is no decision is put in its place again and again",
        ))
    }

    /// Puts aside what stands where a decision would.
    pub(crate) fn put_aside(&self, id: &str) -> io::Result<()> {
        let unique = u64::from_ne_bytes(ringfence_backend::descriptor::random()?);
        let aside = format!(".{id}.foreign.{unique:016x}");
        match nix::fcntl::renameat(&self.decided, file(id).as_str(), &self.decided, aside.as_str()) {
            // Somebody else was quicker.
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Uses the ticket of a grant up. It is on the disk when this returns.
    pub(crate) fn take(&self, request: &Request, decision: &Decision) -> io::Result<Taken> {
        let name = file(&request.id);
        match self.decided.move_file(&name, &self.used) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Taken::Before),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(if self.used(request).is_some() {
                    Taken::Before
                } else {
                    Taken::Never("it is gone".to_owned())
                });
            }
            Err(error) => return Err(error),
        }
        Ok(match decision_in(&self.used, request) {
            Found::Ours(there) if there == *decision => Taken::Now,
            Found::Ours(_) => Taken::Never("it is another than the one that was decided".to_owned()),
            Found::Foreign(what) => Taken::Never(what),
            Found::Nothing => Taken::Never("it is gone".to_owned()),
        })
    }
}

fn file(id: &str) -> String {
    format!("{id}.json")
}

/// When a request of this name was made, in milliseconds since 1970.
fn made_at(id: &str) -> Option<u64> {
    uuid::Uuid::parse_str(id)
        .ok()
        .filter(|it| it.get_version_num() == 7)
        .map(|it| u64::try_from(it.as_u128() >> 80).unwrap_or(u64::MAX))
}

fn decision_in(place: &StateDir, request: &Request) -> Found<Decision> {
    match load::<Decision>(place, &file(&request.id), MAX_DECISION) {
        Found::Ours(decision) if decision.is_for(request) => Found::Ours(decision),
        Found::Ours(_) => Found::Foreign("it is for something else".to_owned()),
        other => other,
    }
}

/// Reads a document that nobody but this user can have written.
fn load<T: DeserializeOwned>(place: &StateDir, name: &str, most: u64) -> Found<T> {
    let about = match place.open_file(name, OFlag::O_RDONLY).and_then(|file| file.metadata()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
        Err(error) => return Found::Foreign(error.to_string()),
        Ok(about) => about,
    };
    if about.uid() != nix::unistd::geteuid().as_raw() || about.mode() & 0o077 != 0 {
        return Found::Foreign("it belongs to, or may be read by, somebody else".to_owned());
    }
    match place.read_file(name, most) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Found::Nothing,
        Err(error) => Found::Foreign(error.to_string()),
        Ok(text) => match serde_json::from_slice(&text) {
            Ok(document) => Found::Ours(document),
            Err(error) => Found::Foreign(format!("it cannot be read: {error}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_when_the_request_was_made() {
        let id = uuid::Builder::from_unix_timestamp_millis(1_700_000_000_123, &[7; 10]).into_uuid();
        assert_eq!(made_at(&id.to_string()), Some(1_700_000_000_123));
        assert_eq!(made_at("no-uuid"), None);
    }
}
