//! Profiles: policy as data, in files that are read and reviewed as files.
//!
//! `profiles/README.md` holds the rules of their naming.

mod error;
pub(crate) mod names;
mod read;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ringfence_backend::{Require, SandboxMode, Temp};

pub use crate::tables::{Expected, Kind, Place, TableError};
pub use error::ProfileError;

/// The profiles that come with Ringfence: name, file, text.
const BUILT_IN: [(&str, &str, &str); 5] = [
    (
        "read-only",
        "profiles/read-only.toml",
        include_str!("../profiles/read-only.toml"),
    ),
    (
        "workspace-write",
        "profiles/workspace-write.toml",
        include_str!("../profiles/workspace-write.toml"),
    ),
    (
        "danger-full-access",
        "profiles/danger-full-access.toml",
        include_str!("../profiles/danger-full-access.toml"),
    ),
    (
        "vcs/git",
        "profiles/vcs/git.toml",
        include_str!("../profiles/vcs/git.toml"),
    ),
    (
        "vcs/git-worktree",
        "profiles/vcs/git-worktree.toml",
        include_str!("../profiles/vcs/git-worktree.toml"),
    ),
];

/// The most that is read of a profile, in bytes: whatever is larger (a device, a wrong file) is no profile.
const LARGEST: u64 = 1024 * 1024;

/// What a profile says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What it is for, for people.
    pub description: String,
    /// The mode.
    pub mode: SandboxMode,
    /// The temp area; absent when it is the one that belongs to the mode.
    pub temp: Option<Temp>,
    /// Paths that stay as they are, taken from the workspace root.
    pub protect: Vec<PathBuf>,
    /// Whether the repository of a linked git worktree may be written, but for what git runs from it.
    pub git_worktree: bool,
    /// Whether the command reaches the network; absent when the profile does not speak of it.
    pub network: Option<bool>,
    /// Whether it can make sockets to other programs of this machine; absent likewise.
    pub unix_sockets: Option<bool>,
    /// How complete the enforcement must be; absent when the profile does not speak of it.
    pub require: Option<Require>,
    /// The command's environment.
    pub env: ProfileEnv,
}

/// What a command inherits of the caller's environment. `RINGFENCE_*` and the variables that a host
/// manages never come through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inherit {
    /// Everything but names that look like credentials and names that change a shell or a loader
    /// before a command's first line.
    #[default]
    Filtered,
    /// Everything, credentials included.
    All,
    /// Nothing.
    None,
}

/// What a profile says of the command's environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileEnv {
    /// What is inherited; absent when the profile does not speak of it.
    pub inherit: Option<Inherit>,
    /// Names that come through in any case.
    pub keep: Vec<OsString>,
    /// Names to leave out.
    pub drop: Vec<OsString>,
}

impl Profile {
    /// The names of the profiles that come with Ringfence, from the strictest to the loosest.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.into_iter().map(|(name, ..)| name)
    }

    /// The profile of that name that comes with Ringfence.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Self> {
        let (_, file, text) = BUILT_IN.into_iter().find(|(known, ..)| *known == name)?;
        // A test reads every file that is built in, so that none is lost here.
        read::profile(Path::new(file), text).ok()
    }
}

/// Loads a profile that comes with Ringfence, by its name, or a file: whatever contains a `/` or
/// ends in `.toml` is a file.
///
/// # Errors
/// [`ProfileError`] when there is no such profile, or the file cannot be read or is not one.
pub fn load(name_or_file: &str) -> Result<Profile, ProfileError> {
    let is_toml = Path::new(name_or_file)
        .extension()
        .is_some_and(|extension| extension == "toml");
    if let Some(profile) = Profile::built_in(name_or_file) {
        return Ok(profile);
    }
    if !name_or_file.contains('/') && !is_toml {
        return Err(ProfileError::Unknown {
            name: name_or_file.to_owned(),
        });
    }
    let file = Path::new(name_or_file);
    let text = text_of(file).map_err(|source| ProfileError::Unreadable {
        file: file.to_owned(),
        source,
    })?;
    let profile = read::profile(file, &text)?;
    // A report that says `read-only` must mean what everybody knows by that name.
    if Profile::names().any(|name| name == profile.name) {
        return Err(ProfileError::NameTaken {
            file: file.to_owned(),
            name: profile.name,
        });
    }
    Ok(profile)
}

fn text_of(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(file)?.take(LARGEST + 1).read_to_string(&mut text)?;
    if read as u64 > LARGEST {
        Err(io::ErrorKind::FileTooLarge.into())
    } else {
        Ok(text)
    }
}
