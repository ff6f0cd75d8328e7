//! From the text of a deployment file to what it says.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::SignedDuration;
use ringfence_backend::{Require, SandboxMode};

use super::approval::{Answerer, ApprovalPolicy, Looseness, Reject, Rejected};
use super::error::ConfigError;
use super::layer::{Layer, Origin};
use super::said::Said;
use super::{Recording, error::Key};
use crate::tables::{Expected, Kind, Section, Source, TableError};

const TOP: [&str; 6] = ["schema", "mode", "ceiling", "require", "audit", "approval"];
const APPROVAL: [&str; 9] = [
    "policy",
    "answerers",
    "hook",
    "hook_timeout",
    "notify",
    "request_ttl",
    "grant_ttl",
    "max_looseness",
    "reject",
];
const REJECT: [&str; 4] = ["name", "write", "mode", "reason"];
/// What the file of a workspace cannot say: it could only be looser, or have its author's programs run.
const NOT_OF_WORKSPACES: [&str; 6] = [
    "hook",
    "hook_timeout",
    "notify",
    "request_ttl",
    "grant_ttl",
    "max_looseness",
];

const MODES: [(&str, SandboxMode); 3] = [
    (SandboxMode::ReadOnly.name(), SandboxMode::ReadOnly),
    (SandboxMode::WorkspaceWrite.name(), SandboxMode::WorkspaceWrite),
    (SandboxMode::DangerFullAccess.name(), SandboxMode::DangerFullAccess),
];
const REQUIRES: [(&str, Require); 2] = [("partial", Require::Partial), ("full", Require::Full)];
const RECORDINGS: [(&str, Recording); 3] = [
    (Recording::Off.name(), Recording::Off),
    (Recording::On.name(), Recording::On),
    (Recording::Required.name(), Recording::Required),
];
const POLICIES: [(&str, ApprovalPolicy); 2] = [("ask", ApprovalPolicy::Ask), ("never", ApprovalPolicy::Never)];
const ANSWERERS: [(&str, Answerer); 3] = [
    ("tty", Answerer::Tty),
    ("queue", Answerer::Queue),
    ("hook", Answerer::Hook),
];
const LOOSENESSES: [(&str, Looseness); 3] = [
    ("extra-roots", Looseness::ExtraRoots),
    ("mode", Looseness::Mode),
    ("full-access", Looseness::FullAccess),
];

/// The shortest and the longest time that can be asked for.
const TIMES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_hours(7 * 24));

/// Reads the text of a file. `home` is what a `~` means.
pub(super) fn layer(origin: Origin, file: &Path, text: &str, home: Option<&Path>) -> Result<Layer, ConfigError> {
    let kind = Kind::Deployment;
    let source = Source { kind, file, text };
    let document = source.parse()?;
    let top = source.top(&document)?;
    top.only(&TOP)?;
    let layer = Layer {
        mode: word(&top, "mode", &MODES)?,
        ceiling: word(&top, "ceiling", &MODES)?,
        require: word(&top, "require", &REQUIRES)?,
        audit: word(&top, "audit", &RECORDINGS)?,
        ..Layer::empty(origin)
    };
    match top.section("approval", "approval")? {
        Some(section) => approval(layer, &section, home),
        None => Ok(layer),
    }
}

fn approval(layer: Layer, section: &Section<'_>, home: Option<&Path>) -> Result<Layer, ConfigError> {
    section.only(&APPROVAL)?;
    let mut theirs = NOT_OF_WORKSPACES.iter();
    if layer.origin == Origin::Workspace
        && let Some(key) = theirs.find(|key| section.get(key).is_some())
    {
        return Err(ConfigError::NotOfWorkspaces {
            place: section.place_of(key),
            key: Key::approval(key),
        });
    }
    let answerers = section.words("answerers", &ANSWERERS)?;
    let answerers = answerers.map(|value| Said {
        value,
        place: section.place_of("answerers"),
    });
    Ok(Layer {
        policy: word(section, "policy", &POLICIES)?,
        answerers,
        hook: program(section, "hook")?,
        notify: program(section, "notify")?,
        hook_timeout: time(section, "hook_timeout")?,
        request_ttl: time(section, "request_ttl")?,
        grant_ttl: time(section, "grant_ttl")?,
        max_looseness: word(section, "max_looseness", &LOOSENESSES)?,
        reject: rules(section, home)?,
        ..layer
    })
}

