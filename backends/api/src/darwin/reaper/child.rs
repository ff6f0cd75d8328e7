//! The child of the reaper, from its making to the launcher.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, PipeReader, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::unistd::{ForkResult, Pid};

use crate::darwin::LAUNCHER;
use crate::darwin::frame::failed;
use crate::darwin::launcher::numbered;
use crate::darwin::order::{Order, Stream, bytes_of};
use crate::darwin::raw;
use crate::darwin::table::Members;
use crate::status::{Failure, Record, Stage};

/// The one child, and what is heard of its start.
pub(super) struct Child {
    pub(super) members: Members,
    pub(super) status: PipeReader,
    pub(super) complaint: PipeReader,
}

/// Makes the child, which becomes the launcher.
pub(super) fn begin(order: &Order, fds: Vec<OwnedFd>) -> Result<Child, Failure> {
    let at = failed(Stage::Parent);
    let group = order.session || no_terminal();
    let (status, say) = io::pipe().map_err(&at)?;
    let (complaint, complain) = io::pipe().map_err(&at)?;
    let null = File::options().read(true).write(true).open("/dev/null").map_err(&at)?;
    let place = |number: i32| fds.get(usize::try_from(number).ok()?).map(AsRawFd::as_raw_fd);
    let missing = || at(Errno::EBADF.into());
    let mut inside = order.clone();
    inside.sandbox = None;
    inside.status = say.as_raw_fd();
    for stream in &mut inside.streams {
        if let Stream::Fd(number) = stream {
            *number = place(*number).ok_or_else(missing)?;
        }
    }
    if let Some((number, _)) = &mut inside.extra {
        *number = place(*number).ok_or_else(missing)?;
    }
    let (text, mut write) = io::pipe().map_err(&at)?;
    let argv = arguments(order, &text).map_err(&at)?;
    let child = raw::fork().map_err(|errno| at(errno.into()))?;
    let ForkResult::Parent { child } = child else {
        let given = Given {
            null: &null,
            complain: complain.as_fd(),
            kept: fds.iter().map(AsFd::as_fd).chain([text.as_fd(), say.as_fd()]).collect(),
        };
        let failure = become_launcher(order.session, group, &argv, &given);
        let _ = (&say).write_all(&Record::Failed(failure).encode());
        std::process::exit(125);
    };
    let command = child.as_raw();
    drop(text);
    if group && !order.session {
        // Whichever of the two comes first; it is no longer possible once the child has executed.
        let _ = nix::unistd::setpgid(child, child);
    }
    // Out of the caller's group: what is sent to that is not for this process.
    let _ = nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0));
    drop(fds);
    // A pipe and no file: nobody else ever has a way to it. A child that has ended instead of reading
    // is heard of by its status.
    let _ = write.write_all(&inside.encode());
    drop(write);
    Ok(Child {
        members: Members {
            command,
            group,
            session: order.session,
        },
        status,
        complaint,
    })
}

/// Whether there is no terminal whose keys and job control the command would have to share.
fn no_terminal() -> bool {
    File::open("/dev/tty").is_err()
}

/// What the child executes: `sandbox-exec`, if anything is confined, and the launcher.
fn arguments(order: &Order, text: &PipeReader) -> io::Result<Vec<CString>> {
    let mut argv = Vec::new();
    if let Some((program, profile)) = &order.sandbox {
        argv.extend([program.clone(), b"-p".to_vec(), profile.clone()]);
    }
    argv.extend([order.program.clone(), bytes_of(LAUNCHER), bytes_of(numbered(text))]);
    let strings: Result<Vec<_>, _> = argv.into_iter().map(CString::new).collect();
    Ok(strings?)
}

/// The descriptors of the child.
struct Given<'a> {
    null: &'a File,
    complain: BorrowedFd<'a>,
    kept: Vec<BorrowedFd<'a>>,
}

/// The child: takes its place and executes. Its standard error until then is not the command's.
fn become_launcher(session: bool, group: bool, argv: &[CString], given: &Given<'_>) -> Failure {
    let steps = || -> Result<(), Failure> {
        let at = failed(Stage::Session);
        if session {
            nix::unistd::setsid().map_err(|errno| at(errno.into()))?;
        } else if group {
            nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0)).map_err(|errno| at(errno.into()))?;
        }
        let at = failed(Stage::Descriptors);
        for fd in &given.kept {
            raw::let_through(fd.as_raw_fd()).map_err(&at)?;
        }
        raw::place(given.null.as_fd(), 0).map_err(&at)?;
        raw::place(given.null.as_fd(), 1).map_err(&at)?;
        raw::place(given.complain, 2).map_err(&at)
    };
    if let Err(failure) = steps() {
        return failure;
    }
    let env: [CString; 0] = [];
    let errno = match argv.first().map(|program| nix::unistd::execve(program, argv, &env)) {
        Some(Err(errno)) => errno,
        _ => Errno::EINVAL,
    };
    // Not the command's program: whoever was to confine it cannot be executed.
    failed(Stage::Parent)(errno.into())
}
