//! Where sessions are kept: `sessions/` in the state directory, one file each.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use nix::fcntl::OFlag;
use ringfence_backend::{SandboxExecutionPolicy, SandboxMode, WorkspaceRoot};

use super::event::{self, Event, Log};
use super::{Identity, Session};
use crate::error::Error;
use crate::error::SessionError;
use crate::ids::new_run_id;
use crate::state::{Durability, Held, StateDir};

/// The directory of the sessions, in the state directory.
const DIRECTORY: &str = "sessions";
/// What the names of logs end in.
const SUFFIX: &str = ".jsonl";
/// The lock that every change is made under.
const LOCK: &str = ".lock";
/// How long a change waits for those of others.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest log, in bytes: more switches than a person can make.
const LARGEST: u64 = 16 << 20;
/// The longest name.
const LONGEST: usize = 64;

/// The sessions of one state directory.
#[derive(Debug)]
pub struct Store {
    state: StateDir,
}

/// A session that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// Its directory.
    pub cwd: &'a WorkspaceRoot,
    /// Its mode; absent where the deployment's default is to hold.
    pub mode: Option<SandboxMode>,
    /// Its id; absent where one is to be made up.
    pub id: Option<&'a str>,
}

/// A session as the list has it.
#[derive(Debug)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// What it is, or why it cannot be used.
    pub session: Result<Session, SessionError>,
}

impl Store {
    /// Opens the sessions in `state_dir`, which is made if it is not there.
    ///
    /// # Errors
    /// [`SessionError::State`] where nothing can be kept that runs cannot write.
    pub fn open(state_dir: &Path) -> Result<Self, SessionError> {
        let state = StateDir::open(state_dir, None).map_err(|reason| SessionError::State { reason })?;
        Ok(Self { state })
    }

    /// Makes a session. It is on the disk when this returns.
    ///
    /// `record` is told of it beforehand, under the lock; when it fails, nothing is made.
    ///
    /// # Errors
    /// [`SessionError`] for a name that cannot be or is taken, and where nothing can be written; whatever `record`
    /// fails with.
    pub fn create(&self, new: New<'_>, record: impl FnOnce(&Session) -> Result<(), Error>) -> Result<Session, Error> {
        let id = new.id.map_or_else(new_run_id, str::to_owned);
        named(&id)?;
        let directory = Identity::of(new.cwd).map_err(|source| SessionError::Gone {
            id: id.clone(),
            cwd: new.cwd.path().to_owned(),
            source,
        })?;
        let dir = self.state.within(DIRECTORY).map_err(|error| self.failed(&error))?;
        let _held = self.lock(&dir)?;
        match dir.open_file(file_of(&id), OFlag::O_RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Something that is no log has the name as well.
            _ => return Err(SessionError::Taken { id }.into()),
        }
        let event = Event::Created {
            cwd: new.cwd.path().to_owned(),
            directory,
            mode: new.mode,
            time: Timestamp::now(),
        };
        let line = event.line().map_err(|error| self.failed(&error.into()))?;
        // What is read back later is what is answered now.
        let Log { session, .. } = event::read(&id, &self.path_of(&id), &line)?;
        record(&session)?;
        dir.put_file(&file_of(&id), &line, Durability::Disk)
            .and_then(|()| self.state.sync())
            .map_err(|error| self.failed(&error))?;
        Ok(session)
    }

