//! From the text of a profile to what it says. Every refusal names its file, line and key.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use ringfence_backend::{Require, SandboxMode, Temp};

use super::Inherit;
use super::names::unusable;
use super::{Profile, ProfileEnv, ProfileError};
use crate::tables::{Expected, Kind, Section, Source, TableError};

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
    let kind = Kind::Profile;
    let source = Source { kind, file, text };
    let document = source.parse()?;
    let top = source.top(&document)?;
    top.only(&TOP)?;
    let policy = top.section("policy", "policy")?.ok_or_else(|| top.missing("policy"))?;
    policy.only(&POLICY)?;
    let text = |key| top.text(key)?.ok_or_else(|| top.missing(key));
    Ok(Profile {
        name: text("name")?,
        description: text("description")?,
        mode: policy.word("mode", &MODES)?.ok_or_else(|| policy.missing("mode"))?,
        temp: policy.word("temp", &TEMPS)?,
        protect: names(&policy, "protect")?.into_iter().map(PathBuf::from).collect(),
        git_worktree: policy.word("git_worktree", &WORKTREES)?.unwrap_or(false),
        network: policy.word("network", &DOORS)?,
        unix_sockets: policy.word("unix_sockets", &DOORS)?,
        require: policy.word("require", &REQUIRES)?,
        env: match top.section("env", "env")? {
            Some(section) => environment(&section)?,
            None => ProfileEnv::default(),
        },
    })
}

fn environment(section: &Section<'_>) -> Result<ProfileEnv, TableError> {
    section.only(&ENV)?;
    let env = ProfileEnv {
        inherit: section.word("inherit", &INHERITS)?,
        keep: names(section, "keep")?,
        drop: names(section, "drop")?,
    };
    match section.get("drop") {
        Some(value) if env.drop.iter().any(|name| env.keep.contains(name)) => {
            Err(section.wrong("drop", value, Expected::NotKept))
        }
        _ => Ok(env),
    }
}

/// A list of names of variables; empty when the key is not there.
fn names(section: &Section<'_>, key: &'static str) -> Result<Vec<OsString>, TableError> {
    let Some(value) = section.get(key) else {
        return Ok(Vec::new());
    };
    let wrong = |value| section.wrong(key, value, Expected::Names);
    let list = value.get_ref().as_array().ok_or_else(|| wrong(value))?;
    list.iter()
        .map(|item| match item.get_ref().as_str() {
            Some(name) if unusable(OsStr::new(name)).is_none() => Ok(name.into()),
            _ => Err(wrong(item)),
        })
        .collect()
}
