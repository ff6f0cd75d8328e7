//! The kernel tells of new names in a directory (inotify(7)).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use crate::state::StateDir;

/// Readable when something new has appeared.
pub(super) struct Bell(Inotify);

impl Bell {
    pub(super) fn hang(directory: &StateDir) -> io::Result<Self> {
        let bell = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let news = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_CLOSE_WRITE;
        bell.add_watch(&directory.held(), news)?;
        Ok(Self(bell))
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Takes what has been told. Which name it was does not matter: everything is looked at.
    pub(super) fn hush(&self) {
        while self.0.read_events().is_ok_and(|events| !events.is_empty()) {}
    }
}
