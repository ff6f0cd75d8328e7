//! A checkpoint: how many records there are and the root of their tree, in the form of
//! c2sp.org/tlog-checkpoint.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::hash::Hash;
use super::host::host_name;

/// A state of a trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which trail.
    pub origin: String,
    /// How many records.
    pub size: u64,
    /// The root of the Merkle tree over them.
    pub root: Hash,
}

impl Checkpoint {
    /// Its text: three lines.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root.0))
    }

    /// Reads a checkpoint: three lines, and perhaps more that say other things.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
        let number: u64 = size.parse().ok()?;
        let root = STANDARD.decode(root).ok()?;
        let well = !origin.is_empty() && number.to_string() == size;
        well.then_some(Self {
            origin: origin.to_owned(),
            size: number,
            root: Hash(root.try_into().ok()?),
        })
    }
}

/// The name of the trail of a state directory in a checkpoint: the machine, and the place of the directory.
/// It is also the name of a key, so it has neither spaces nor a plus sign.
#[must_use]
pub fn origin(state_dir: &Path) -> String {
    let host: String = host_name()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') {
                c
            } else {
                '-'
            }
        })
        .collect();
    let place = Hash::of(state_dir.as_os_str().as_encoded_bytes()).to_string();
    format!("ringfence/{host}/{}", &place[..16])
}
