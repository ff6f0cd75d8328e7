//! What the runner orders, as bytes for the processes between it and the command.

use std::ffi::OsStr;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;

use crate::{ChildLimit, FileId};

/// What becomes one of the command's standard streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// A descriptor, by its place among those that come along, or by its number.
    Fd(RawFd),
    /// A character device, opened by its name inside the boundary.
    Device { path: Vec<u8>, flags: i32, rdev: u64 },
}

/// How a command is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// `sandbox-exec`, and the profile; nothing when nothing is confined.
    pub(super) sandbox: Option<(Vec<u8>, Vec<u8>)>,
    /// The program that knows the words of this module.
    pub(super) program: Vec<u8>,
    /// Whether the command has a session of its own.
    pub(super) session: bool,
    pub(super) streams: Vec<Stream>,
    /// One more descriptor, as in [`Stream::Fd`], and the number that the command knows it by.
    pub(super) extra: Option<(RawFd, RawFd)>,
    /// Where the launcher tells what came of it; a number.
    pub(super) status: RawFd,
    pub(super) workdir: Vec<u8>,
    pub(super) workdir_id: (u64, u64),
    pub(super) limits: Vec<ChildLimit>,
    pub(super) candidates: Vec<Vec<u8>>,
    pub(super) argv: Vec<Vec<u8>>,
    pub(super) env: Vec<Vec<u8>>,
}

impl Order {
    /// What the working directory must be.
    pub(super) const fn workdir_id(&self) -> FileId {
        FileId {
            device: self.workdir_id.0,
            inode: self.workdir_id.1,
        }
    }

    /// The order as bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = Writer(Vec::new());
        to.flag(self.sandbox.is_some());
        if let Some((program, profile)) = &self.sandbox {
            to.bytes(program);
            to.bytes(profile);
        }
        to.bytes(&self.program);
        to.flag(self.session);
        to.number(self.streams.len() as u64);
        for stream in &self.streams {
            match stream {
                Stream::Fd(number) => {
                    to.flag(false);
                    to.signed(*number);
                }
                Stream::Device { path, flags, rdev } => {
                    to.flag(true);
                    to.bytes(path);
                    to.signed(*flags);
                    to.number(*rdev);
                }
            }
        }
        to.flag(self.extra.is_some());
        if let Some((from, wanted)) = self.extra {
            to.signed(from);
            to.signed(wanted);
        }
        to.signed(self.status);
        to.bytes(&self.workdir);
        to.number(self.workdir_id.0);
        to.number(self.workdir_id.1);
        to.number(self.limits.len() as u64);
        for limit in &self.limits {
            to.signed(limit.resource);
            to.number(limit.soft);
            to.number(limit.hard);
        }
        to.list(&self.candidates);
        to.list(&self.argv);
        to.list(&self.env);
        to.0
    }

    /// Reads an order; `None` for bytes that are none, or that go on after it.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let order = Self {
            sandbox: if from.flag()? {
                Some((from.bytes()?, from.bytes()?))
            } else {
                None
            },
            program: from.bytes()?,
            session: from.flag()?,
            streams: from.many(|from| {
                Some(if from.flag()? {
                    Stream::Device {
                        path: from.bytes()?,
                        flags: from.signed()?,
                        rdev: from.number()?,
                    }
                } else {
                    Stream::Fd(from.signed()?)
                })
            })?,
            extra: if from.flag()? {
                Some((from.signed()?, from.signed()?))
            } else {
                None
            },
            status: from.signed()?,
            workdir: from.bytes()?,
            workdir_id: (from.number()?, from.number()?),
            limits: from.many(|from| {
                Some(ChildLimit {
                    resource: from.signed()?,
                    soft: from.number()?,
                    hard: from.number()?,
                })
            })?,
            candidates: from.many(Reader::bytes)?,
            argv: from.many(Reader::bytes)?,
            env: from.many(Reader::bytes)?,
        };
        from.0.is_empty().then_some(order)
    }
}

/// The bytes of a string of the system.
pub(super) fn bytes_of(text: impl AsRef<OsStr>) -> Vec<u8> {
    text.as_ref().as_bytes().to_vec()
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_ne_bytes());
    }

    fn signed(&mut self, number: i32) {
        self.0.extend(number.to_ne_bytes());
    }

    fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn list(&mut self, list: &[Vec<u8>]) {
        self.number(list.len() as u64);
        for bytes in list {
            self.bytes(bytes);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*bytes))
    }

    fn signed(&mut self) -> Option<i32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i32::from_ne_bytes(*bytes))
    }

    fn flag(&mut self) -> Option<bool> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        match byte {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    fn many<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(read(self)?);
        }
        Some(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            sandbox: Some((b"/usr/bin/sandbox-exec".to_vec(), b"(version 1)\n".to_vec())),
            program: b"/bin/ringfence".to_vec(),
            session: true,
            streams: vec![
                Stream::Device {
                    path: b"/dev/null".to_vec(),
                    flags: 2,
                    rdev: u64::MAX,
                },
                Stream::Fd(0),
                Stream::Fd(-1),
            ],
            extra: Some((3, 9)),
            status: 7,
            workdir: b"/w\xff".to_vec(),
            workdir_id: (1, 2),
            limits: vec![ChildLimit {
                resource: 8,
                soft: 1,
                hard: u64::MAX,
            }],
            candidates: vec![b"/bin/a".to_vec(), Vec::new()],
            argv: vec![b"a".to_vec()],
            env: vec![b"K=V\n".to_vec()],
        }
    }

    #[test]
    fn an_order_arrives_as_it_was_given() {
        for order in [order(), Order::default()] {
            assert_eq!(Order::decode(&order.encode()), Some(order));
        }
    }

    #[test]
    fn what_is_cut_off_or_goes_on_is_no_order() {
        let bytes = order().encode();
        for end in 0..bytes.len() {
            assert_eq!(Order::decode(&bytes[..end]), None, "{end} bytes");
        }
        assert_eq!(Order::decode(&[&bytes[..], &[0]].concat()), None);
    }
}
