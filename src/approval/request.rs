//! What somebody is asked: everything they must see, and nothing shortened.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringfence_backend::SandboxMode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clock::Deadline;
use crate::config::Looseness;
use crate::facts::{Denial, Operation};

/// A question as whoever asks puts it. The desk makes a [`Request`] of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The finished run.
    pub run: String,
    /// Its session.
    pub session: Option<String>,
    /// Who asks, as far as it is known: a harness, a client, a user.
    pub asker: String,
    /// The program and its arguments, as they will be executed.
    pub argv: Vec<OsString>,
    /// The program's file.
    pub executable: PathBuf,
    /// Whether that file has changed since the run; absent when nobody knows.
    pub executable_changed: Option<bool>,
    /// The working directory.
    pub workdir: PathBuf,
    /// What would be looser, one change a line: `+ write /etc/hosts`.
    pub difference: Vec<String>,
    /// The same as data.
    pub difference_data: Value,
    /// How much looser that is.
    pub looseness: Looseness,
    /// The mode that it would run under.
    pub mode: SandboxMode,
    /// The paths that could be written in addition.
    pub opens: Vec<PathBuf>,
    /// What stays as it is, in words.
    pub keeps: Vec<String>,
    /// What was refused in the run.
    pub denials: Vec<Refused>,
    /// How many more refusals there were than are listed; absent when nobody knows.
    pub denials_omitted: Option<u64>,
    /// Why, in the words of whoever asks. Nobody has checked them.
    pub justification: String,
    /// What else there is to know: what the first run has done already.
    pub notes: Vec<String>,
}

/// Something that was refused in the finished run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Refused {
    /// What was attempted.
    pub op: Operation,
    /// On what.
    pub path: String,
    /// The path in base64, when it is no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    /// What the program was told, such as `EACCES`.
    pub errno: String,
    /// The program that tried, where it is known.
    pub program: Option<String>,
    /// Its process.
    pub pid: Option<i32>,
    /// How often.
    pub count: u64,
    /// How sure that is: `observed` or `inferred`.
    pub evidence: String,
}

impl Refused {
    /// A denial that was seen.
    #[must_use]
    pub fn observed(denial: &Denial) -> Self {
        let (path, path_bytes) = written(denial.path.as_os_str());
        let known = denial.pid != 0;
        Self {
            op: denial.op,
            path,
            path_bytes,
            errno: format!("{:?}", denial.errno),
            program: known.then(|| denial.program.clone()),
            pid: known.then_some(denial.pid),
            count: denial.count,
            evidence: "observed".to_owned(),
        }
    }

    /// The path, byte for byte.
    #[must_use]
    pub fn path(&self) -> OsString {
        read(&self.path, self.path_bytes.as_deref())
    }
}

/// A request: a question with a name, an end, and the digest that its answer is bound to.
///
/// On paper, what is no UTF-8 is shown lossily beside a twin in base64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    pub(crate) schema: u32,
    pub(crate) id: String,
    pub(crate) code: String,
    pub(crate) digest: String,
    pub(crate) asked_at: String,
    pub(crate) expires_at: String,
    pub(crate) deadline: Deadline,
    pub(crate) answerers: Vec<String>,
    pub(crate) uid: u32,
    pub(crate) pid: u32,
    pub(crate) run: String,
    pub(crate) session: Option<String>,
    pub(crate) asker: String,
    argv: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    argv_bytes: Option<Vec<String>>,
    executable: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    executable_bytes: Option<String>,
    pub(crate) executable_changed: Option<bool>,
    workdir: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workdir_bytes: Option<String>,
    pub(crate) difference: Value,
    pub(crate) difference_text: Vec<String>,
    pub(crate) looseness: Looseness,
    pub(crate) mode: SandboxMode,
    pub(crate) keeps: Vec<String>,
    pub(crate) denials: Vec<Refused>,
    pub(crate) denials_omitted: Option<u64>,
    pub(crate) justification: String,
    pub(crate) notes: Vec<String>,
}

/// What the desk adds to a question.
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) code: String,
    pub(crate) digest: String,
    pub(crate) asked_at: String,
    pub(crate) deadline: Deadline,
    pub(crate) answerers: Vec<String>,
}

impl Request {
    /// The request for readers: without what only this host's clocks understand.
    pub(super) fn document(&self) -> Value {
        let mut document = serde_json::to_value(self).unwrap_or(Value::Null);
        if let Value::Object(fields) = &mut document {
            fields.remove("deadline");
        }
        document
    }

