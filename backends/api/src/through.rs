//! Launching through a program that makes a part of the boundary: it starts the launcher inside, which
//! does the rest and says so over the status channel. What the program itself says proves nothing.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{setsockopt, sockopt::PassCred};
use nix::sys::stat::Mode;

use crate::backend::Through;
use crate::channel::{Channel, status_channel};
use crate::descriptor;
use crate::image::ExecImage;
use crate::launcher::LAUNCHER;
use crate::maker::reaped;
use crate::order::{Order, SEALS};
use crate::outside::Outside;
use crate::running::{Launched, Memory};
use crate::shared::Mapped;
use crate::task::{ChildStdio, Launch};
use crate::told::{LaunchError, Told, Tried};

/// How long the program may take until the command's process is started.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take to end everybody again.
const ENDING: Duration = Duration::from_secs(1);
/// How much of its words is kept, in bytes.
const WORDS: usize = 2000;

/// A launch under way.
struct Begun {
    launched: Launched,
    told: Told,
    /// Whether the launcher has said that it runs.
    arrived: bool,
    words: OwnedFd,
    program: String,
    patience: Duration,
}

/// Starts a command through a program.
///
/// # Errors
/// [`LaunchError`]; but for [`Interrupted`](LaunchError::Interrupted) the command has then not run. No process
/// is left.
pub(crate) fn launch(through: &Through, launch: &Launch<'_>, image: &ExecImage) -> Result<Launched, LaunchError> {
    let mut begun = begin(through, launch, Some(image))?;
    if let Err(error) = begun.hear(|told| told.started || told.failed.is_some()) {
        return Err(begun.give_up(error));
    }
    let Begun { mut launched, told, .. } = begun;
    if !told.started && told.failed.is_none() {
        return Err(told.ended_early());
    }
    launched.command = told.sender;
    launched.listener = told.check()?;
    Ok(launched)
}

/// Has the launcher try the boundary that a program makes, and waits for its end.
///
/// # Errors
/// [`LaunchError`] when the boundary did not stand; no process is left in any case.
pub fn attempt_through(through: &Through, launch: &Launch<'_>) -> Result<Tried, LaunchError> {
    let mut begun = begin(through, launch, None)?;
    begun.hear(|told| told.failed.is_some())?;
    let attempts = begun.told.tried.clone();
    let listener = begun.told.check()?;
    Ok(Tried { attempts, listener })
}

fn begin(through: &Through, launch: &Launch<'_>, image: Option<&ExecImage>) -> Result<Begun, LaunchError> {
    let (read, write) = status_channel()?;
    // The kernel then says who sent a record, under the number that the runner knows it by (unix(7)).
    setsockopt(&read, PassCred, &true).map_err(io::Error::from)?;
    let facts = Mapped::file()?;
    let shared = Arc::new(Mapped::of(facts.as_fd(), true)?);
    let own_streams = own_streams(launch)?;
    let numbers = [0, 1, 2].map(|number: usize| own_streams[number].as_ref().map(AsRawFd::as_raw_fd));
    let order = Order::new(launch, &numbers, image, through.boundary.clone());
    let order = handed(
        c"ringfence-order",
        &postcard::to_stdvec(&order).map_err(io::Error::other)?,
    )?;
    let more = handed(c"ringfence-words", &through.more.1)?;
    let program = File::open("/proc/self/exe")?;
    let null =
        nix::fcntl::open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()).map_err(io::Error::from)?;
    let (words, complaints) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(io::Error::from)?;
    fcntl(&words, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(io::Error::from)?;

    let mut kept: Vec<RawFd> = numbers.into_iter().flatten().collect();
    kept.extend(launch.stdio.iter().filter_map(|stream| match stream {
        ChildStdio::Fd(fd) => Some(fd.as_raw_fd()),
        ChildStdio::Inherit | ChildStdio::Device { .. } => None,
    }));
    kept.extend(launch.extra.as_ref().map(AsRawFd::as_raw_fd));
    kept.extend(through.kept.iter().map(AsRawFd::as_raw_fd));
    let ours = [
        write.as_fd(),
        facts.as_fd(),
        order.as_fd(),
        more.as_fd(),
        program.as_fd(),
    ];
    kept.extend(ours.map(|fd| fd.as_raw_fd()));

    let mut argv = vec![through.program.clone()];
    argv.extend(through.arguments.iter().cloned());
    argv.push(through.more.0.clone());
    argv.push(word(more.as_raw_fd().to_string())?);
    argv.push(c"--".to_owned());
    argv.push(word(format!("/proc/self/fd/{}", program.as_raw_fd()))?);
    argv.push(LAUNCHER.to_owned());
    for fd in [order.as_fd(), write.as_fd(), facts.as_fd()] {
        argv.push(word(fd.as_raw_fd().to_string())?);
    }
    let streams = [null.as_raw_fd(), null.as_raw_fd(), complaints.as_raw_fd()];
    let outside = Outside::new(&argv, &kept, streams);
    let maker = reaped(launch, &outside)?;
    let memory = Memory { stacks: None, shared };
    let launched = Launched::through(maker, Channel::new(read), memory)?;
    let begun = Begun {
        launched,
        told: Told::default(),
        arrived: false,
        words,
        program: through.program.to_string_lossy().into_owned(),
        patience: PATIENCE,
    };
    match outside.failed() {
        Some(errno) => Err(begun.outside(&format!("it could not be started: {}", errno.desc()))),
        None => Ok(begun),
    }
}

