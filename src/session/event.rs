//! What happens to a session, one JSON object a line.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use ringfence_backend::SandboxMode;
use serde::{Deserialize, Serialize, Serializer};

use super::{Identity, Session};
use crate::error::SessionError;

/// The version of the lines that are written and read.
const SCHEMA: u32 = 1;

/// Something that happened to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// It was made.
    Created {
        /// Its directory.
        cwd: PathBuf,
        /// Which directory that is.
        directory: Identity,
        /// Its mode, if it was given one.
        mode: Option<SandboxMode>,
        /// When.
        time: Timestamp,
    },
    /// It was switched to another mode, for every run that begins afterwards.
    Mode {
        /// The mode.
        to: SandboxMode,
        /// When.
        time: Timestamp,
    },
}

/// An event as a line has it.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase", deny_unknown_fields)]
enum Line {
    #[serde(rename = "created")]
    Created {
        schema: u32,
        cwd: String,
        /// The path in base64, when it is no UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd_bytes: Option<String>,
        device: u64,
        inode: u64,
        born: Option<u64>,
        mode: Option<String>,
        time: Timestring,
    },
    #[serde(rename = "mode")]
    Mode { to: String, time: Timestring },
}

/// A time as text, to the millisecond.
struct Timestring(Timestamp);

impl Serialize for Timestring {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&time_text(self.0))
    }
}

impl<'de> Deserialize<'de> for Timestring {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

/// A time as events and documents have it.
fn time_text(time: Timestamp) -> String {
    format!("{time:.3}")
}

impl Event {
    /// The event as a line, its end included.
    pub(super) fn line(&self) -> serde_json::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }

    /// When it happened, as text.
    #[must_use]
    pub fn time(&self) -> String {
        match self {
            Self::Created { time, .. } | Self::Mode { time, .. } => time_text(*time),
        }
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = match self {
            Self::Created {
                cwd,
                directory,
                mode,
                time,
            } => Line::Created {
                schema: SCHEMA,
                cwd: cwd.to_string_lossy().into_owned(),
                cwd_bytes: cwd
                    .to_str()
                    .is_none()
                    .then(|| STANDARD.encode(cwd.as_os_str().as_bytes())),
                device: directory.device,
                inode: directory.inode,
                born: directory.born,
                mode: mode.map(|mode| mode.name().to_owned()),
                time: Timestring(*time),
            },
            Self::Mode { to, time } => Line::Mode {
                to: to.name().to_owned(),
                time: Timestring(*time),
            },
        };
        line.serialize(serializer)
    }
}

/// A log, as far as it consists of whole lines.
pub(super) struct Log {
    /// What the session is.
    pub(super) session: Session,
    /// How many bytes its whole lines have. Whatever follows was being written when a crash came.
    pub(super) whole: u64,
    /// How many bytes there are.
    pub(super) length: u64,
}

/// Reads the log of the session `id`.
///
/// # Errors
/// [`SessionError::Corrupt`] and [`SessionError::UnknownMode`], with the line.
pub(super) fn read(id: &str, file: &Path, content: &[u8]) -> Result<Log, SessionError> {
    let end = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let whole = content.get(..end).unwrap_or_default();
    let lines = whole.split_inclusive(|byte| *byte == b'\n');
    let events = lines.zip(1..).map(|(line, number)| event(line, number, file));
    let events = events.collect::<Result<Vec<_>, _>>()?;
    Ok(Log {
        session: fold(id, file, events)?,
        whole: whole.len() as u64,
        length: content.len() as u64,
    })
}

/// What a session is after its events: the last one that names a mode wins.
fn fold(id: &str, file: &Path, events: Vec<Event>) -> Result<Session, SessionError> {
    let corrupt = |line, reason: &str| SessionError::Corrupt {
        file: file.to_owned(),
        line,
        reason: reason.to_owned(),
    };
    let Some(Event::Created {
        cwd,
        directory,
        mode,
        time,
    }) = events.first()
    else {
        return Err(corrupt(1, "a log begins with the making of its session"));
    };
    let mut session = Session {
        id: id.to_owned(),
        cwd: cwd.clone(),
        directory: *directory,
        mode: *mode,
        created_at: *time,
        events: Vec::new(),
    };
    for (event, line) in events.iter().zip(1..).skip(1) {
        match event {
            Event::Mode { to, .. } => session.mode = Some(*to),
            Event::Created { .. } => return Err(corrupt(line, "a session is made once")),
        }
    }
    session.events = events;
    Ok(session)
}

fn event(line: &[u8], number: usize, file: &Path) -> Result<Event, SessionError> {
    let corrupt = |reason: String| SessionError::Corrupt {
        file: file.to_owned(),
        line: number,
        reason,
    };
    let known = |word: String| {
        word.parse().map_err(|_| SessionError::UnknownMode {
            file: file.to_owned(),
            line: number,
            mode: word,
        })
    };
    match serde_json::from_slice(line).map_err(|error| corrupt(error.to_string()))? {
        Line::Created { schema, .. } if schema != SCHEMA => Err(corrupt(format!(
            "the schema that is read here is {SCHEMA}, not {schema}"
        ))),
        Line::Created {
            cwd,
            cwd_bytes,
            device,
            inode,
            born,
            mode,
            time,
            ..
        } => {
            let bytes = cwd_bytes.map_or_else(|| Ok(cwd.into_bytes()), |bytes| STANDARD.decode(bytes));
            let bytes = bytes.map_err(|error| corrupt(error.to_string()))?;
            Ok(Event::Created {
                cwd: PathBuf::from(OsString::from_vec(bytes)),
                directory: Identity { device, inode, born },
                mode: mode.map(known).transpose()?,
                time: time.0,
            })
        }
        Line::Mode { to, time } => Ok(Event::Mode {
            to: known(to)?,
            time: time.0,
        }),
    }
}