fn word<T: Copy>(
    section: &Section<'_>,
    key: &'static str,
    words: &[(&'static str, T)],
) -> Result<Option<Said<T>>, TableError> {
    let value = section.word(key, words)?;
    let place = section.place_of(key);
    Ok(value.map(|value| Said { value, place }))
}

/// A program by its absolute path, and its arguments.
fn program(section: &Section<'_>, key: &'static str) -> Result<Option<Said<Vec<String>>>, TableError> {
    let Some(value) = section.get(key) else { return Ok(None) };
    let wrong = |value| section.wrong(key, value, Expected::Program);
    let list = value.get_ref().as_array().ok_or_else(|| wrong(value))?;
    let words = list.iter().map(|word| match word.get_ref().as_str() {
        Some(text) if !text.contains('\0') => Ok(text.to_owned()),
        _ => Err(wrong(word)),
    });
    let words = words.collect::<Result<Vec<_>, _>>()?;
    if !words.first().is_some_and(|program| Path::new(program).is_absolute()) {
        return Err(wrong(value));
    }
    Ok(Some(Said {
        value: words,
        place: section.place_of(key),
    }))
}

fn time(section: &Section<'_>, key: &'static str) -> Result<Option<Said<Duration>>, TableError> {
    let Some(value) = section.get(key) else { return Ok(None) };
    let parsed = value
        .get_ref()
        .as_str()
        .and_then(|text| text.parse::<SignedDuration>().ok());
    let length = parsed.and_then(|signed| Duration::try_from(signed).ok());
    match length.filter(|length| (TIMES.0..=TIMES.1).contains(length)) {
        Some(value) => Ok(Some(Said {
            value,
            place: section.place_of(key),
        })),
        None => Err(section.wrong(key, value, Expected::Duration)),
    }
}

fn rules(section: &Section<'_>, home: Option<&Path>) -> Result<Vec<Reject>, ConfigError> {
    let mut rules: Vec<Reject> = Vec::new();
    for table in section.sections("reject", "approval.reject")? {
        table.only(&REJECT)?;
        let text = |key| table.text(key)?.ok_or_else(|| table.missing(key));
        let name = text("name")?;
        if rules.iter().any(|rule| rule.name == name) {
            return Err(table.wrong("name", table.required("name")?, Expected::NewName).into());
        }
        let what = match (table.get("write"), table.word("mode", &MODES)?) {
            (Some(value), Some(_)) => return Err(table.wrong("write", value, Expected::Instead("mode")).into()),
            (None, Some(mode)) => Rejected::Mode(mode),
            (Some(_), None) => Rejected::Write(prefix(&table, &text("write")?, home)?),
            (None, None) => return Err(table.missing("write").into()),
        };
        rules.push(Reject {
            name,
            what,
            reason: text("reason")?,
            said_in: table.place_of("name"),
        });
    }
    Ok(rules)
}

/// A path from the root on, or from the home.
fn prefix(table: &Section<'_>, text: &str, home: Option<&Path>) -> Result<PathBuf, ConfigError> {
    if let Ok(rest) = Path::new(text).strip_prefix("~") {
        let place = table.place_of("write");
        return home
            .map(|home| home.components().chain(rest.components()).collect())
            .ok_or(ConfigError::NoHome { place });
    }
    let path = Path::new(text);
    if path.is_absolute() && !path.components().any(|part| part == std::path::Component::ParentDir) {
        return Ok(path.components().collect());
    }
    Err(table.wrong("write", table.required("write")?, Expected::Path).into())
}
