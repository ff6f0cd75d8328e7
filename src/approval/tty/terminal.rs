//! The terminal itself: keys one by one, without an echo, and as it was before when it is let go.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::poll::PollFlags;
use nix::sys::stat::Mode;
use nix::sys::termios::{
    FlushArg, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr, tcsetattr,
};
use nix::unistd::{getpgrp, read, tcgetpgrp, write};

use super::keys::{Keys, Pressed};
use super::{Broken, Turn, Vigil};
use crate::visible::visible;

/// What follows within this time came with what was before it.
const BURST: Duration = Duration::from_millis(30);
/// The longest line that is read, in bytes.
const LONGEST: usize = 2000;
/// Pastes come with marks around them while this holds.
const MARK_PASTES: &str = "\x1b[?2004h";
const MARK_NO_PASTES: &str = "\x1b[?2004l";

/// The controlling terminal, of which this process is in the foreground.
pub(super) struct Terminal {
    device: OwnedFd,
    before: Termios,
    keys: Keys,
}

impl Terminal {
    /// Takes it.
    ///
    /// # Errors
    /// Why nobody can be asked there, in a sentence.
    pub(super) fn open() -> Result<Self, String> {
        // A description of one's own: that it does not block is nobody else's affair.
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let device =
            open("/dev/tty", flags, Mode::empty()).map_err(|errno| format!("there is no terminal ({errno})"))?;
        let foreground = tcgetpgrp(&device).is_ok_and(|group| group == getpgrp());
        if !foreground {
            return Err("this program is not in the foreground of its terminal".to_owned());
        }
        let before = tcgetattr(&device).map_err(|errno| format!("the terminal cannot be used ({errno})"))?;
        let mut keys = before.clone();
        // Keys that would send signals are read like others, so that the terminal is always put back.
        keys.local_flags
            .remove(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ECHONL | LocalFlags::ISIG | LocalFlags::IEXTEN);
        keys.input_flags.remove(InputFlags::IXON);
        keys.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        keys.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(&device, SetArg::TCSANOW, &keys).map_err(|errno| format!("the terminal cannot be used ({errno})"))?;
        let terminal = Self {
            device,
            before,
            keys: Keys::default(),
        };
        let _ = write(&terminal.device, MARK_PASTES.as_bytes());
        Ok(terminal)
    }

    /// How wide it is, when it knows.
    pub(super) fn width(&self) -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(&self.device).ok()?;
        Some(usize::from(size.ws_col)).filter(|width| *width > 0)
    }

    /// Writes all of it. Whoever reads slowly is waited for, as long as there is something to wait for.
    pub(super) fn say(&self, vigil: &Vigil<'_>, text: &str) -> Result<(), Broken> {
        let mut left = text.as_bytes();
        while !left.is_empty() {
            match write(&self.device, left) {
                Ok(count) => left = &left[count..],
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => self.wait(vigil, PollFlags::POLLOUT, None).map(drop)?,
                Err(errno) => return Err(gone(errno)),
            }
        }
        Ok(())
    }

    /// Forgets what was typed until now.
    pub(super) fn forget_input(&mut self) {
        let _ = tcflush(&self.device, FlushArg::TCIFLUSH);
    }

    /// The next key.
    pub(super) fn key(&mut self, vigil: &Vigil<'_>) -> Result<Pressed, Broken> {
        loop {
            let burst = self.burst(vigil)?;
            if let Some(pressed) = self.keys.read(&burst) {
                return match pressed {
                    Pressed::Byte(byte) if leaves(byte) => Err(left_by_key()),
                    pressed => Ok(pressed),
                };
            }
        }
    }

    /// A line that is typed, with what cannot be seen left out.
    pub(super) fn line(&mut self, vigil: &Vigil<'_>, prompt: &str) -> Result<String, Broken> {
        self.say(vigil, prompt)?;
        let mut line = Vec::new();
        loop {
            for byte in self.burst(vigil)? {
                match byte {
                    b'\r' | b'\n' => {
                        self.say(vigil, "\n")?;
                        return Ok(String::from_utf8_lossy(&line).into_owned());
                    }
                    byte if leaves(byte) => return Err(left_by_key()),
                    0x08 | 0x7f => {
                        // The rest of a character of several bytes goes with it.
                        while line.pop().is_some_and(|last| last & 0xc0 == 0x80) {}
                    }
                    byte if byte >= b' ' && line.len() < LONGEST => line.push(byte),
                    _ => {}
                }
            }
            let shown = visible(&String::from_utf8_lossy(&line));
            self.say(vigil, &format!("\r\x1b[K{prompt}{shown}"))?;
        }
    }

    /// Everything that comes at once.
    fn burst(&self, vigil: &Vigil<'_>) -> Result<Vec<u8>, Broken> {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match read(&self.device, &mut buffer) {
                Ok(0) => return Err(Broken::Closed("the terminal was closed".to_owned())),
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    let patience = (!bytes.is_empty()).then_some(BURST);
                    if !self.wait(vigil, PollFlags::POLLIN, patience)? {
                        return Ok(bytes);
                    }
                }
                Err(errno) => return Err(gone(errno)),
            }
        }
    }

    /// Whether it became ready in time.
    fn wait(&self, vigil: &Vigil<'_>, what: PollFlags, at_most: Option<Duration>) -> Result<bool, Broken> {
        match vigil.wait(&[(self.device.as_fd(), what)], at_most)? {
            Turn::Ready => Ok(true),
            Turn::Passed => Ok(false),
            Turn::Ended(end) => {
                let _ = write(&self.device, b"\n (answered or ended elsewhere)\n");
                Err(Broken::Ended(end))
            }
        }
    }
}

/// Whether a key says that its user wants none of it: Ctrl-C, Ctrl-D, Ctrl-\.
const fn leaves(byte: u8) -> bool {
    matches!(byte, 0x03 | 0x04 | 0x1c)
}

fn left_by_key() -> Broken {
    Broken::Closed("it was left with a key, unanswered".to_owned())
}

fn gone(errno: Errno) -> Broken {
    Broken::Closed(format!("the terminal is gone ({})", io::Error::from(errno)))
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = write(&self.device, MARK_NO_PASTES.as_bytes());
        let _ = tcsetattr(&self.device, SetArg::TCSANOW, &self.before);
    }
}
