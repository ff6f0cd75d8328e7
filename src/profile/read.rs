//! From the text of a profile to what it says. Every refusal names its file, line and key.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::{Path, PathBuf};

use ringfence_backend::{Require, SandboxMode, Temp};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Inherit;
use super::names::unusable;
use super::{Expected, Place, Profile, ProfileEnv, ProfileError};

/// The version of the schema that is read.
const SCHEMA: &str = "1";

/// How much of a wrong value is shown, in characters.
const SHOWN: usize = 60;

const TOP: [&str; 5] = ["schema", "name", "description", "policy", "env"];
const POLICY: [&str; 7] = [
    "mode",
    "protect",
    "git_worktree",
    "temp",
    "network",
    "unix_sockets",
    "require",
];
const ENV: [&str; 3] = ["inherit", "keep", "drop"];

const MODES: [(&str, SandboxMode); 3] = [
    (SandboxMode::ReadOnly.name(), SandboxMode::ReadOnly),
    (SandboxMode::WorkspaceWrite.name(), SandboxMode::WorkspaceWrite),
    (SandboxMode::DangerFullAccess.name(), SandboxMode::DangerFullAccess),
];
const TEMPS: [(&str, Temp); 3] = [("host", Temp::Host), ("private", Temp::Private), ("none", Temp::None)];
const WORKTREES: [(&str, bool); 2] = [("write", true), ("none", false)];
const DOORS: [(&str, bool); 2] = [("host", true), ("none", false)];
const REQUIRES: [(&str, Require); 2] = [("full", Require::Full), ("partial", Require::Partial)];
const INHERITS: [(&str, Inherit); 3] = [
    ("filtered", Inherit::Filtered),
    ("all", Inherit::All),
    ("none", Inherit::None),
];

/// Reads the text of the profile in `file`.
pub(super) fn profile(file: &Path, text: &str) -> Result<Profile, ProfileError> {
    let document = DeTable::parse(text).map_err(|error| ProfileError::Syntax {
        place: place(file, text, error.span().unwrap_or_default()),
        reason: error.message().to_owned(),
    })?;
    let top = Section {
        file,
        text,
        name: None,
        table: document.get_ref(),
        span: document.span(),
    };
    // First of all: a later schema may have keys that this one does not know.
    top.schema()?;
    top.only(&TOP)?;
    let policy = top.section("policy")?;
    policy.only(&POLICY)?;
    Ok(Profile {
        name: top.text("name")?,
        description: top.text("description")?,
        mode: policy.word("mode", &MODES)?.ok_or_else(|| policy.missing("mode"))?,
        temp: policy.word("temp", &TEMPS)?,
        protect: policy.names("protect")?.into_iter().map(PathBuf::from).collect(),
        git_worktree: policy.word("git_worktree", &WORKTREES)?.unwrap_or(false),
        network: policy.word("network", &DOORS)?,
        unix_sockets: policy.word("unix_sockets", &DOORS)?,
        require: policy.word("require", &REQUIRES)?,
        env: match top.get("env") {
            Some(_) => top.section("env")?.environment()?,
            None => ProfileEnv::default(),
        },
    })
}

/// One table of a profile.
struct Section<'a> {
    file: &'a Path,
    text: &'a str,
    name: Option<&'static str>,
    table: &'a DeTable<'a>,
    span: Range<usize>,
}

impl<'a> Section<'a> {
    fn schema(&self) -> Result<(), ProfileError> {
        let value = self.get("schema").ok_or_else(|| self.missing("schema"))?;
        match value.get_ref().as_integer() {
            Some(number) if number.to_string() == SCHEMA => Ok(()),
            _ => Err(self.wrong("schema", value, Expected::Schema)),
        }
    }

    /// Refuses the first key, as the file has them, that is not among `known`.
    fn only(&self, known: &'static [&'static str]) -> Result<(), ProfileError> {
        let unknown = self.table.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        match unknown.min_by_key(|key| key.span().start) {
            None => Ok(()),
            Some(key) => Err(ProfileError::UnknownKey {
                place: self.place(key.span()),
                section: self.name,
                key: key.get_ref().to_string(),
                known,
            }),
        }
    }

    fn section(&self, key: &'static str) -> Result<Section<'a>, ProfileError> {
        let value = self.get(key).ok_or_else(|| self.missing(key))?;
        let table = value
            .get_ref()
            .as_table()
            .ok_or_else(|| self.wrong(key, value, Expected::Table))?;
        Ok(Section {
            name: Some(key),
            table,
            span: value.span(),
            ..*self
        })
    }

    fn text(&self, key: &'static str) -> Result<String, ProfileError> {
        let value = self.get(key).ok_or_else(|| self.missing(key))?;
        match value.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
            _ => Err(self.wrong(key, value, Expected::Text)),
        }
    }

    fn word<T: Copy>(&self, key: &'static str, words: &[(&'static str, T)]) -> Result<Option<T>, ProfileError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let said = value.get_ref().as_str();
        if let Some((_, meaning)) = words.iter().find(|(word, _)| said == Some(word)) {
            return Ok(Some(*meaning));
        }
        let known = words.iter().map(|(word, _)| *word).collect();
        Err(self.wrong(key, value, Expected::OneOf(known)))
    }

    fn environment(&self) -> Result<ProfileEnv, ProfileError> {
        self.only(&ENV)?;
        let env = ProfileEnv {
            inherit: self.word("inherit", &INHERITS)?,
            keep: self.names("keep")?,
            drop: self.names("drop")?,
        };
        match self.get("drop") {
            Some(value) if env.drop.iter().any(|name| env.keep.contains(name)) => {
                Err(self.wrong("drop", value, Expected::NotKept))
            }
            _ => Ok(env),
        }
    }

    /// A list of names of variables; empty when the key is not there.
    fn names(&self, key: &'static str) -> Result<Vec<OsString>, ProfileError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let wrong = |value| self.wrong(key, value, Expected::Names);
        let list = value.get_ref().as_array().ok_or_else(|| wrong(value))?;
        list.iter()
            .map(|item| match item.get_ref().as_str() {
                Some(name) if unusable(OsStr::new(name)).is_none() => Ok(name.into()),
                _ => Err(wrong(item)),
            })
            .collect()
    }

    fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table
            .iter()
            .find(|(known, _)| known.get_ref().as_ref() == key)
            .map(|(_, value)| value)
    }

    fn missing(&self, key: &'static str) -> ProfileError {
        ProfileError::MissingKey {
            place: self.place(self.span.clone()),
            section: self.name,
            key,
        }
    }

    fn wrong(&self, key: &'static str, value: &Spanned<DeValue<'_>>, expected: Expected) -> ProfileError {
        // A value may be a page long; its beginning is enough to find it.
        let shown = self
            .text
            .get(value.span())
            .and_then(|value| value.lines().next())
            .unwrap_or_default();
        ProfileError::WrongValue {
            place: self.place(value.span()),
            section: self.name,
            key,
            value: shown.chars().take(SHOWN).collect(),
            expected,
        }
    }

    fn place(&self, span: Range<usize>) -> Place {
        place(self.file, self.text, span)
    }
}

fn place(file: &Path, text: &str, span: Range<usize>) -> Place {
    let before = text.as_bytes().iter().take(span.start);
    Place {
        file: file.to_owned(),
        line: 1 + before.filter(|byte| **byte == b'\n').count(),
    }
}
