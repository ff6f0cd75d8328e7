//! Why a profile is refused, and what was probably meant.

use std::io;
use std::path::PathBuf;

use super::Profile;
use crate::tables::{TableError, list, suggest};

/// A profile that is not there, cannot be read, or says something it cannot mean.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// No profile has that name.
    #[error("there is no profile {name:?}")]
    Unknown {
        /// The name as it was given.
        name: String,
    },
    /// The file cannot be read.
    #[error("the profile {file:?} cannot be read: {source}")]
    Unreadable {
        /// The file as it was given.
        file: PathBuf,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// The file says something it cannot mean.
    #[error(transparent)]
    Content(#[from] TableError),
    /// A file that takes the name of a profile that comes with Ringfence.
    #[error("the profile {file:?} calls itself {name:?}, and a profile of that name comes with Ringfence")]
    NameTaken {
        /// The file as it was given.
        file: PathBuf,
        /// The name.
        name: String,
    },
}

impl ProfileError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { name } => {
                let names: Vec<_> = Profile::names().collect();
                let there_are = format!(
                    "the profiles are {}; a file is named by a path or ends in .toml",
                    list(&names)
                );
                suggest(name, &names, &there_are)
            }
            Self::Unreadable { .. } => "name a text file that you can read".to_owned(),
            Self::Content(error) => error.hint(),
            Self::NameTaken { .. } => "give it a name of its own".to_owned(),
        }
    }
}