impl Begun {
    /// Listens until it is known how the launch went, or nothing more can come.
    fn hear(&mut self, known: impl Fn(&Told) -> bool) -> Result<(), LaunchError> {
        let over = Instant::now() + self.patience;
        loop {
            match self.launched.channel().take() {
                Ok(message) => self.told.hear(message),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    // Read once more afterwards: what was said last is there when the program has ended.
                    if self.wait(over)? {
                        while let Ok(message) = self.launched.channel().take() {
                            self.told.hear(message);
                        }
                        return self.ended();
                    }
                }
                Err(_) => return self.ended(),
            }
            if let Some(pid) = self.told.launcher.take() {
                self.arrived = true;
                match descriptor::open_process(pid) {
                    Ok(first) => self.launched.led_by(first),
                    // It has ended by now. Why is in what it said next.
                    Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if known(&self.told) {
                return Ok(());
            }
        }
    }

    /// Ends everybody, and gives the error, unless it turns out that the command may have begun.
    fn give_up(mut self, error: LaunchError) -> LaunchError {
        self.launched.kill();
        self.launched.kill_maker();
        self.launched.reap(ENDING);
        while let Ok(message) = self.launched.channel().take() {
            self.told.hear(message);
        }
        match self.told.ended_early() {
            begun @ LaunchError::Interrupted(_) if self.told.failed.is_none() => begun,
            _ => error,
        }
    }

    /// Nothing more can come. That is how a trial goes, and how a launch fails.
    fn ended(&mut self) -> Result<(), LaunchError> {
        if self.arrived || self.told.launcher.is_some() {
            return Ok(());
        }
        self.launched.kill_maker();
        Err(self.outside("it ended without a word"))
    }

    /// Waits for a message. True when the program has ended.
    fn wait(&self, over: Instant) -> Result<bool, LaunchError> {
        let left = over.saturating_duration_since(Instant::now());
        if left.is_zero() {
            self.launched.kill_maker();
            return Err(self.outside(&format!(
                "it did not start the command within {} s",
                self.patience.as_secs()
            )));
        }
        let timeout = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).max(1);
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        let mut waiting = [self.launched.notice(), self.launched.fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match poll(&mut waiting, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(io::Error::from(errno).into()),
        }
        let spoke = waiting[0].any().unwrap_or(true);
        Ok(!spoke && waiting[1].any().unwrap_or(true))
    }

    fn outside(&self, otherwise: &str) -> LaunchError {
        let words = said(self.words.as_fd());
        LaunchError::Outside {
            program: self.program.clone(),
            words: if words.is_empty() { otherwise.to_owned() } else { words },
        }
    }
}

/// The streams that the command shares with the runner, under numbers that the program leaves alone.
fn own_streams(launch: &Launch<'_>) -> io::Result<[Option<OwnedFd>; 3]> {
    let mut own = [None, None, None];
    for (number, stream) in (0..).zip(&launch.stdio) {
        if matches!(stream, ChildStdio::Inherit) {
            own[usize::try_from(number).unwrap_or(0)] = Some(descriptor::inherited(number)?);
        }
    }
    Ok(own)
}

/// A file without a name that is read from its beginning, and that nobody can change any more.
fn handed(name: &CStr, bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = File::from(memfd_create(name, flags)?);
    file.write_all(bytes)?;
    std::io::Seek::rewind(&mut file)?;
    fcntl(&file, FcntlArg::F_ADD_SEALS(SEALS))?;
    Ok(file.into())
}

/// What the program had to say, on one line.
fn said(words: BorrowedFd<'_>) -> String {
    let mut bytes = vec![0; WORDS];
    let Ok(words) = words.try_clone_to_owned() else {
        return String::new();
    };
    let got = File::from(words).read(&mut bytes).unwrap_or(0);
    let text = String::from_utf8_lossy(bytes.get(..got).unwrap_or_default()).into_owned();
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

fn word(text: String) -> io::Result<CString> {
    Ok(CString::new(text)?)
}

#[cfg(test)]
mod tests;
