//! The runner's end of the status channel.
#![allow(unsafe_code)]

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, Shutdown, SockFlag, SockType, UnixCredentials, recv, recvmsg, send,
    shutdown, socketpair,
};

use crate::status::{RECORD, Record, Word};

/// A pair of connected sockets that carry whole records, and descriptors beside them.
pub(crate) fn status_channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?)
}

/// Where records are read.
#[derive(Debug)]
pub(crate) struct Channel(OwnedFd);

/// One record, and what came with it.
#[derive(Debug)]
pub(crate) struct Message {
    /// The record; none for bytes that are none.
    pub(crate) record: Option<Record>,
    /// A descriptor.
    pub(crate) fd: Option<OwnedFd>,
    /// Whether a descriptor was sent and found no room.
    pub(crate) lost: bool,
    /// The process that sent it, if the socket asks for that.
    pub(crate) sender: Option<i32>,
}

impl Channel {
    pub(crate) const fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// What to wait for.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Takes the next message.
    ///
    /// # Errors
    /// `EAGAIN` when there is none yet, and `EPIPE` when nobody is left who could send one.
    pub(crate) fn take(&self) -> Result<Message, Errno> {
        let mut space = nix::cmsg_space!(RawFd, UnixCredentials);
        let mut bytes = [0; RECORD];
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<()>(self.0.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
        let end = message.bytes == 0;
        let lost = message.flags.contains(MsgFlags::MSG_CTRUNC);
        let (mut fd, mut sender) = (None, None);
        for control in message.cmsgs().into_iter().flatten() {
            match control {
                ControlMessageOwned::ScmRights(fds) => {
                    for number in fds {
                        // SAFETY: the kernel just put this descriptor into our table, and nobody else knows it.
                        fd = Some(unsafe { OwnedFd::from_raw_fd(number) });
                    }
                }
                ControlMessageOwned::ScmCredentials(who) => sender = Some(who.pid()).filter(|pid| *pid > 0),
                _ => {}
            }
        }
        if end {
            return Err(Errno::EPIPE);
        }
        Ok(Message {
            record: Record::decode(bytes),
            fd,
            lost,
            sender,
        })
    }

    /// Whether the next message is a record, and not a word of the reaper's.
    pub(crate) fn has_record(&self) -> bool {
        let mut bytes = [0; RECORD];
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        recv(self.0.as_raw_fd(), &mut bytes, flags) == Ok(RECORD)
    }

    /// Takes a word, if there is one.
    pub(crate) fn word(&self) -> Option<Word> {
        let mut byte = [0];
        let got = recv(self.0.as_raw_fd(), &mut byte, MsgFlags::MSG_DONTWAIT);
        let known = [Word::Ended, Word::Stopped];
        known.into_iter().find(|word| got == Ok(1) && *word as u8 == byte[0])
    }

    /// Says the one word there is.
    pub(crate) fn say(&self) {
        // A reaper that is gone needs none.
        let _ = send(self.0.as_raw_fd(), b"s", MsgFlags::MSG_NOSIGNAL);
    }

    /// Says that nothing more will be said to the other end.
    pub(crate) fn shut(&self) {
        // A socket of our own that is connected: it cannot fail in a way that matters.
        let _ = shutdown(self.0.as_raw_fd(), Shutdown::Write);
    }
}
