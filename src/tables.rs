//! TOML files that people write: their tables, read so that every refusal names file, line and key.

mod error;

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use error::{Expected, Kind, Place, TableError};
pub(crate) use error::{list, suggest};

/// The version of the schema that is read.
const SCHEMA: &str = "1";

/// How much of a wrong value is shown, in characters.
const SHOWN: usize = 60;

/// A value, and where it stands.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// A whole file: its name, its text, and what it is called in messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// What kind of file it is.
    pub(crate) kind: Kind,
    /// The file, as it was given.
    pub(crate) file: &'a Path,
    /// Its text.
    pub(crate) text: &'a str,
}

impl<'a> Source<'a> {
    /// Parses the text.
    pub(crate) fn parse(&self) -> Result<Spanned<DeTable<'a>>, TableError> {
        DeTable::parse(self.text).map_err(|error| TableError::Syntax {
            kind: self.kind,
            place: self.place(error.span().unwrap_or_default()),
            reason: error.message().to_owned(),
        })
    }

    /// The file's outermost table, once its schema is known to be the one that is read: a later
    /// schema may have keys that this one does not know.
    pub(crate) fn top(self, document: &'a Spanned<DeTable<'a>>) -> Result<Section<'a>, TableError> {
        let top = Section {
            source: self,
            name: None,
            table: document.get_ref(),
            span: document.span(),
        };
        let value = top.required("schema")?;
        match value.get_ref().as_integer() {
            Some(number) if number.to_string() == SCHEMA => Ok(top),
            _ => Err(top.wrong("schema", value, Expected::Schema)),
        }
    }

    fn place(&self, span: Range<usize>) -> Place {
        let before = self.text.as_bytes().iter().take(span.start);
        Place {
            file: self.file.to_owned(),
            line: 1 + before.filter(|byte| **byte == b'\n').count(),
        }
    }
}

/// One table of a file.
#[derive(Clone, Debug)]
pub(crate) struct Section<'a> {
    source: Source<'a>,
    name: Option<&'static str>,
    table: &'a DeTable<'a>,
    span: Range<usize>,
}

impl<'a> Section<'a> {
    /// Refuses the first key, as the file has them, that is not among `known`.
    pub(crate) fn only(&self, known: &'static [&'static str]) -> Result<(), TableError> {
        let unknown = self.table.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        match unknown.min_by_key(|key| key.span().start) {
            None => Ok(()),
            Some(key) => Err(TableError::UnknownKey {
                kind: self.source.kind,
                place: self.source.place(key.span()),
                section: self.name,
                key: key.get_ref().to_string(),
                known,
            }),
        }
    }

    /// A table in this one that is called `name`, from the top of the file on.
    pub(crate) fn section(&self, key: &'static str, name: &'static str) -> Result<Option<Self>, TableError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        self.table_of(key, value, name).map(Some)
    }

    /// The tables of a list, `[[name]]`; empty when the key is not there.
    pub(crate) fn sections(&self, key: &'static str, name: &'static str) -> Result<Vec<Self>, TableError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let wrong = |value| self.wrong(key, value, Expected::Tables(name));
        let list = value.get_ref().as_array().ok_or_else(|| wrong(value))?;
        list.iter()
            .map(|item| match item.get_ref().as_table() {
                Some(_) => self.table_of(key, item, name),
                None => Err(wrong(item)),
            })
            .collect()
    }

    fn table_of(&self, key: &'static str, value: &'a Value<'a>, name: &'static str) -> Result<Self, TableError> {
        let table = value
            .get_ref()
            .as_table()
            .ok_or_else(|| self.wrong(key, value, Expected::Table))?;
        Ok(Self {
            source: self.source,
            name: Some(name),
            table,
            span: value.span(),
        })
    }

    /// A text that is not blank; absent when the key is not there.
    pub(crate) fn text(&self, key: &'static str) -> Result<Option<String>, TableError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => Ok(Some(text.to_owned())),
            _ => Err(self.wrong(key, value, Expected::Text)),
        }
    }

    /// One of a few words; absent when the key is not there.
    pub(crate) fn word<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&'static str, T)],
    ) -> Result<Option<T>, TableError> {
        self.get(key).map(|value| self.word_of(key, value, words)).transpose()
    }

    fn word_of<T: Copy>(
        &self,
        key: &'static str,
        value: &Value<'_>,
        words: &[(&'static str, T)],
    ) -> Result<T, TableError> {
        let said = value.get_ref().as_str();
        let found = words.iter().find(|(word, _)| said == Some(word));
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let known = words.iter().map(|(word, _)| *word).collect();
            self.wrong(key, value, Expected::OneOf(known))
        })
    }

    /// A list of some of a few words; absent when the key is not there.
    pub(crate) fn words<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&'static str, T)],
    ) -> Result<Option<Vec<T>>, TableError> {
        let items = self.items(key, |value| self.word_of(key, value, words))?;
        Ok(items)
    }

    /// What `read` makes of each item of a list; absent when the key is not there.
    pub(crate) fn items<T>(
        &self,
        key: &'static str,
        read: impl Fn(&Value<'a>) -> Result<T, TableError>,
    ) -> Result<Option<Vec<T>>, TableError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let list = value.get_ref().as_array();
        let list = list.ok_or_else(|| self.wrong(key, value, Expected::List))?;
        list.iter().map(read).collect::<Result<_, _>>().map(Some)
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value<'a>> {
        self.table
            .iter()
            .find(|(known, _)| known.get_ref().as_ref() == key)
            .map(|(_, value)| value)
    }

    /// The value of a key that every such table has.
    pub(crate) fn required(&self, key: &'static str) -> Result<&'a Value<'a>, TableError> {
        self.get(key).ok_or_else(|| self.missing(key))
    }

    /// Where a key's value stands; where the table does, when the key is not there.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        let span = self.get(key).map_or_else(|| self.span.clone(), Value::span);
        self.source.place(span)
    }

    /// A key that is missing here.
    pub(crate) fn missing(&self, key: &'static str) -> TableError {
        TableError::MissingKey {
            kind: self.source.kind,
            place: self.source.place(self.span.clone()),
            section: self.name,
            key,
        }
    }

    /// A value that means nothing.
    pub(crate) fn wrong(&self, key: &'static str, value: &Value<'_>, expected: Expected) -> TableError {
        // A value may be a page long; its beginning is enough to find it.
        let shown = self
            .source
            .text
            .get(value.span())
            .and_then(|value| value.lines().next())
            .unwrap_or_default();
        TableError::WrongValue {
            kind: self.source.kind,
            place: self.source.place(value.span()),
            section: self.name,
            key,
            value: shown.chars().take(SHOWN).collect(),
            expected,
        }
    }
}
