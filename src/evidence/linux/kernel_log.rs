//! The kernel's own log of what Landlock refused (Linux 6.15 or newer): read where nobody but
//! another program may watch the calls, and where the operator has switched auditing on.
//!
//! What is in the log was refused. What is not in it may have been refused too: read-only mounts
//! answer before Landlock is asked, filters and dropped capabilities write no such record, and
//! records get lost. So the log proves a denial and never the absence of one.
#![forbid(unsafe_code)]

mod record;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, send, setsockopt, socket,
};

use ringfence_backend::LaunchPlan;

use crate::facts::Observed;
use record::Records;

/// `AUDIT_NLGRP_READLOG` (linux/audit.h), as a mask.
const READ_LOG: u32 = 1;
/// `AUDIT_GET` (linux/audit.h): asks for the status, and carries it.
const AUDIT_GET: u16 = 1000;
/// `NLMSG_ERROR` and `NLM_F_REQUEST` (linux/netlink.h).
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
/// `struct nlmsghdr`: length, kind, flags, sequence number, port.
const HEADER: usize = 16;
/// No record is longer (`MAX_AUDIT_MESSAGE_LENGTH` in linux/audit.h, and its header).
const LONGEST: usize = 9000;
/// Room for what the whole machine logs between two looks, in bytes.
const ROOM: usize = 8 << 20;
/// How many records are read before whoever waits for the run gets a turn.
const AT_ONCE: usize = 256;
/// How long the kernel may take to answer.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long the last records of a run are waited for.
const SETTLE: Duration = Duration::from_millis(200);

/// The log, from before the launch of a command on.
#[derive(Debug)]
pub(crate) struct KernelLog {
    socket: OwnedFd,
    records: Records,
    /// Where the run may change files: a refusal there names only the other side of a link or rename.
    writable: Vec<PathBuf>,
    lost: bool,
}

/// What the kernel says of its auditing (`struct audit_status` in linux/audit.h).
struct Status {
    enabled: bool,
    backlog: u32,
}

impl KernelLog {
    /// Opens the log. Nothing is switched on for it.
    ///
    /// # Errors
    /// Why it is of no use, in a sentence.
    pub(crate) fn open(plan: &LaunchPlan) -> Result<Self, String> {
        let opened = if plan.is_logged() {
            Self::join(plan.writable().map(Path::to_owned).collect())
        } else {
            Err("this kernel's Landlock does not write to it (Linux 6.15 or newer does)".to_owned())
        };
        opened.map_err(|why| format!("the kernel's audit log cannot serve instead: {why}"))
    }

    fn join(writable: Vec<PathBuf>) -> Result<Self, String> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkAudit)
            .map_err(|errno| reason(errno, "this process may not open it"))?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, READ_LOG))
            .map_err(|errno| reason(errno, "reading it needs CAP_AUDIT_READ"))?;
        // More room needs CAP_NET_ADMIN. With less, records may be lost, which is noticed.
        let _ = setsockopt(&socket, RcvBufForce, &ROOM);
        let mut log = Self {
            socket,
            records: Records::default(),
            writable,
            lost: false,
        };
        if log.status()?.enabled {
            Ok(log)
        } else {
            Err("auditing is switched off on this machine".to_owned())
        }
    }

    /// Keeps the records of the domain that this child of ours makes.
    pub(crate) fn follow(&mut self, child: i32) {
        self.records.follow(child);
    }

    /// What to wait for: readable when there are records.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads the records that are there.
    pub(crate) fn read(&mut self) {
        for _ in 0..AT_ONCE {
            let Some((kind, body)) = self.next() else { return };
            self.records.take(kind, &body);
        }
    }

    /// What was seen of a run whose processes have ended.
    ///
    /// # Errors
    /// Why nothing can be said, in a sentence: there was no record.
    pub(crate) fn finish(mut self) -> Result<Observed, String> {
        let over = Instant::now() + SETTLE;
        // A thread of the kernel's hands the records out, a moment after the call was refused.
        while self.status().is_ok_and(|status| status.backlog > 0) && Instant::now() < over {
            sleep(Duration::from_millis(1));
        }
        self.read();
        let lost = if self.lost { ", and some of it was lost" } else { "" };
        let outside = self.records.finish().and_then(|mut seen| {
            seen.denials
                .retain(|denial| !self.writable.iter().any(|root| denial.path.starts_with(root)));
            (!seen.denials.is_empty()).then_some(seen)
        });
        outside.ok_or_else(|| {
            format!("the kernel's audit log has no refusal, which is no proof that there was none{lost}")
        })
    }

    /// Asks for the status, and takes the records that come before the answer.
    fn status(&mut self) -> Result<Status, String> {
        let mut request = [0; HEADER];
        request[..4].copy_from_slice(&16_u32.to_ne_bytes());
        request[4..6].copy_from_slice(&AUDIT_GET.to_ne_bytes());
        request[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
        let control = "asking for its state needs CAP_AUDIT_CONTROL and the machine's own process namespace";
        send(self.socket.as_raw_fd(), &request, MsgFlags::empty()).map_err(|errno| reason(errno, control))?;
        let over = Instant::now() + PATIENCE;
        while Instant::now() < over {
            match self.next() {
                Some((AUDIT_GET, body)) => {
                    let word = |number: usize| {
                        let bytes = body.get(4 * number..4 * number + 4)?.try_into().ok()?;
                        Some(u32::from_ne_bytes(bytes))
                    };
                    return Ok(Status {
                        enabled: word(1).is_some_and(|enabled| enabled != 0),
                        backlog: word(7).unwrap_or(0),
                    });
                }
                Some((NLMSG_ERROR, body)) => {
                    let number = body.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
                    return Err(reason(Errno::from_raw(number.wrapping_neg()), control));
                }
                Some((kind, body)) => self.records.take(kind, &body),
                None => {
                    let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
                    let _ = poll(&mut fds, PollTimeout::from(10_u8));
                }
            }
        }
        Err("the kernel does not say whether auditing is on".to_owned())
    }

    /// The next message of the kernel's: its kind and its content.
    fn next(&mut self) -> Option<(u16, Vec<u8>)> {
        let mut bytes = vec![0; LONGEST];
        loop {
            match recvfrom::<NetlinkAddr>(self.socket.as_raw_fd(), &mut bytes) {
                Ok((length, Some(sender))) if length >= HEADER && sender.pid() == 0 => {
                    let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
                    bytes.truncate(length);
                    return Some((kind, bytes.split_off(HEADER)));
                }
                // Somebody else's.
                Ok(_) | Err(Errno::EINTR) => {}
                Err(Errno::ENOBUFS) => self.lost = true,
                Err(_) => return None,
            }
        }
    }
}

fn reason(errno: Errno, forbidden: &str) -> String {
    match errno {
        Errno::EPERM | Errno::EACCES | Errno::ECONNREFUSED => format!("{forbidden} ({errno:?})"),
        Errno::EPROTONOSUPPORT | Errno::EAFNOSUPPORT => format!("this kernel has none ({errno:?})"),
        other => format!("it cannot be read ({other:?})"),
    }
}