    /// Every session, in the order of the ids.
    ///
    /// # Errors
    /// [`SessionError::State`] when the directory cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, SessionError> {
        let Some(dir) = self.existing()? else {
            return Ok(Vec::new());
        };
        let names = dir.file_names().map_err(|error| self.failed(&error))?;
        let ids = names.iter().filter_map(|name| name.strip_suffix(SUFFIX));
        let ids = ids.filter(|id| named(id).is_ok());
        Ok(ids
            .map(|id| Listed {
                id: id.to_owned(),
                session: self.log(&dir, id).map(|log| log.session),
            })
            .collect())
    }

    /// The session of that id.
    ///
    /// # Errors
    /// [`SessionError::Unknown`] when there is none, and others when its log cannot be read or believed.
    pub fn load(&self, id: &str) -> Result<Session, SessionError> {
        Ok(self.log(&self.dir_of(id)?, id)?.session)
    }

    /// Switches a session to a mode, from its next run on. The event is on the disk when this returns, and
    /// the session is as it is afterwards.
    ///
    /// `record` is told of the session as it was, beforehand and under the lock; when it fails, nothing is
    /// switched.
    ///
    /// # Errors
    /// [`SessionError`] when there is no such session, it cannot be used, or nothing can be written; whatever
    /// `record` fails with.
    pub fn switch(
        &self,
        id: &str,
        to: SandboxMode,
        record: impl FnOnce(&Session) -> Result<(), Error>,
    ) -> Result<Session, Error> {
        let dir = self.dir_of(id)?;
        let _held = self.lock(&dir)?;
        let log = self.log(&dir, id)?;
        log.session.root()?;
        let event = Event::Mode {
            to,
            time: Timestamp::now(),
        };
        let line = event.line().map_err(|error| self.failed(&error.into()))?;
        if log.whole + line.len() as u64 > LARGEST {
            return Err(self.failed(&io::ErrorKind::FileTooLarge.into()).into());
        }
        record(&log.session)?;
        append(&dir, id, &log, &line).map_err(|error| self.failed(&error))?;
        Ok(self.log(&dir, id)?.session)
    }

    /// Makes sure that no run under this policy can write the sessions.
    ///
    /// # Errors
    /// [`SessionError::WithinReach`] when one could.
    pub fn is_out_of_reach_of(&self, policy: &SandboxExecutionPolicy) -> Result<(), SessionError> {
        let within = |reason| SessionError::WithinReach { reason };
        if !policy.mode().confines() {
            return Ok(());
        }
        StateDir::open(self.state.path(), Some(policy)).map_err(within)?;
        let inside = policy
            .writable()
            .iter()
            .find(|root| root.path().starts_with(self.state.path()));
        inside.map_or(Ok(()), |root| {
            Err(within(format!(
                "{} lies in the state directory, and this run could write it",
                root.path().display()
            )))
        })
    }

    /// The directory of the sessions, if any was ever made.
    fn existing(&self) -> Result<Option<StateDir>, SessionError> {
        match self.state.existing(DIRECTORY) {
            Ok(dir) => Ok(Some(dir)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn dir_of(&self, id: &str) -> Result<StateDir, SessionError> {
        named(id)?;
        self.existing()?
            .ok_or_else(|| SessionError::Unknown { id: id.to_owned() })
    }

    fn log(&self, dir: &StateDir, id: &str) -> Result<Log, SessionError> {
        match dir.read_file(file_of(id), LARGEST) {
            Ok(content) => event::read(id, &self.path_of(id), &content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(SessionError::Unknown { id: id.to_owned() }),
            Err(error) => Err(SessionError::State {
                reason: format!("{}: {error}", self.path_of(id).display()),
            }),
        }
    }

    fn lock(&self, dir: &StateDir) -> Result<Held, SessionError> {
        dir.lock(LOCK, PATIENCE).map_err(|error| SessionError::State {
            reason: format!("{}: {error}", self.state.path().join(DIRECTORY).display()),
        })
    }

    fn path_of(&self, id: &str) -> PathBuf {
        self.state.path().join(DIRECTORY).join(file_of(id))
    }

    fn failed(&self, error: &io::Error) -> SessionError {
        SessionError::State {
            reason: format!("{}: {error}", self.state.path().join(DIRECTORY).display()),
        }
    }
}

/// Appends a line, after what a crash may have left of another is taken away. A line that does not reach
/// the disk does not stay.
fn append(dir: &StateDir, id: &str, log: &Log, line: &[u8]) -> io::Result<()> {
    let mut file = dir.open_file(file_of(id), OFlag::O_WRONLY | OFlag::O_APPEND)?;
    if log.length > log.whole {
        file.set_len(log.whole)?;
    }
    let written = file.write_all(line).and_then(|()| file.sync_all());
    if written.is_err() {
        file.set_len(log.whole)?;
    }
    written
}

fn file_of(id: &str) -> String {
    format!("{id}{SUFFIX}")
}

/// Refuses an id that no session can have.
fn named(id: &str) -> Result<(), SessionError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let reason = if id.is_empty() {
        "it is empty"
    } else if id.len() > LONGEST {
        "it is too long"
    } else if !id.chars().all(plain) {
        "it has other characters than letters, digits, `.`, `_` and `-`"
    } else if id.starts_with('.') {
        "it begins with a dot"
    } else if id.starts_with('-') {
        "it begins with a dash"
    } else {
        return Ok(());
    };
    Err(SessionError::Name {
        id: id.to_owned(),
        reason,
    })
}
