//! SHA-256, as the trail uses it: over a line for the chain, over leaves and nodes for the tree.

use std::fmt;

use sha2::{Digest, Sha256};

/// A SHA-256 hash, in hexadecimal when shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// What the first record names as the one before.
    pub const ZERO: Self = Self([0; 32]);

    /// The hash of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The hash of several stretches of bytes as one.
    pub(super) fn of_all(parts: &[&[u8]]) -> Self {
        let mut running = Running::default();
        for part in parts {
            running.add(part);
        }
        running.finish()
    }

    /// Reads 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.as_chunks::<2>().0) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Some(Self(hash))
    }
}

const fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&crate::bytes::hex(&self.0))
    }
}

/// A hash of bytes that come one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Running(Sha256);

impl Running {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> Hash {
        Hash(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = Hash::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.to_string(), text);
        assert_eq!(Hash::parse(text), Some(hash));
        assert_eq!(Hash::of_all(&[b"a", b"bc"]), hash);
        for wrong in ["", &text[1..], &text.to_uppercase(), &text.replace('b', "g")] {
            assert_eq!(Hash::parse(wrong), None, "{wrong}");
        }
    }
}
