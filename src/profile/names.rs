//! Names of variables: which can be given, and by whom.

use std::ffi::OsStr;

/// Names of this prefix belong to Ringfence.
const MANAGED: &str = "RINGFENCE_";

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

fn starts_with(name: &OsStr, prefix: &str) -> bool {
    name.as_encoded_bytes()
        .to_ascii_uppercase()
        .starts_with(prefix.as_bytes())
}
