//! Why a file is refused, and what was probably meant.

use std::fmt;
use std::path::PathBuf;

/// How alike two words must be for one to be taken for a slip of the other; 1 is equal.
const ALIKE: f64 = 0.7;

/// What kind of file something stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A profile.
    Profile,
    /// A deployment file.
    Deployment,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Profile => "profile",
            Self::Deployment => "deployment file",
        })
    }
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was given.
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
    /// A list of tables of this name.
    Tables(&'static str),
    /// A list.
    List,
    /// Text that is not blank.
    Text,
    /// One of these words.
    OneOf(Vec<&'static str>),
    /// A list of names that a variable can have and that are not Ringfence's own.
    Names,
    /// Names that the profile does not keep.
    NotKept,
    /// A time with its unit.
    Duration,
    /// A program by its absolute path, and its arguments.
    Program,
    /// A path from the root on, or from the home.
    Path,
    /// No more than one of two keys, of which this is the other.
    Instead(&'static str),
    /// A name that no other has.
    NewName,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Schema => "the schema that is read here is 1",
            Self::Table => "it has to be a table",
            Self::Tables(_) => "it has to be a list of tables",
            Self::List => "it has to be a list",
            Self::Text => "it has to be some text",
            Self::OneOf(_) => "it is none of the words for this key",
            Self::Names => "it has to be a list of names of variables",
            Self::NotKept => "a name is both kept and dropped",
            Self::Duration => "it has to be a time of at least a second and at most a week",
            Self::Program => "it has to be a program by its absolute path, and its arguments",
            Self::Path => "it has to be a path that begins with `/` or `~/`",
            Self::Instead(other) => return write!(f, "it cannot stand beside `{other}`"),
            Self::NewName => "another one has that name",
        })
    }
}

/// A file that says something it cannot mean.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file is not TOML.
    #[error("{kind} {place}: {reason}")]
    Syntax {
        /// The kind of file.
        kind: Kind,
        /// Where.
        place: Place,
        /// What the parser says.
        reason: String,
    },
    /// A key that there is not.
    #[error("{kind} {place}: there is no key {:?}", full(*section, key))]
    UnknownKey {
        /// The kind of file.
        kind: Kind,
        /// Where.
        place: Place,
        /// The table it stands in; absent for the top.
        section: Option<&'static str>,
        /// The key.
        key: String,
        /// The keys that there are.
        known: &'static [&'static str],
    },
    /// A key that has to be there.
    #[error("{kind} {place}: the key {:?} is missing", full(*section, key))]
    MissingKey {
        /// The kind of file.
        kind: Kind,
        /// The table in which it is missed.
        place: Place,
        /// The table's name; absent for the top.
        section: Option<&'static str>,
        /// The key.
        key: &'static str,
    },
    /// A value that means nothing.
    #[error("{kind} {place}: {} = {value}: {expected}", full(*section, key))]
    WrongValue {
        /// The kind of file.
        kind: Kind,
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
}

impl TableError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Syntax { kind, .. } => format!("a {kind} is a TOML file; mend the line and try again"),
            Self::UnknownKey {
                kind,
                section,
                key,
                known,
                ..
            } => {
                let table = section.map_or_else(|| format!("a {kind}"), |section| format!("[{section}]"));
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
                kind,
                ..
            } => format!("begin the {kind} with `schema = 1`"),
            Self::MissingKey {
                section: None,
                key,
                kind,
                ..
            } => format!("add `{key}` to the {kind}"),
            Self::WrongValue {
                kind,
                value,
                key,
                expected,
                ..
            } => expected.hint(*kind, key, value),
        }
    }
}

impl Expected {
    fn hint(&self, kind: Kind, key: &str, value: &str) -> String {
        match self {
            Self::OneOf(words) => {
                let said = value.trim_matches(['"', '\'']);
                suggest(said, words, &format!("the words are {}", list(words)))
            }
            Self::Schema => {
                format!("begin the {kind} with `schema = 1`, or use a Ringfence that reads this schema")
            }
            Self::Table => format!("begin the table with [{key}]"),
            Self::Tables(name) => format!("begin each of its tables with [[{name}]]"),
            Self::List => format!("write it as in `{key} = [\"…\"]`"),
            Self::Names => format!(
                "write it as in `{key} = [\"CI\"]`; a name has no `=`, and those that begin with RINGFENCE_ \
                 are Ringfence's own"
            ),
            Self::NotKept => "leave the name in one of the two lists".to_owned(),
            Self::Text => format!("give `{key}` a text between quotes"),
            Self::Duration => format!("write it as in `{key} = \"15m\"`"),
            Self::Program => format!("write it as in `{key} = [\"/usr/local/bin/ask\", \"--now\"]`"),
            Self::Path => format!("write it as in `{key} = \"~/.ssh\"`"),
            Self::Instead(_) => "leave one of the two out".to_owned(),
            Self::NewName => "give each a name of its own".to_owned(),
        }
    }
}

/// A key as it is written from the top of the file.
fn full(section: Option<&'static str>, key: &str) -> String {
    section.map_or_else(|| key.to_owned(), |section| format!("{section}.{key}"))
}

/// Asks whether the known word most like `said` was meant, and says what there is.
pub(crate) fn suggest(said: &str, known: &[&'static str], there_are: &str) -> String {
    let scored = known.iter().map(|word| (strsim::jaro_winkler(said, word), word));
    match scored.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((alike, word)) if alike >= ALIKE => format!("did you mean `{word}`? {}", capital(there_are)),
        _ => there_are.to_owned(),
    }
}

/// A sentence that begins with a capital.
fn capital(sentence: &str) -> String {
    let mut rest = sentence.chars();
    rest.next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// Words between commas, and `and` before the last.
pub(crate) fn list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
