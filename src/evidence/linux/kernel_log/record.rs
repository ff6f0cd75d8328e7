//! What the records of the log say, and what becomes of them in a report.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use nix::errno::Errno;
use ringfence_backend::calls::{Call, table};

use super::super::ledger::Ledger;
use crate::facts::{Denial, Observed, Operation, Source};

/// `AUDIT_LANDLOCK_ACCESS`, `AUDIT_LANDLOCK_DOMAIN` and `AUDIT_SYSCALL` (linux/audit.h).
const ACCESS: u16 = 1423;
const DOMAIN: u16 = 1424;
const SYSCALL: u16 = 1300;
/// How many accesses wait to be told from those of other domains.
const MOST_WAITING: usize = 10_000;

/// Collects what was refused to one domain.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// The child that makes the domain, and the program that it does so as.
    maker: Option<(i32, PathBuf)>,
    domain: Option<u64>,
    /// Refusals whose domain, or whose caller, may still become known.
    waiting: VecDeque<Access>,
    ledger: Ledger,
}

/// A refused access.
#[derive(Debug)]
struct Access {
    event: String,
    domain: u64,
    blockers: String,
    path: PathBuf,
    caller: Option<Caller>,
}

/// Who was refused, in which call, and what the call returned.
#[derive(Debug)]
struct Caller {
    call: Option<Call>,
    pid: i32,
    program: String,
    errno: Option<Errno>,
}

impl Records {
    pub(super) fn follow(&mut self, child: i32) {
        // The child makes its domain before it executes anything, so as this very program.
        self.maker = std::env::current_exe().ok().map(|program| (child, program));
    }

    /// Takes one record; what is none of ours, or makes no sense, is left out.
    pub(super) fn take(&mut self, kind: u16, body: &[u8]) {
        if !matches!(kind, ACCESS | DOMAIN | SYSCALL) {
            return;
        }
        let text = String::from_utf8_lossy(body);
        let _ = match kind {
            ACCESS => self.access(&text),
            DOMAIN => self.made(&text),
            _ => self.caller(&text),
        };
    }

    fn access(&mut self, text: &str) -> Option<()> {
        let domain = u64::from_str_radix(field(text, "domain")?, 16).ok()?;
        if self.domain.is_some_and(|ours| ours != domain) {
            return None;
        }
        if self.waiting.len() == MOST_WAITING {
            self.settle_first();
        }
        self.waiting.push_back(Access {
            event: event(text)?.to_owned(),
            domain,
            blockers: field(text, "blockers")?.to_owned(),
            path: OsString::from_vec(untrusted(field(text, "path")?)?).into(),
            caller: None,
        });
        Some(())
    }

    /// A domain showed for the first time. A domain of the command's own names another maker.
    fn made(&mut self, text: &str) -> Option<()> {
        let (child, program) = self.maker.as_ref()?;
        let ours = field(text, "status") == Some("allocated")
            && field(text, "pid")?.parse() == Ok(*child)
            && untrusted(field(text, "exe")?)? == program.as_os_str().as_bytes();
        if ours && self.domain.is_none() {
            let domain = u64::from_str_radix(field(text, "domain")?, 16).ok()?;
            self.domain = Some(domain);
            self.waiting.retain(|access| access.domain == domain);
        }
        Some(())
    }

    /// The call of an event, which comes after the event's other records, if it comes at all.
    fn caller(&mut self, text: &str) -> Option<()> {
        let event = event(text)?;
        let refused = self.waiting.iter_mut().rev().take(64);
        for access in refused.filter(|access| access.event == event) {
            let number: i64 = field(text, "syscall")?.parse().ok()?;
            let exit: i32 = field(text, "exit")?.parse().ok()?;
            access.caller = Some(Caller {
                call: table().into_iter().find(|known| known.0 == number).map(|known| known.1),
                pid: field(text, "pid")?.parse().ok()?,
                program: String::from_utf8_lossy(&untrusted(field(text, "comm")?)?).into_owned(),
                errno: (exit < 0).then(|| Errno::from_raw(-exit)),
            });
        }
        Some(())
    }

