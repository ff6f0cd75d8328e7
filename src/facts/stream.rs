//! What a report says of a captured stream.

use std::path::PathBuf;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::path_entry;

/// What is kept of one captured stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedStream {
    /// The end of the stream, as text.
    pub text: String,
    /// Whether bytes are missing from `text`.
    pub truncated: bool,
    /// How many bytes the command wrote.
    pub bytes: u64,
    /// A file with the stream from its beginning, when there is one. `spill` says how much of it.
    pub spill_path: Option<PathBuf>,
    /// Whether bytes that are no UTF-8 were replaced in `text`.
    pub lossy_utf8: bool,
    /// Whether what was kept reads like no text: it has a NUL byte, or more than 30 % of it is no
    /// UTF-8.
    pub binary: bool,
    /// What became of the bytes that `text` has no room for; absent when it has room for all.
    pub spill: Option<Spill>,
}

/// What became of a stream that is longer than what is kept of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum Spill {
    /// The file holds every byte.
    Complete {
        /// The length of the file.
        bytes: u64,
    },
    /// The file has reached its limit and holds the beginning.
    Head {
        /// The length of the file.
        bytes: u64,
    },
    /// The file could not be made or not be written any further.
    Failed {
        /// The length of the file, which holds the beginning; 0 when there is none.
        bytes: u64,
        /// The operating system's reason, such as `ENOSPC`.
        errno: String,
    },
    /// No file was to be made.
    #[serde(rename = "none")]
    Absent {
        /// Why, in a sentence.
        reason: String,
    },
}

impl Serialize for CapturedStream {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("text", &self.text)?;
        map.serialize_entry("truncated", &self.truncated)?;
        map.serialize_entry("bytes", &self.bytes)?;
        match &self.spill_path {
            Some(path) => path_entry(&mut map, "spillPath", path)?,
            None => map.serialize_entry("spillPath", &None::<()>)?,
        }
        map.serialize_entry("lossyUtf8", &self.lossy_utf8)?;
        map.serialize_entry("binary", &self.binary)?;
        map.serialize_entry("spill", &self.spill)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn what_became_of_a_long_stream_is_told_in_one_word_and_its_numbers() {
        let told = |spill: Spill| to_value(spill).unwrap();
        assert_eq!(
            told(Spill::Complete { bytes: 7 }),
            json!({"state": "complete", "bytes": 7})
        );
        assert_eq!(told(Spill::Head { bytes: 7 }), json!({"state": "head", "bytes": 7}));
        let errno = "ENOSPC".to_owned();
        assert_eq!(
            told(Spill::Failed { bytes: 0, errno }),
            json!({"state": "failed", "bytes": 0, "errno": "ENOSPC"})
        );
        let reason = "why".to_owned();
        assert_eq!(
            told(Spill::Absent { reason }),
            json!({"state": "none", "reason": "why"})
        );
    }
}
