//! Where things are, as the user's environment has it.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ringfence::policy::open_root;
use ringfence::{Error, WorkspaceRoot};

/// The directory named, else the one the caller is in.
pub(crate) fn workspace(named: Option<&Path>) -> Result<WorkspaceRoot, Error> {
    match named {
        Some(path) => Ok(open_root(path)?),
        // Gone, or out of reach: there is no workspace then, and none is made up.
        None => WorkspaceRoot::open(Path::new(".")).map_err(|source| Error::Workdir {
            path: ".".into(),
            source,
        }),
    }
}

/// The user's home, when the environment names one.
pub(crate) fn home() -> Option<PathBuf> {
    absolute(env::var_os("HOME").as_deref())
}

/// Where Ringfence keeps its own records: `$RINGFENCE_STATE_DIR`, else a directory of its own
/// beneath the XDG state directory. Nothing when the environment names no place.
///
/// # Errors
/// [`Error::Input`] when `$RINGFENCE_STATE_DIR` is relative: it would be another place in each directory.
pub(crate) fn state_dir() -> Result<Option<PathBuf>, Error> {
    const OWN: &str = "RINGFENCE_STATE_DIR";
    if let Some(own) = env::var_os(OWN).filter(|own| !own.is_empty()) {
        return match absolute(Some(&own)) {
            Some(path) => Ok(Some(path)),
            None => Err(Error::Input {
                field: OWN.to_owned(),
                value: own,
                reason: "it is relative, and would be another place in each directory".to_owned(),
                hint: "name it from the root on, or unset it".to_owned(),
            }),
        };
    }
    let xdg = absolute(env::var_os("XDG_STATE_HOME").as_deref()).map(|state| state.join("ringfence"));
    Ok(xdg.or_else(|| home().map(|home| home.join(".local/state/ringfence"))))
}

/// The same, where nothing can be done without it.
///
/// # Errors
/// [`Error::Input`] when it is relative, and when the environment names no place.
pub(crate) fn known_state_dir() -> Result<PathBuf, Error> {
    state_dir()?.ok_or_else(|| Error::Input {
        field: "RINGFENCE_STATE_DIR".to_owned(),
        value: "".into(),
        reason: "neither it nor HOME is set, so no state directory is known".to_owned(),
        hint: "name the state directory of the runs in question in RINGFENCE_STATE_DIR".to_owned(),
    })
}

/// The XDG Base Directory Specification has relative paths ignored.
fn absolute(value: Option<&OsStr>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_place_is_none() {
        assert_eq!(absolute(Some("state".as_ref())), None);
        assert_eq!(absolute(Some("".as_ref())), None);
        assert_eq!(absolute(Some("/state".as_ref())), Some("/state".into()));
    }
}
