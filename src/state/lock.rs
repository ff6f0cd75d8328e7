//! A lock between processes, kept by the kernel: it ends with whoever holds it.
//!
//! A write lock of fcntl(2) on an open file description, because it takes a descriptor open for
//! writing: a confined command, which can open the file for reading alone, cannot hold one. What it
//! could hold is a read lock, so the file may be written by its owner and read by nobody, and nobody
//! waits for ever.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, fchmod};

use super::StateDir;

/// How long to wait between two attempts.
const PAUSE: Duration = Duration::from_micros(200);

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    _file: File,
}

/// Why a lock was not had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    /// Others held it all the while.
    #[error("somebody else has held the lock {name:?} for {}", waited(*.after))]
    Busy {
        /// Its name.
        name: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The operating system's reason.
    #[error(transparent)]
    Host(#[from] io::Error),
}

fn waited(time: Duration) -> String {
    format!("{} s", time.as_secs_f32())
}

impl StateDir {
    /// Takes the lock `name`, and waits for it no longer than `patience`.
    pub(crate) fn lock(&self, name: &str, patience: Duration) -> Result<Held, LockError> {
        let file = match self.open_file(name, OFlag::O_WRONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = self.open_as(name, OFlag::O_WRONLY | OFlag::O_CREAT, Mode::S_IWUSR)?;
                // Whatever the umask takes away.
                fchmod(&file, Mode::S_IWUSR).map_err(io::Error::from)?;
                file
            }
            other => other?,
        };
        let deadline = Instant::now() + patience;
        loop {
            match try_lock(&file) {
                Ok(()) => return Ok(Held { _file: file }),
                Err(Errno::EAGAIN | Errno::EACCES | Errno::EINTR) if Instant::now() < deadline => {
                    std::thread::sleep(PAUSE);
                }
                Err(Errno::EAGAIN | Errno::EACCES | Errno::EINTR) => {
                    return Err(LockError::Busy {
                        name: name.to_owned(),
                        after: patience,
                    });
                }
                Err(errno) => return Err(io::Error::from(errno).into()),
            }
        }
    }
}

impl StateDir {
    /// Whether somebody holds the lock `name`, this process included.
    pub(crate) fn is_held(&self, name: &str) -> io::Result<bool> {
        match self.open_file(name, OFlag::O_WRONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
            Ok(file) => Ok(is_locked(&file)?),
        }
    }
}

/// Whether somebody holds it; nobody is kept from it by the question.
#[cfg(target_os = "linux")]
#[allow(clippy::cast_possible_truncation, reason = "the constants of fcntl(2) are small")]
fn is_locked(file: &File) -> Result<bool, Errno> {
    use nix::fcntl::{FcntlArg, fcntl};
    let mut found = WHOLE;
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?;
    Ok(found.l_type != nix::libc::F_UNLCK as nix::libc::c_short)
}

/// There is no such question there: it is tried, and given up again.
#[cfg(not(target_os = "linux"))]
fn is_locked(file: &File) -> Result<bool, Errno> {
    match try_lock(file) {
        Ok(()) => Ok(false),
        Err(Errno::EAGAIN) => Ok(true),
        Err(errno) => Err(errno),
    }
}

/// A write lock of a whole file.
#[cfg(target_os = "linux")]
#[allow(clippy::cast_possible_truncation, reason = "the constants of fcntl(2) are small")]
const WHOLE: nix::libc::flock = nix::libc::flock {
    l_type: nix::libc::F_WRLCK as nix::libc::c_short,
    l_whence: nix::libc::SEEK_SET as nix::libc::c_short,
    l_start: 0,
    l_len: 0,
    l_pid: 0,
};

#[cfg(target_os = "linux")]
fn try_lock(file: &File) -> Result<(), Errno> {
    use nix::fcntl::{FcntlArg, fcntl};
    fcntl(file, FcntlArg::F_OFD_SETLK(&WHOLE)).map(drop)
}

/// There such locks belong to a process and not to an open file, so flock(2) has to do.
#[cfg(not(target_os = "linux"))]
fn try_lock(file: &File) -> Result<(), Errno> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(std::fs::TryLockError::WouldBlock) => Err(Errno::EAGAIN),
        Err(std::fs::TryLockError::Error(error)) => Err(Errno::from_raw(error.raw_os_error().unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::place;
    use super::*;

    #[test]
    fn one_at_a_time_holds_it() {
        let place = place();
        let state = StateDir::open(place.path(), None).unwrap();
        assert!(!state.is_held("lock").unwrap(), "there is none");
        let held = state.lock("lock", Duration::ZERO).unwrap();
        let mode = std::fs::metadata(place.path().join("lock")).unwrap().permissions();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
            0o200,
            "nobody reads it"
        );
        assert!(state.is_held("lock").unwrap());
        assert!(matches!(
            state.lock("lock", Duration::from_millis(5)),
            Err(LockError::Busy { .. })
        ));
        drop(held);
        assert!(!state.is_held("lock").unwrap());
        state.lock("lock", Duration::ZERO).unwrap();
    }
}
