//! What a grant is bound to: made when it is asked for, made anew when it is used, and compared.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use sha2::{Digest, Sha256};

pub use crate::error::Bound;

/// The version of the digest's input.
const SCHEMA: u32 = 1;

/// Programs of up to this size are known by their content as well.
pub const MAX_HASHED: u64 = 64 * 1024 * 1024;

/// A directory, by its name and by what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its path.
    pub path: PathBuf,
    /// `st_dev` of stat(2).
    pub device: u64,
    /// `st_ino` of stat(2).
    pub inode: u64,
}

/// A program's file, by its name, by what it is, and by what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    /// Its path.
    pub path: PathBuf,
    /// `st_dev` of stat(2).
    pub device: u64,
    /// `st_ino` of stat(2).
    pub inode: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub modified: i128,
    /// The SHA-256 digest of its content; absent where it is larger than [`MAX_HASHED`] or may not be read.
    pub sha256: Option<[u8; 32]>,
}

impl Executable {
    /// Looks at a file.
    ///
    /// # Errors
    /// The operating system's; a file that may be executed and not read is no error.
    pub fn examine(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let opened = nix::fcntl::open(path, flags, Mode::empty()).map(File::from);
        let about = match &opened {
            Ok(file) => file.metadata()?,
            Err(_) => std::fs::metadata(path)?,
        };
        if !about.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let sha256 = match opened {
            Ok(file) if about.len() <= MAX_HASHED => Some(content(file)?),
            _ => None,
        };
        Ok(Self {
            path: path.to_owned(),
            device: about.dev(),
            inode: about.ino(),
            size: about.len(),
            modified: i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec()),
            sha256,
        })
    }
}

fn content(file: File) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut file = file.take(MAX_HASHED + 1);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(count) => hash.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Everything a grant is bound to. Of the environment only a digest is kept, and of the whole only a
/// digest leaves this process: with the nonce in it nothing can be guessed from that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The program and its arguments, as they will be executed.
    pub argv: Vec<OsString>,
    /// The working directory.
    pub workdir: Place,
    /// The digest of the command's environment: [`environment`].
    pub environment: [u8; 32],
    /// The program's file.
    pub executable: Executable,
    /// What standard input is, in a text that names its kind and identity.
    pub stdin: String,
    /// The policy of the finished run, in a canonical text.
    pub policy: String,
    /// What is to be looser, in a canonical text.
    pub difference: String,
    /// The boot of the host: [`super::clock::Moment::now`] tells it.
    pub boot: String,
    /// Who asks.
    pub uid: u32,
    /// The finished run.
    pub run: String,
    /// Random bytes of this request alone: [`nonce`].
    pub nonce: [u8; 32],
}

impl Binding {
    /// The SHA-256 digest of all of it, each part with its length before it.
    #[must_use]
    pub fn digest(&self) -> Digested {
        let mut parts = Parts(Sha256::new());
        parts.bytes(b"ringfence approval");
        parts.number(SCHEMA.into());
        parts.number(self.argv.len() as u64);
        for word in &self.argv {
            parts.bytes(word.as_bytes());
        }
        parts.bytes(self.workdir.path.as_os_str().as_bytes());
        parts.number(self.workdir.device);
        parts.number(self.workdir.inode);
        parts.bytes(&self.environment);
        let executable = &self.executable;
        parts.bytes(executable.path.as_os_str().as_bytes());
        parts.number(executable.device);
        parts.number(executable.inode);
        parts.number(executable.size);
        parts.bytes(&executable.modified.to_be_bytes());
        parts.bytes(executable.sha256.as_ref().map_or(&[][..], |it| &it[..]));
        for text in [&self.stdin, &self.policy, &self.difference, &self.boot] {
            parts.bytes(text.as_bytes());
        }
        parts.number(self.uid.into());
        parts.bytes(self.run.as_bytes());
        parts.bytes(&self.nonce);
        Digested(parts.0.finalize().into())
    }

    /// The first thing in which `other` differs.
    #[must_use]
    pub fn first_change(&self, other: &Self) -> Option<Bound> {
        let same = [
            (Bound::Boot, self.boot == other.boot),
            (Bound::User, self.uid == other.uid),
            (Bound::Run, self.run == other.run),
            (Bound::Argv, self.argv == other.argv),
            (Bound::WorkingDirectory, self.workdir == other.workdir),
            (Bound::Executable, self.executable == other.executable),
            (Bound::Environment, self.environment == other.environment),
            (Bound::Stdin, self.stdin == other.stdin),
            (Bound::Policy, self.policy == other.policy),
            (Bound::Difference, self.difference == other.difference),
            (Bound::Nonce, self.nonce == other.nonce),
        ];
        // Whatever is added to the digest and forgotten above is found all the same.
        let forgotten = (Bound::Schema, self.digest() == other.digest());
        same.into_iter()
            .chain([forgotten])
            .find(|(_, same)| !same)
            .map(|(what, _)| what)
    }
}

/// The digest of a command's variables, in whatever order they come.
#[must_use]
pub fn environment(variables: &[(OsString, OsString)]) -> [u8; 32] {
    let mut sorted: Vec<(&OsStr, &OsStr)> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
    sorted.sort_unstable();
    let mut parts = Parts(Sha256::new());
    parts.bytes(b"ringfence environment");
    for (name, value) in sorted {
        parts.bytes(name.as_bytes());
        parts.bytes(value.as_bytes());
    }
    parts.0.finalize().into()
}

/// Random bytes for one request.
///
/// # Errors
/// The operating system's.
pub fn nonce() -> io::Result<[u8; 32]> {
    ringfence_backend::descriptor::random()
}

/// The digest of a [`Binding`]; shown as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digested([u8; 32]);

impl std::fmt::Display for Digested {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut hex = String::with_capacity(64);
        for byte in self.0 {
            let _ = write!(hex, "{byte:02x}");
        }
        f.write_str(&hex)
    }
}

impl std::fmt::Debug for Digested {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// Input of a digest in which no two different sequences of parts are the same bytes.
struct Parts(Sha256);

impl Parts {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_be_bytes());
    }
}

#[cfg(test)]
pub(crate) mod tests;
