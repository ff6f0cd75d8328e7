//! What a reaper tells its runner: frames of eight bytes, one of them followed by text.

use std::io::{self, Read, Write};

use crate::Containment;
use crate::descriptor::End;
use crate::status::{Failure, Record, Stage};

/// The size of a frame, without its text.
pub(super) const FRAME: usize = 8;
/// The longest text that is taken from whoever failed to start a command, in bytes.
pub(super) const LONGEST: usize = 4096;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The boundary stands, and the command runs.
    Started { command: i32, containment: Containment },
    /// A step failed; the command never ran.
    Failed(Failure),
    /// Whoever was to start the command ended instead, and said this.
    Vanished(Vec<u8>),
    /// The command was stopped.
    Stopped,
    /// The command has ended.
    Ended(End),
    /// No process of the run is left; so many were there when the command had ended, if anybody could
    /// count them.
    Gone(Option<u32>),
}

impl Frame {
    pub(super) fn encode(&self) -> Vec<u8> {
        let frame = |kind: u8, code: u8, number: i32| {
            let n = number.to_ne_bytes();
            vec![kind, code, 0, 0, n[0], n[1], n[2], n[3]]
        };
        match self {
            Self::Started { command, containment } => {
                frame(b'S', u8::from(*containment == Containment::ProcessGroup), *command)
            }
            Self::Failed(failure) => Record::Failed(*failure).encode().to_vec(),
            Self::Vanished(text) => {
                let text = &text[..text.len().min(LONGEST)];
                let mut bytes = frame(b'V', 0, i32::try_from(text.len()).unwrap_or(0));
                bytes.extend(text);
                bytes
            }
            Self::Stopped => frame(b'T', 0, 0),
            Self::Ended(End::Exited(status)) => frame(b'E', 0, *status),
            Self::Ended(End::Killed(signal)) => frame(b'E', 1, *signal),
            Self::Gone(found) => frame(
                b'G',
                u8::from(found.is_some()),
                found.map_or(0, |found| i32::try_from(found).unwrap_or(i32::MAX)),
            ),
        }
    }

    /// Reads the next message.
    ///
    /// # Errors
    /// The operating system's; `UnexpectedEof` when nobody is left who could send one.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut bytes = [0; FRAME];
        from.read_exact(&mut bytes)?;
        let frame = Self::decode(bytes).ok_or(io::ErrorKind::InvalidData)?;
        match frame {
            Self::Vanished(_) => {
                let length = i32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
                let mut text = vec![0; usize::try_from(length).unwrap_or(0).min(LONGEST)];
                from.read_exact(&mut text)?;
                Ok(Self::Vanished(text))
            }
            other => Ok(other),
        }
    }

    /// A frame without its text.
    pub(super) fn decode(bytes: [u8; FRAME]) -> Option<Self> {
        if let Some(Record::Failed(failure)) = Record::decode(bytes) {
            return Some(Self::Failed(failure));
        }
        let [kind, code, 0, 0, n0, n1, n2, n3] = bytes else {
            return None;
        };
        let number = i32::from_ne_bytes([n0, n1, n2, n3]);
        Some(match (kind, code) {
            (b'S', 0 | 1) => Self::Started {
                command: number,
                containment: if code == 1 {
                    Containment::ProcessGroup
                } else {
                    Containment::Descendants
                },
            },
            (b'V', 0) => Self::Vanished(Vec::new()),
            (b'T', 0) => Self::Stopped,
            (b'E', 0) => Self::Ended(End::Exited(number)),
            (b'E', 1) => Self::Ended(End::Killed(number)),
            (b'G', 0) => Self::Gone(None),
            (b'G', 1) => Self::Gone(Some(u32::try_from(number).ok()?)),
            _ => return None,
        })
    }

    /// Tells it. A runner that is gone needs nothing more.
    pub(super) fn tell(&self, to: &mut impl Write) {
        let _ = to.write_all(&self.encode());
    }
}

/// What stopped a step.
pub(super) fn failed(stage: Stage) -> impl Fn(io::Error) -> Failure {
    move |error| Failure {
        stage,
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_arrives_as_it_was_sent() {
        let messages = [
            Frame::Started {
                command: 7,
                containment: Containment::ProcessGroup,
            },
            Frame::Started {
                command: 7,
                containment: Containment::Descendants,
            },
            Frame::Failed(Failure {
                stage: Stage::Exec,
                errno: libc::ENOENT,
            }),
            Frame::Vanished(b"sandbox-exec: no".to_vec()),
            Frame::Stopped,
            Frame::Ended(End::Exited(3)),
            Frame::Ended(End::Killed(9)),
            Frame::Gone(Some(2)),
            Frame::Gone(None),
        ];
        let bytes: Vec<u8> = messages.iter().flat_map(Frame::encode).collect();
        let mut from = bytes.as_slice();
        for message in messages {
            assert_eq!(Frame::read(&mut from).unwrap(), message);
        }
        assert!(Frame::read(&mut from).is_err());
    }

    #[test]
    fn bytes_that_are_no_message_are_refused() {
        for bytes in [[0; FRAME], *b"S\x02\0\0\0\0\0\0", *b"E\0\x01\0\0\0\0\0"] {
            assert_eq!(Frame::decode(bytes), None);
        }
    }
}