    /// Writes the oldest access down, if it was refused to our domain and is of a mode's concern.
    fn settle_first(&mut self) {
        let access = self.waiting.pop_front().filter(|it| self.domain == Some(it.domain));
        if let Some(denial) = access.and_then(Access::into_denial) {
            self.ledger.record(denial);
        }
    }

    /// What was refused to the domain; none when there was no such record.
    pub(super) fn finish(mut self) -> Option<Observed> {
        while !self.waiting.is_empty() {
            self.settle_first();
        }
        let (denials, omitted) = self.ledger.finish();
        (!denials.is_empty()).then_some(Observed {
            source: Source::Audit,
            denials,
            omitted,
            unseen: 0,
        })
    }
}

impl Access {
    fn into_denial(self) -> Option<Denial> {
        let call = self.caller.as_ref().and_then(|caller| caller.call);
        let (op, named) = operation(&self.blockers, call)?;
        let path = match named {
            Named::Itself => self.path,
            // With a slash at its end: the name that was to change in there is not in the record.
            Named::Directory => self.path.join(""),
        };
        let (pid, program, errno) = self
            .caller
            .map_or((0, String::new(), None), |it| (it.pid, it.program, it.errno));
        let usual = match op {
            Operation::Mount => Errno::EPERM,
            _ => Errno::EACCES,
        };
        Some(Denial {
            op,
            path,
            program,
            pid,
            errno: errno.unwrap_or(usual),
            count: 1,
        })
    }
}

/// What a record's path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Itself,
    Directory,
}

/// What was attempted, by the rights that were missing; none when it is no effect on a file.
///
/// Only the call tells a link from a rename when the same right is missing for both. Where the
/// kernel does not log it, what was to happen in that one directory is told.
fn operation(blockers: &str, call: Option<Call>) -> Option<(Operation, Named)> {
    let missing: Vec<_> = blockers.split(',').collect();
    let has = |right: &str| missing.iter().any(|it| it.starts_with(right));
    if has("fs.change_topology") {
        return Some((Operation::Mount, Named::Itself));
    }
    let removes = has("fs.remove_");
    let op = match call {
        Some(Call::Rename(..)) if removes || has("fs.make_") || has("fs.refer") => Operation::Rename,
        Some(Call::Link(..)) if has("fs.make_") || has("fs.refer") => Operation::Link,
        _ if removes && (has("fs.make_") || has("fs.refer")) => Operation::Rename,
        _ if missing == ["fs.refer"] => Operation::Link,
        _ if has("fs.make_reg") => Operation::Create,
        _ if has("fs.make_dir") => Operation::Mkdir,
        _ if has("fs.make_sym") => Operation::Symlink,
        _ if has("fs.make_") => Operation::Mknod,
        _ if removes => Operation::Remove,
        _ if has("fs.write_file") => return Some((Operation::Write, Named::Itself)),
        _ if has("fs.truncate") => return Some((Operation::Truncate, Named::Itself)),
        _ => return None,
    };
    Some((op, Named::Directory))
}

/// What joins the records of one event: time and serial number.
fn event(text: &str) -> Option<&str> {
    Some(text.strip_prefix("audit(")?.split_once(')')?.0)
}

/// A field's value as it stands. No value has a space in it.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut words = text.split([' ', '\0', '\n']);
    words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// A text that somebody else chose: in quotes, or in hexadecimal digits when it holds a space, a
/// quote or anything but printable ASCII.
fn untrusted(value: &str) -> Option<Vec<u8>> {
    if let Some(quoted) = value.strip_prefix('"') {
        return Some(quoted.strip_suffix('"')?.as_bytes().to_vec());
    }
    let digit = |byte: &u8| {
        char::from(*byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let pairs = value.as_bytes().chunks(2);
    pairs
        .map(|pair| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?))
        .collect()
}

#[cfg(test)]
mod tests;
