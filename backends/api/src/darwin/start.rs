//! Starting a command, from the runner's side.

use std::ffi::{CStr, CString, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

use super::frame::Frame;
use super::order::{Order, Stream, bytes_of};
use super::{Launched, PROGRAM, REAPER, raw};
use crate::image::ExecImage;
use crate::status::Failure;
use crate::{ChildLimit, ChildStdio, FileId, Session};

/// The most descriptors that come along: three streams and one more.
const MOST: usize = 4;

/// What confines a command.
#[derive(Clone, Copy, Debug)]
pub struct Sandbox<'a> {
    /// `sandbox-exec`.
    pub program: &'a Path,
    /// The text of the profile.
    pub profile: &'a str,
}

/// Everything about a start but for the program itself.
#[derive(Debug)]
pub struct Start<'a> {
    /// What confines the command, if anything does.
    pub sandbox: Option<Sandbox<'a>>,
    /// The program that calls [`enter`](super::enter); this one, when it is not said.
    pub program: Option<&'a Path>,
    /// Whose session.
    pub session: Session,
    /// Standard input, output and error.
    pub stdio: &'a [ChildStdio<'a>; 3],
    /// The working directory, canonical, and what it must still be.
    pub workdir: (&'a CStr, FileId),
    /// One more descriptor that the command gets, under the number it has here.
    pub extra: Option<BorrowedFd<'a>>,
    /// The command's limits, set last of all.
    pub limits: &'a [ChildLimit],
}

/// Why no command ran.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The runner could not prepare the launch.
    #[error("could not prepare the launch: {0}")]
    Prepare(#[from] io::Error),
    /// This process is no program of Ringfence's, and does not start what it cannot watch.
    #[error("this program has not said that it starts commands; it has to call `enter` at the beginning of its `main`")]
    NoProgram,
    /// A step failed; the command never ran.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// Whoever was to confine the command ended before it had.
    #[error("the command was not confined{}", said(.words))]
    Vanished {
        /// What they said, which may be nothing.
        words: String,
    },
}

/// Words of others behind a colon.
fn said(words: &str) -> String {
    let words = words.trim();
    if words.is_empty() {
        String::new()
    } else {
        format!(": {words}")
    }
}

/// Starts a command, and a reaper that outlives it and, but for those who leave the command's group
/// and session, everybody it starts.
///
/// # Errors
/// [`LaunchError`]; the command has then not run.
pub fn start(start: &Start<'_>, image: &ExecImage) -> Result<Launched, LaunchError> {
    let program = match start.program {
        Some(program) => program,
        None => PROGRAM.get().ok_or(LaunchError::NoProgram)?,
    };
    let (order, fds) = order(start, image, program);
    let (mut control, theirs) = UnixStream::pair()?;
    let (alive, theirs_alive) = io::pipe()?;
    // Its standard output is what ends when it ends.
    let mut reaper = spawn(program, theirs.into(), theirs_alive.into())?;
    let told = send(&mut control, &order, &fds).and_then(|()| Frame::read(&mut control));
    match told {
        Ok(Frame::Started { command, containment }) => {
            control.set_nonblocking(true)?;
            Ok(Launched::new(command, containment, control, alive, reaper))
        }
        other => {
            drop(control);
            // It kills what it has started before it ends.
            let _ = reaper.wait();
            Err(match other {
                Ok(Frame::Failed(failure)) => LaunchError::Failed(failure),
                Ok(Frame::Vanished(words)) => LaunchError::Vanished {
                    words: String::from_utf8_lossy(&words).into_owned(),
                },
                _ => LaunchError::Vanished { words: String::new() },
            })
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a part of the spawn step: it starts the reaper, and never the command itself"
)]
fn spawn(program: &Path, control: OwnedFd, alive: OwnedFd) -> io::Result<Child> {
    Command::new(program)
        .arg(REAPER)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(control))
        .stdout(Stdio::from(alive))
        .stderr(Stdio::null())
        .spawn()
}

/// The order, and the descriptors it speaks of.
fn order<'a>(start: &Start<'a>, image: &ExecImage, program: &Path) -> (Order, Vec<BorrowedFd<'a>>) {
    let mut fds: Vec<BorrowedFd<'a>> = Vec::new();
    let mut take = |fd: BorrowedFd<'a>| {
        fds.push(fd);
        RawFd::try_from(fds.len()).unwrap_or(RawFd::MAX) - 1
    };
    let streams = (0..).zip(start.stdio).map(|(number, stdio)| match stdio {
        ChildStdio::Fd(fd) => Stream::Fd(take(*fd)),
        ChildStdio::Inherit => Stream::Fd(take(raw::standard(number))),
        ChildStdio::Device { path, flags, rdev } => Stream::Device {
            path: path.to_bytes().to_vec(),
            flags: flags.bits(),
            rdev: *rdev,
        },
    });
    let streams = streams.collect();
    let bytes = |strings: &[CString]| strings.iter().map(|text| text.to_bytes().to_vec()).collect();
    let order = Order {
        sandbox: start
            .sandbox
            .map(|sandbox| (bytes_of(sandbox.program), sandbox.profile.as_bytes().to_vec())),
        program: OsString::from(program).into_vec(),
        session: start.session == Session::Own,
        streams,
        extra: start.extra.map(|fd| (take(fd), fd.as_raw_fd())),
        status: -1,
        workdir: start.workdir.0.to_bytes().to_vec(),
        workdir_id: (start.workdir.1.device, start.workdir.1.inode),
        limits: start.limits.to_vec(),
        candidates: bytes(&image.candidates),
        argv: bytes(&image.argv),
        env: bytes(&image.env),
    };
    (order, fds)
}

/// Sends an order, its length before it, and the descriptors beside that.
fn send(to: &mut UnixStream, order: &Order, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = order.encode();
    let length = (bytes.len() as u64).to_ne_bytes();
    let numbers: Vec<_> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&numbers)];
    let beside = if numbers.is_empty() { &[][..] } else { &rights };
    let sent = sendmsg::<()>(
        to.as_raw_fd(),
        &[IoSlice::new(&length)],
        beside,
        MsgFlags::empty(),
        None,
    )?;
    // What is left of the length, should the system have taken less.
    to.write_all(length.get(sent..).unwrap_or_default())?;
    to.write_all(&bytes)
}

/// Takes an order and its descriptors, each of them close-on-exec.
pub(super) fn receive(from: &mut UnixStream) -> io::Result<(Order, Vec<OwnedFd>)> {
    let mut length = [0; size_of::<u64>()];
    let mut space = nix::cmsg_space!([RawFd; MOST]);
    let (got, fds) = {
        let mut parts = [IoSliceMut::new(&mut length)];
        let message = recvmsg::<()>(from.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::empty())?;
        let mut fds = Vec::new();
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(numbers) = control {
                for number in numbers {
                    raw::hold_back(number);
                    fds.push(raw::adopt(number)?);
                }
            }
        }
        (message.bytes, fds)
    };
    from.read_exact(length.get_mut(got..).unwrap_or_default())?;
    let length = usize::try_from(u64::from_ne_bytes(length)).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    io::Read::take(&mut *from, length as u64).read_to_end(&mut bytes)?;
    let order = Order::decode(&bytes).ok_or(io::ErrorKind::InvalidData)?;
    Ok((order, fds))
}
