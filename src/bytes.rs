//! Bytes in documents: words as text where they are text, base64 where not; digests in hexadecimal.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A word that comes back byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) OsString);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes { base64: String },
}

impl Serialize for Word {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => text.serialize(serializer),
            None => Written::Bytes {
                base64: STANDARD.encode(self.0.as_bytes()),
            }
            .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Text(text) => Ok(Self(text.into())),
            Written::Bytes { base64 } => {
                let bytes = STANDARD.decode(base64).map_err(serde::de::Error::custom)?;
                Ok(Self(OsString::from_vec(bytes)))
            }
        }
    }
}

impl<T: AsRef<OsStr>> From<T> for Word {
    fn from(word: T) -> Self {
        Self(word.as_ref().to_owned())
    }
}

/// The SHA-256 digest of some bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_comes_back_byte_for_byte() {
        for bytes in [&b"plain"[..], b"", b"\xff\xfe", "ü\n".as_bytes()] {
            let word = Word(OsString::from_vec(bytes.to_vec()));
            let written = serde_json::to_string(&word).unwrap();
            assert_eq!(serde_json::from_str::<Word>(&written).unwrap(), word);
        }
    }
}
