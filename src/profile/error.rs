//! Why a profile is refused, and what was probably meant.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::Profile;

/// How alike two words must be for one to be taken for a slip of the other; 1 is equal.
const ALIKE: f64 = 0.7;

/// A line of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The profile's file, as it was given.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.file.display(), self.line)
    }
}

/// What the value of a key has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// The version of the schema that is read.
    Schema,
    /// A table.
    Table,
    /// Text that is not blank.
    Text,
    /// One of these words.
    OneOf(Vec<&'static str>),
    /// A list of names that a variable can have and that are not Ringfence's own.
    Names,
    /// Names that the profile does not keep.
    NotKept,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Schema => "the schema that is read here is 1",
            Self::Table => "it has to be a table",
            Self::Text => "it has to be some text",
            Self::OneOf(_) => "it is none of the words for this key",
            Self::Names => "it has to be a list of names of variables",
            Self::NotKept => "a name is both kept and dropped",
        })
    }
}

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
    /// The file is not TOML.
    #[error("profile {place}: {reason}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the parser says.
        reason: String,
    },
    /// A key that profiles do not have.
    #[error("profile {place}: there is no key {:?}", full(*section, key))]
    UnknownKey {
        /// Where.
        place: Place,
        /// The table it stands in; absent for the top.
        section: Option<&'static str>,
        /// The key.
        key: String,
        /// The keys that there are.
        known: &'static [&'static str],
    },
    /// A key that every profile has.
    #[error("profile {place}: the key {:?} is missing", full(*section, key))]
    MissingKey {
        /// The table in which it is missed.
        place: Place,
        /// The table's name; absent for the top.
        section: Option<&'static str>,
        /// The key.
        key: &'static str,
    },
    /// A value that means nothing.
    #[error("profile {place}: {} = {value}: {expected}", full(*section, key))]
    WrongValue {
        /// Where.
        place: Place,
        /// The table it stands in; absent for the top.
        section: Option<&'static str>,
        /// The key.
        key: &'static str,
        /// The value, as the file has it.
        value: String,
        /// What it has to be.
        expected: Expected,
    },
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
            Self::Syntax { .. } => "a profile is a TOML file; mend the line and try again".to_owned(),
            Self::UnknownKey {
                section, key, known, ..
            } => {
                let table = section.map_or_else(|| "a profile".to_owned(), |section| format!("[{section}]"));
                suggest(key, known, &format!("{table} has the keys {}", list(known)))
            }
            Self::MissingKey {
                section: Some(section),
                key,
                ..
            } => format!("add `{key}` to [{section}]"),
            Self::MissingKey {
                section: None,
                key: "schema",
                ..
            } => "begin the profile with `schema = 1`".to_owned(),
            Self::MissingKey { section: None, key, .. } => format!("add `{key}` to the profile"),
            Self::WrongValue {
                value, key, expected, ..
            } => match expected {
                Expected::OneOf(words) => {
                    let said = value.trim_matches(['"', '\'']);
                    suggest(said, words, &format!("the words are {}", list(words)))
                }
                Expected::Schema => {
                    "begin the profile with `schema = 1`, or use a Ringfence that reads this schema".to_owned()
                }
                Expected::Table => format!("begin the table with [{key}]"),
                Expected::Names => {
                    format!(
                        "write it as in `{key} = [\"CI\"]`; a name has no `=`, and those that begin with RINGFENCE_ \
                         are Ringfence's own"
                    )
                }
                Expected::NotKept => "leave the name in one of the two lists".to_owned(),
                Expected::Text => format!("give `{key}` a text between quotes"),
            },
            Self::NameTaken { .. } => "give it a name of its own".to_owned(),
        }
    }
}

/// A key as it is written from the top of the file.
fn full(section: Option<&'static str>, key: &str) -> String {
    section.map_or_else(|| key.to_owned(), |section| format!("{section}.{key}"))
}

/// Asks whether the known word most like `said` was meant, and says what there is.
fn suggest(said: &str, known: &[&'static str], there_are: &str) -> String {
    let scored = known.iter().map(|word| (strsim::jaro_winkler(said, word), word));
    match scored.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((alike, word)) if alike >= ALIKE => format!("did you mean `{word}`? {}", capital(there_are)),
        _ => there_are.to_owned(),
    }
}

fn capital(sentence: &str) -> String {
    let mut rest = sentence.chars();
    rest.next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

fn list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
