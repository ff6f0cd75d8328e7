//! The command's standard streams: what each is, and what the boundary has to know of it.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{FileStat, SFlag, fstat, stat};
use ringfence_backend::StdioKind;

use super::request::{Capture, Input};

#[cfg(target_os = "linux")]
#[path = "stdio/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "stdio/macos.rs"]
mod system;

/// Where nothing comes from and everything may go.
const NULL: &str = "/dev/null";

/// A device that a stream is opened from again, inside the boundary.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) path: CString,
    pub(super) flags: OFlag,
    pub(super) rdev: u64,
}

/// What the runner gives the command as one standard stream.
#[derive(Debug)]
pub(super) enum Source {
    /// A pipe of the runner's.
    Pipe,
    /// The caller's own stream, as it is.
    Callers,
    /// A character device by its name, so that the descriptor lives on the run's own mounts: the
    /// owner of the host's node could change its mode through one that does not.
    Device(Device),
}

/// One stream: where it comes from, and its kind for the plan.
pub(super) type Stream = (Source, StdioKind);

/// The three streams of a run.
///
/// # Errors
/// The operating system's, for a stream of the caller's that cannot be looked at.
pub(super) fn streams(capture: Capture, input: &Input) -> io::Result<[Stream; 3]> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let captured = matches!(capture, Capture::Captured { .. });
    let first = match input {
        Input::Default if captured => null()?,
        Input::Default => callers(stdin.as_fd())?,
        Input::Bytes(_) | Input::File(_) | Input::Callers => pipe(),
    };
    if captured {
        Ok([first, pipe(), pipe()])
    } else {
        Ok([first, callers(stdout.as_fd())?, callers(stderr.as_fd())?])
    }
}

fn pipe() -> Stream {
    (Source::Pipe, StdioKind::Stream)
}

fn null() -> io::Result<Stream> {
    let about = stat(NULL)?;
    device(PathBuf::from(NULL), OFlag::O_RDONLY, &about)
}

/// A stream that the caller hands on.
fn callers(fd: BorrowedFd<'_>) -> io::Result<Stream> {
    let about = fstat(fd)?;
    let flags = OFlag::from_bits_truncate(fcntl(fd, FcntlArg::F_GETFL)?);
    let kind = match kind_of(&about) {
        SFlag::S_IFCHR => match name_of(fd, &about) {
            Some(path) => {
                let flags = flags & (OFlag::O_ACCMODE | OFlag::O_APPEND | OFlag::O_NONBLOCK);
                return device(path, flags, &about);
            }
            None => StdioKind::Handed,
        },
        // A directory opens the way to everything beneath and above it.
        SFlag::S_IFDIR => return Err(Errno::EISDIR.into()),
        // The content is meant to be read or written; the metadata is open through the descriptor.
        SFlag::S_IFREG | SFlag::S_IFBLK => StdioKind::Handed,
        SFlag::S_IFIFO if !system::is_anonymous(fd) => StdioKind::Handed,
        _ => StdioKind::Stream,
    };
    Ok((Source::Callers, kind))
}

fn kind_of(about: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT
}

/// The name under which a device's descriptor can be opened again, if it has one here.
fn name_of(fd: BorrowedFd<'_>, about: &FileStat) -> Option<PathBuf> {
    let null = stat(NULL).is_ok_and(|null| null.st_rdev == about.st_rdev);
    if null {
        return Some(PathBuf::from(NULL));
    }
    let path = system::name(fd)?;
    let there = stat(&path).ok()?;
    (kind_of(&there) == SFlag::S_IFCHR && there.st_rdev == about.st_rdev).then_some(path)
}

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_sign_loss,
    reason = "the type of st_rdev differs between systems, and only sameness matters"
)]
fn device(path: PathBuf, flags: OFlag, about: &FileStat) -> io::Result<Stream> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    Ok((
        Source::Device(Device {
            path: name,
            flags,
            rdev: about.st_rdev as u64,
        }),
        StdioKind::Device(path),
    ))
}
