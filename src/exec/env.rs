//! The command's environment: the caller's, filtered, then what was asked for, then ours.

use std::ffi::{OsStr, OsString};

use crate::error::Error;

/// Names of this prefix belong to Ringfence.
const MANAGED: &str = "RINGFENCE_";

/// Parts of a name, between underscores, that mark a credential.
const CREDENTIAL_PARTS: [&str; 9] = [
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// Credentials, and ways to them, whose names have no such part.
const CREDENTIALS: [&str; 12] = [
    "SSH_AUTH_SOCK",
    "GPG_AGENT_INFO",
    "DOCKER_AUTH_CONFIG",
    "MYSQL_PWD",
    "SSHPASS",
    "PGPASSWORD",
    "PGPASSFILE",
    "DB_PASS",
    "GITHUB_PAT",
    "GH_PAT",
    "GITLAB_PAT",
    "BORG_PASSCOMMAND",
];

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
const NO_TERMINAL: [(&str, &str); 4] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
];

/// What the caller wants changed. Explicit entries win over every rule of this module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvChanges {
    /// Entries to set.
    pub set: Vec<(OsString, OsString)>,
    /// Names that the filter lets through.
    pub keep: Vec<OsString>,
    /// Names to leave out.
    pub unset: Vec<OsString>,
}

/// A command's environment, and the names (never the values) that the filter took out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The entries, each name once.
    pub vars: Vec<(OsString, OsString)>,
    /// The names that were removed.
    pub removed: Vec<OsString>,
}

/// Builds a command's environment from the caller's.
///
/// # Errors
/// [`Error::Input`] for a name that is empty, has an `=`, or is Ringfence's own.
pub fn command_environment(
    callers: impl IntoIterator<Item = (OsString, OsString)>,
    changes: &EnvChanges,
    captured: bool,
) -> Result<Environment, Error> {
    let names = changes.set.iter().map(|(name, _)| ("--env", name));
    let names = names.chain(changes.keep.iter().map(|name| ("--keep-env", name)));
    for (option, name) in names.chain(changes.unset.iter().map(|name| ("--unset-env", name))) {
        check_name(option, name)?;
    }
    let mut environment = Environment::default();
    for (name, value) in callers {
        let wanted = changes.keep.contains(&name) && !starts_with(&name, MANAGED);
        if changes.unset.contains(&name) {
            continue;
        }
        if wanted || !is_filtered(&name) {
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
    environment.removed.sort();
    Ok(environment)
}

/// Sets an entry in place of one of the same name.
pub(super) fn put(vars: &mut Vec<(OsString, OsString)>, name: OsString, value: OsString) {
    match vars.iter_mut().find(|(there, _)| *there == name) {
        Some(entry) => entry.1 = value,
        None => vars.push((name, value)),
    }
}

fn check_name(option: &str, name: &OsStr) -> Result<(), Error> {
    let bytes = name.as_encoded_bytes();
    let (reason, hint) = if bytes.is_empty() {
        ("the name is empty", "give a name such as CI")
    } else if bytes.contains(&b'=') {
        (
            "a name cannot contain `=`",
            "give the name alone, or NAME=VALUE with --env",
        )
    } else if bytes.contains(&0) {
        ("a name cannot contain a NUL byte", "leave the NUL byte out")
    } else if starts_with(name, MANAGED) {
        (
            "names that begin with RINGFENCE_ are Ringfence's own",
            "choose another name",
        )
    } else {
        return Ok(());
    };
    Err(Error::input(option, name, reason, hint))
}

/// Whether the filter takes a name out.
fn is_filtered(name: &OsStr) -> bool {
    let text = name.to_string_lossy();
    let upper = text.to_ascii_uppercase();
    STARTUP.contains(&text.as_ref())
        || STARTUP_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
        || upper.starts_with(MANAGED)
        || CREDENTIALS.contains(&upper.as_str())
        || upper.split('_').any(|part| CREDENTIAL_PARTS.contains(&part))
}

fn starts_with(name: &OsStr, prefix: &str) -> bool {
    name.as_encoded_bytes()
        .to_ascii_uppercase()
        .starts_with(prefix.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(callers: &[(&str, &str)], changes: &EnvChanges, captured: bool) -> Environment {
        let callers = callers.iter().map(|(n, v)| (OsString::from(n), OsString::from(v)));
        command_environment(callers, changes, captured).unwrap()
    }

    fn names(environment: &Environment) -> Vec<&str> {
        environment
            .vars
            .iter()
            .map(|(name, _)| name.to_str().unwrap())
            .collect()
    }

    #[test]
    fn credentials_are_taken_out_and_words_that_only_look_like_them_stay() {
        let callers = [
            ("AWS_SECRET_ACCESS_KEY", "1"),
            ("github_token", "2"),
            ("DB_PASSWORD", "3"),
            ("SSH_AUTH_SOCK", "4"),
            ("KEYBOARD", "5"),
            ("TOKENIZERS_PARALLELISM", "6"),
            ("PATH", "7"),
        ];
        let environment = of(&callers, &EnvChanges::default(), false);
        assert_eq!(names(&environment), ["KEYBOARD", "TOKENIZERS_PARALLELISM", "PATH"]);
        assert_eq!(environment.removed.len(), 4);
    }

    #[test]
    fn what_changes_a_shell_before_its_first_line_is_taken_out() {
        let callers = [
            ("BASH_ENV", "x"),
            ("BASH_FUNC_ls%%", "() { :; }"),
            ("LD_PRELOAD", "x"),
            ("HOME", "/h"),
        ];
        assert_eq!(names(&of(&callers, &EnvChanges::default(), false)), ["HOME"]);
    }

    #[test]
    fn explicit_entries_win_over_the_filter() {
        let changes = EnvChanges {
            set: vec![("MY_TOKEN".into(), "given".into()), ("TERM".into(), "xterm".into())],
            keep: vec!["API_KEY".into()],
            unset: vec!["HOME".into()],
        };
        let environment = of(&[("API_KEY", "kept"), ("HOME", "/h")], &changes, true);
        assert!(environment.vars.contains(&("API_KEY".into(), "kept".into())));
        assert!(environment.vars.contains(&("MY_TOKEN".into(), "given".into())));
        assert!(environment.vars.contains(&("TERM".into(), "xterm".into())));
        assert!(!names(&environment).contains(&"HOME"));
    }

    #[test]
    fn stale_managed_names_never_come_through() {
        let changes = EnvChanges {
            keep: vec!["PATH".into()],
            ..EnvChanges::default()
        };
        assert_eq!(
            names(&of(&[("RINGFENCE_RUN_ID", "old"), ("PATH", "p")], &changes, false)),
            ["PATH"]
        );
    }

    #[test]
    fn names_that_make_no_sense_are_refused() {
        for name in ["", "A=B", "RINGFENCE_MODE", "ringfence_mode"] {
            let changes = EnvChanges {
                set: vec![(name.into(), "v".into())],
                ..EnvChanges::default()
            };
            let refused = command_environment([], &changes, false);
            assert!(matches!(refused, Err(Error::Input { .. })), "{name:?}");
        }
    }
}
