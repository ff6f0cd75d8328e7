//! The command's environment: the caller's, filtered, then what was asked for, then ours.

use std::ffi::{OsStr, OsString};

use super::managed::{ManagedEnv, put};
use crate::error::Error;
pub use crate::profile::Inherit;
use crate::profile::names::{is_credential, is_ringfences, unusable};

/// Variables that change a shell or a loader before a command's first line.
const STARTUP: [&str; 15] = [
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "BASH_XTRACEFD",
    "CDPATH",
    "GLOBIGNORE",
    "IFS",
    "PROMPT_COMMAND",
    "ZDOTDIR",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "OLDPWD",
    "PWD",
];

/// Families of such variables: loaders', and functions that bash exports.
const STARTUP_PREFIXES: [&str; 3] = ["LD_", "DYLD_", "BASH_FUNC_"];

/// What a captured command is told about its terminal, which it does not have.
pub(crate) const NO_TERMINAL: [(&str, &str); 4] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
];

/// What the caller wants changed. Explicit entries win over every rule of this module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvChanges {
    /// What is inherited when nothing else is said of a name.
    pub inherit: Inherit,
    /// Entries to set.
    pub set: Vec<(OsString, OsString)>,
    /// Names that come through in any case.
    pub keep: Vec<OsString>,
    /// Names to leave out.
    pub unset: Vec<OsString>,
}

/// A command's environment, and the names (never the values) of the caller's that it does not get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The entries, each name once.
    pub vars: Vec<(OsString, OsString)>,
    /// The names that were removed.
    pub removed: Vec<OsString>,
}

/// Builds a command's environment from the caller's, which is left as it is.
///
/// A captured command is told that it has no terminal (`NO_COLOR=1 TERM=dumb PAGER=cat
/// GIT_PAGER=cat`), whatever it inherits. What Ringfence and the host's contributors add comes when
/// the run is resolved. With [`Inherit::None`] there is no PATH unless it is kept or set; programs
/// are then looked for in `/usr/local/bin:/usr/bin:/bin`.
///
/// # Errors
/// [`Error::Input`] for a name that is empty, has an `=`, is Ringfence's own, or is managed by the host.
pub fn command_environment(
    callers: impl IntoIterator<Item = (OsString, OsString)>,
    changes: &EnvChanges,
    captured: bool,
    managed: &ManagedEnv,
) -> Result<Environment, Error> {
    let names = changes.set.iter().map(|(name, _)| ("--env", name));
    let names = names.chain(changes.keep.iter().map(|name| ("--keep-env", name)));
    for (option, name) in names.chain(changes.unset.iter().map(|name| ("--unset-env", name))) {
        check_name(option, name, managed)?;
    }
    let mut environment = Environment::default();
    for (name, value) in callers {
        let comes = if is_ringfences(&name) || managed.declares(&name) || changes.unset.contains(&name) {
            false
        } else {
            match changes.inherit {
                Inherit::Filtered => !is_filtered(&name) || changes.keep.contains(&name),
                Inherit::All => true,
                Inherit::None => changes.keep.contains(&name),
            }
        };
        if comes {
            put(&mut environment.vars, name, value);
        } else {
            environment.removed.push(name);
        }
    }
    if captured {
        for (name, value) in NO_TERMINAL {
            let name = OsString::from(name);
            if !changes.unset.contains(&name) && !changes.keep.contains(&name) {
                put(&mut environment.vars, name, value.into());
            }
        }
    }
    for (name, value) in &changes.set {
        put(&mut environment.vars, name.clone(), value.clone());
    }
    let (vars, removed) = (&environment.vars, &mut environment.removed);
    // A name that is set again is not missed.
    removed.retain(|name| vars.iter().all(|(there, _)| there != name));
    removed.sort();
    removed.dedup();
    Ok(environment)
}

fn check_name(option: &str, name: &OsStr, managed: &ManagedEnv) -> Result<(), Error> {
    let (reason, hint) = if let Some(problem) = unusable(name) {
        problem
    } else if managed.declares(name) {
        (
            "the program that runs Ringfence sets it itself",
            "leave it out, or choose another name",
        )
    } else {
        return Ok(());
    };
    Err(Error::input(option, name, reason, hint))
}

/// Whether the filter takes a name out.
fn is_filtered(name: &OsStr) -> bool {
    let text = name.to_string_lossy();
    STARTUP.contains(&text.as_ref())
        || STARTUP_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
        || is_credential(&text)
}

#[cfg(test)]
mod tests;
