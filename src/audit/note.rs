//! Signing a checkpoint with Ed25519, in the form of c2sp.org/signed-note, so that others can verify it
//! with programs of their own.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use ringfence_backend::descriptor;

use super::hash::Hash;

/// The number of Ed25519 in a key.
const ED25519: u8 = 1;

/// What begins a private key.
const PRIVATE: &str = "PRIVATE+KEY+";

/// A text and the signatures under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The text, with the newline at its end.
    pub text: String,
    signatures: Vec<(String, u32, Vec<u8>)>,
}

impl Note {
    /// Reads a signed text, or one that nobody has signed.
    #[must_use]
    pub fn parse(note: &str) -> Option<Self> {
        let Some(at) = note.rfind("\n\n") else {
            return Some(Self {
                text: note.to_owned(),
                signatures: Vec::new(),
            });
        };
        let (text, below) = (&note[..=at], &note[at + 2..]);
        let signature = |line: &str| {
            let (name, packed) = line.strip_prefix("— ")?.split_once(' ')?;
            let packed = STANDARD.decode(packed).ok()?;
            let (id, bytes) = packed.split_first_chunk::<4>()?;
            Some((name.to_owned(), u32::from_be_bytes(*id), bytes.to_vec()))
        };
        Some(Self {
            text: text.to_owned(),
            signatures: below.lines().map(signature).collect::<Option<_>>()?,
        })
    }
}

/// Whether a key can have this name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(|c| c.is_whitespace() || c == '+')
}

fn key_id(name: &str, key: &VerifyingKey) -> u32 {
    let hash = Hash::of_all(&[name.as_bytes(), b"\n", &[ED25519], key.as_bytes()]);
    u32::from_be_bytes([hash.0[0], hash.0[1], hash.0[2], hash.0[3]])
}

/// The 32 bytes of a key from `id+base64`, and its id.
fn unpack(text: &str) -> Option<(u32, [u8; 32])> {
    let (id, packed) = text.split_once('+')?;
    let id = (id.len() == 8).then(|| u32::from_str_radix(id, 16).ok())??;
    let packed = STANDARD.decode(packed).ok()?;
    let (kind, key) = packed.split_first()?;
    (*kind == ED25519).then_some((id, key.try_into().ok()?))
}

fn pack(key: &[u8; 32]) -> String {
    let mut bytes = vec![ED25519];
    bytes.extend_from_slice(key);
    STANDARD.encode(bytes)
}

/// A private key, and its name.
#[derive(Clone, Debug)]
pub struct Signer {
    name: String,
    key: SigningKey,
}

impl Signer {
    /// A fresh key.
    ///
    /// # Errors
    /// The operating system's, when it gives no random bytes.
    pub fn generate(name: &str) -> std::io::Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            key: SigningKey::from_bytes(&descriptor::random()?),
        })
    }

    /// Reads a key as [`text`](Self::text) writes it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.trim_end().strip_prefix(PRIVATE)?.split_once('+')?;
        let (id, seed) = unpack(rest)?;
        let key = SigningKey::from_bytes(&seed);
        let well = is_name(name) && key_id(name, &key.verifying_key()) == id;
        well.then(|| Self {
            name: name.to_owned(),
            key,
        })
    }

    /// The private key, one line.
    #[must_use]
    pub fn text(&self) -> String {
        let id = key_id(&self.name, &self.key.verifying_key());
        format!("{PRIVATE}{}+{id:08x}+{}\n", self.name, pack(self.key.as_bytes()))
    }

    /// The name, which is the origin of the checkpoints that are signed with it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key with which others verify.
    #[must_use]
    pub fn verifier(&self) -> String {
        let key = self.key.verifying_key();
        format!(
            "{}+{:08x}+{}",
            self.name,
            key_id(&self.name, &key),
            pack(key.as_bytes())
        )
    }

    /// A text, which ends with a newline, and the signature under it.
    #[must_use]
    pub fn sign(&self, text: &str) -> String {
        let id = key_id(&self.name, &self.key.verifying_key());
        let mut packed = id.to_be_bytes().to_vec();
        packed.extend_from_slice(&self.key.sign(text.as_bytes()).to_bytes());
        format!("{text}\n— {} {}\n", self.name, STANDARD.encode(packed))
    }
}

/// A public key, and its name.
#[derive(Clone, Debug)]
pub struct Verifier {
    name: String,
    id: u32,
    key: VerifyingKey,
}

impl Verifier {
    /// Reads a key as [`Signer::verifier`] writes it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.trim_end().split_once('+')?;
        let (id, key) = unpack(rest)?;
        let key = VerifyingKey::from_bytes(&key).ok()?;
        let well = is_name(name) && key_id(name, &key) == id;
        well.then(|| Self {
            name: name.to_owned(),
            id,
            key,
        })
    }

    /// Whether a note has a good signature of this key.
    #[must_use]
    pub fn verifies(&self, note: &Note) -> bool {
        let mut own = note
            .signatures
            .iter()
            .filter(|(name, id, _)| *name == self.name && *id == self.id);
        own.any(|(_, _, bytes)| {
            Signature::from_slice(bytes)
                .is_ok_and(|signature| self.key.verify_strict(note.text.as_bytes(), &signature).is_ok())
        })
    }
}

#[cfg(test)]
mod tests;
