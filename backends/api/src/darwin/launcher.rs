//! The process that becomes the command, inside the boundary.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, SFlag, fstat, stat};
use std::os::unix::ffi::OsStrExt;

use super::frame::failed;
use super::order::{Order, Stream};
use super::raw;
use crate::FileId;
use crate::status::{Failure, Record, Stage};

/// Reads what is to be done from the descriptor of this number, and becomes the command. Returns only
/// when it cannot; without a word on the status channel, nobody believes that the command ran.
pub(super) fn main(number: Option<&OsStr>) -> u8 {
    let order = number.and_then(|text| text.to_str()?.parse().ok()).and_then(read);
    let Some(order) = order else { return 125 };
    // Above every number that the command is to have, and never let through.
    let least = order.extra.map_or(3, |(_, wanted)| wanted.saturating_add(1).max(3));
    let Ok(status) = raw::raise(order.status, least) else {
        return 125;
    };
    let mut status = File::from(status);
    let Err(failure) = steps(&order, least, &mut status);
    let _ = status.write_all(&Record::Failed(failure).encode());
    125
}

fn read(number: RawFd) -> Option<Order> {
    let mut bytes = Vec::new();
    File::from(raw::adopt(number).ok()?).read_to_end(&mut bytes).ok()?;
    Order::decode(&bytes)
}

fn steps(order: &Order, least: RawFd, status: &mut File) -> Result<std::convert::Infallible, Failure> {
    raw::fresh_signals().map_err(|errno| failed(Stage::Parent)(errno.into()))?;
    enter(order).map_err(failed(Stage::WorkingDirectory))?;
    streams(order, least).map_err(failed(Stage::Streams))?;
    let extra = match order.extra {
        Some((from, wanted)) => Some((raw::raise(from, least).map_err(failed(Stage::Descriptors))?, wanted)),
        None => None,
    };
    close_the_rest().map_err(failed(Stage::Descriptors))?;
    if let Some((from, wanted)) = &extra {
        raw::place(from.as_fd(), *wanted).map_err(failed(Stage::Descriptors))?;
    }
    status
        .write_all(&Record::Armed.encode())
        .map_err(failed(Stage::Parent))?;
    // Only now: the steps above need descriptors, which a limit could refuse them.
    for limit in &order.limits {
        raw::limit(limit).map_err(failed(Stage::Limits))?;
    }
    execute(order)
}

/// Enters the directory that the runner pinned.
fn enter(order: &Order) -> io::Result<()> {
    nix::unistd::chdir(Path::new(OsStr::from_bytes(&order.workdir)))?;
    if FileId::of(&stat(".")?) != order.workdir_id() {
        return Err(Errno::ESTALE.into());
    }
    Ok(())
}

fn streams(order: &Order, least: RawFd) -> io::Result<()> {
    if order.streams.len() != 3 {
        return Err(Errno::EINVAL.into());
    }
    let mut opened = Vec::new();
    for stream in &order.streams {
        opened.push(match stream {
            Stream::Fd(number) => raw::raise(*number, least)?,
            Stream::Device { path, flags, rdev } => device(path, *flags, *rdev)?,
        });
    }
    for (number, fd) in (0..).zip(&opened) {
        raw::place(fd.as_fd(), number)?;
    }
    Ok(())
}

/// Opens a character device by its name, so that the descriptor obeys the boundary.
fn device(path: &[u8], flags: i32, rdev: u64) -> io::Result<OwnedFd> {
    let flags = OFlag::from_bits_truncate(flags) | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let fd = nix::fcntl::open(Path::new(OsStr::from_bytes(path)), flags, Mode::empty())?;
    let about = fstat(&fd)?;
    let kind = SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT;
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "the type of st_rdev differs between systems, and only sameness matters"
    )]
    if kind != SFlag::S_IFCHR || about.st_rdev as u64 != rdev {
        return Err(Errno::ESTALE.into());
    }
    Ok(fd)
}

/// Keeps every descriptor but the standard ones from going through exec.
fn close_the_rest() -> io::Result<()> {
    raw::open_descriptors()?.into_iter().for_each(raw::hold_back);
    Ok(())
}

/// Executes the first candidate that can be, as execvp(3) does.
fn execute(order: &Order) -> Result<std::convert::Infallible, Failure> {
    let at = |errno: Errno| failed(Stage::Exec)(errno.into());
    let strings = |list: &[Vec<u8>]| {
        let strings: Result<Vec<_>, _> = list.iter().map(|bytes| CString::new(bytes.as_slice())).collect();
        strings.map_err(|_| at(Errno::EINVAL))
    };
    let (argv, env) = (strings(&order.argv)?, strings(&order.env)?);
    let mut seen = Errno::ENOENT;
    for path in strings(&order.candidates)? {
        let Err(errno) = nix::unistd::execve(&path, &argv, &env);
        match errno {
            Errno::ENOENT | Errno::ENOTDIR => {}
            // A refusal is remembered while the search goes on.
            Errno::EACCES => seen = Errno::EACCES,
            other => return Err(at(other)),
        }
    }
    Err(at(seen))
}

/// A number for an argument.
pub(super) fn numbered(fd: &impl AsRawFd) -> String {
    fd.as_raw_fd().to_string()
}