    pub(crate) fn new(question: Question, frame: Frame) -> Self {
        let (executable, executable_bytes) = written(question.executable.as_os_str());
        let (workdir, workdir_bytes) = written(question.workdir.as_os_str());
        let plain = question.argv.iter().all(|word| word.to_str().is_some());
        let twins = || question.argv.iter().map(|word| STANDARD.encode(word.as_bytes()));
        Self {
            schema: crate::facts::SCHEMA,
            id: frame.id,
            code: frame.code,
            digest: frame.digest,
            asked_at: frame.asked_at,
            expires_at: frame.deadline.timestamp(),
            deadline: frame.deadline,
            answerers: frame.answerers,
            uid: nix::unistd::getuid().as_raw(),
            pid: std::process::id(),
            run: question.run,
            session: question.session,
            asker: question.asker,
            argv_bytes: (!plain).then(|| twins().collect()),
            argv: lossy(&question.argv),
            executable,
            executable_bytes,
            executable_changed: question.executable_changed,
            workdir,
            workdir_bytes,
            difference: question.difference_data,
            difference_text: question.difference,
            looseness: question.looseness,
            mode: question.mode,
            keeps: question.keeps,
            denials: question.denials,
            denials_omitted: question.denials_omitted,
            justification: question.justification,
            notes: question.notes,
        }
    }

    /// Its name: a UUID of version 7.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Three characters, to be typed by whoever approves.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The finished run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// What would be looser, one change a line.
    #[must_use]
    pub fn difference_text(&self) -> &[String] {
        &self.difference_text
    }

    /// Until when it can be answered, by the wall clock.
    #[must_use]
    pub fn expires_at(&self) -> &str {
        &self.expires_at
    }

    /// The digest that the answer is bound to, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The program and its arguments, byte for byte.
    #[must_use]
    pub fn argv(&self) -> Vec<OsString> {
        match &self.argv_bytes {
            Some(twins) => twins.iter().map(|twin| read("", Some(twin))).collect(),
            None => self.argv.iter().map(OsString::from).collect(),
        }
    }

    /// The program's file.
    #[must_use]
    pub fn executable(&self) -> PathBuf {
        read(&self.executable, self.executable_bytes.as_deref()).into()
    }

    /// The working directory.
    #[must_use]
    pub fn workdir(&self) -> PathBuf {
        read(&self.workdir, self.workdir_bytes.as_deref()).into()
    }

    /// The working directory as documents write it.
    pub(crate) fn workdir_text(&self) -> &str {
        &self.workdir
    }

    /// Whether this is what a file of that name should hold, and its twins say what they stand beside.
    pub(crate) fn is_sound(&self, id: &str) -> bool {
        let agrees = |text: &str, twin: Option<&String>| {
            twin.is_none_or(|twin| {
                STANDARD
                    .decode(twin)
                    .is_ok_and(|bytes| String::from_utf8_lossy(&bytes) == text)
            })
        };
        let words = self.argv_bytes.as_ref().is_none_or(|twins| {
            twins.len() == self.argv.len() && self.argv.iter().zip(twins).all(|(word, twin)| agrees(word, Some(twin)))
        });
        self.id == id
            && words
            && agrees(&self.executable, self.executable_bytes.as_ref())
            && agrees(&self.workdir, self.workdir_bytes.as_ref())
            && self.denials.iter().all(|it| agrees(&it.path, it.path_bytes.as_ref()))
    }
}

/// Words as documents write them.
pub(crate) fn lossy(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// A string for paper, with its twin when it is no UTF-8.
fn written(text: &OsStr) -> (String, Option<String>) {
    let twin = text.to_str().is_none().then(|| STANDARD.encode(text.as_bytes()));
    (text.to_string_lossy().into_owned(), twin)
}

fn read(text: &str, twin: Option<&str>) -> OsString {
    twin.and_then(|twin| STANDARD.decode(twin).ok())
        .map_or_else(|| OsString::from(text), OsString::from_vec)
}

/// A path as a request writes it; for whoever makes [`Refused`] of what was not observed.
#[must_use]
pub fn path_on_paper(path: &Path) -> (String, Option<String>) {
    written(path.as_os_str())
}

#[cfg(test)]
pub(crate) mod tests;
