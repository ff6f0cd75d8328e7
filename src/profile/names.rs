//! Names of variables: which can be given, and by whom.

use std::ffi::OsStr;

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

/// What is wrong with the name of a variable that a user gives, and what to do.
pub(crate) fn unusable(name: &OsStr) -> Option<(&'static str, &'static str)> {
    malformed(name).or_else(|| {
        is_ringfences(name).then_some((
            "names that begin with RINGFENCE_ are Ringfence's own",
            "choose another name",
        ))
    })
}

/// What keeps a name from being the name of any variable, and what to do.
pub(crate) fn malformed(name: &OsStr) -> Option<(&'static str, &'static str)> {
    let bytes = name.as_encoded_bytes();
    if bytes.is_empty() {
        Some(("the name is empty", "give a name such as CI"))
    } else if bytes.contains(&b'=') {
        Some((
            "a name cannot contain `=`",
            "give the name alone, or NAME=VALUE with --env",
        ))
    } else if bytes.contains(&0) {
        Some(("a name cannot contain a NUL byte", "leave the NUL byte out"))
    } else {
        None
    }
}

/// Whether a name is one that only Ringfence may set.
pub(crate) fn is_ringfences(name: &OsStr) -> bool {
    starts_with(name, MANAGED)
}

/// Whether a variable's name says that its value is a credential, or a way to one.
pub(crate) fn is_credential(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    CREDENTIALS.contains(&upper.as_str()) || upper.split('_').any(|part| CREDENTIAL_PARTS.contains(&part))
}

fn starts_with(name: &OsStr, prefix: &str) -> bool {
    name.as_encoded_bytes()
        .to_ascii_uppercase()
        .starts_with(prefix.as_bytes())
}
