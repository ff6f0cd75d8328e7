//! The file that a captured stream is written to once its end alone would not be all of it.
//!
//! It is made at the first byte too many and begins with the first byte of all. What goes wrong with it is
//! a fact of the report: the run goes on, and the end of the stream is kept in any case.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};

use crate::facts::Spill;

mod budget;
mod place;

pub(super) use place::Place;

/// One stream's file.
#[derive(Debug)]
pub(super) struct SpillFile {
    /// Until it is closed.
    place: Option<Arc<Place>>,
    /// Where the file is, once it is closed.
    path: Option<PathBuf>,
    name: &'static str,
    /// How long the file may get, in bytes.
    cap: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing has overflowed, or nothing was written since.
    Waiting,
    /// The file has every byte up to here.
    Open { file: File, written: u64, limit: Limit },
    /// Nothing more is written. The file, if there is one, is as long as the account says.
    Over { account: Spill, named: bool },
}

/// How long the file may get, and what is said when that is not enough.
#[derive(Clone, Copy, Debug)]
struct Limit {
    bytes: u64,
    errno: Option<Errno>,
}

impl SpillFile {
    /// A file called `name` in `place`, of at most `cap` bytes. Nothing is made yet.
    pub(super) fn new(place: Arc<Place>, name: &'static str, cap: u64) -> Self {
        let state = if cap == 0 {
            let reason = "no spill file was asked for: its limit is 0 bytes".to_owned();
            State::over(Spill::Absent { reason })
        } else {
            State::Waiting
        };
        Self {
            place: Some(place),
            path: None,
            name,
            cap,
            state,
        }
    }

    /// The offset from which bytes have yet to be written; none when nothing more is.
    pub(super) const fn wants(&self) -> Option<u64> {
        match &self.state {
            State::Waiting => Some(0),
            State::Open { written, .. } => Some(*written),
            State::Over { .. } => None,
        }
    }

    /// Writes the next bytes: those from [`wants`](Self::wants) on.
    pub(super) fn write(&mut self, pieces: [&[u8]; 2]) {
        if matches!(self.state, State::Waiting) {
            let made = self.place.as_ref().map(|place| place.create(self.name));
            self.state = match made.unwrap_or_else(|| Err(Spill::failed(0, Errno::EBADF))) {
                Ok(file) => State::Open {
                    file,
                    written: 0,
                    limit: Limit::of(self.cap),
                },
                Err(account) => State::over(account),
            };
        }
        for piece in pieces {
            let State::Open { file, written, limit } = &mut self.state else {
                return;
            };
            let fits = usize::try_from(limit.bytes - *written).unwrap_or(usize::MAX);
            let (now, beyond) = piece.split_at(piece.len().min(fits));
            let failed = write_all(file, now, written).err();
            if failed.is_none() && beyond.is_empty() {
                continue;
            }
            let bytes = *written;
            let account = match failed.or(limit.errno) {
                Some(errno) => Spill::failed(bytes, errno),
                None => Spill::Head { bytes },
            };
            self.state = State::Over { account, named: true };
        }
    }

    /// Closes the file, and gives up the place once nobody else is there. Some file systems tell only
    /// now that they have no room for what was written.
    pub(super) fn close(&mut self) {
        self.path = self.path();
        self.place = None;
        let state = std::mem::replace(&mut self.state, State::Waiting);
        self.state = match state {
            State::Open { file, written, .. } => State::Over {
                account: match nix::unistd::close(file) {
                    Ok(()) => Spill::Complete { bytes: written },
                    Err(errno) => Spill::failed(written, errno),
                },
                named: true,
            },
            other => other,
        };
    }

    /// Where the file is, as soon as there is one.
    pub(super) fn path(&self) -> Option<PathBuf> {
        let named = !matches!(self.state, State::Waiting | State::Over { named: false, .. });
        match &self.place {
            Some(place) if named => place.path_of(self.name),
            _ => self.path.clone(),
        }
    }

    /// What is to be said of it, for a stream that has overflowed.
    pub(super) fn account(&self) -> Spill {
        match &self.state {
            State::Waiting => Spill::Complete { bytes: 0 },
            State::Open { written, .. } => Spill::Complete { bytes: *written },
            State::Over { account, .. } => account.clone(),
        }
    }
}

impl State {
    /// There is no file.
    const fn over(account: Spill) -> Self {
        Self::Over { account, named: false }
    }
}

impl Limit {
    /// The stream's own, or the process's for every file: a write beyond that one would end the
    /// process by SIGXFSZ.
    fn of(cap: u64) -> Self {
        match getrlimit(Resource::RLIMIT_FSIZE) {
            Ok((soft, _)) if soft < cap => Self {
                bytes: soft,
                errno: Some(Errno::EFBIG),
            },
            _ => Self {
                bytes: cap,
                errno: None,
            },
        }
    }
}

/// Writes everything, and counts what was written even if it was not everything.
fn write_all(file: &File, mut bytes: &[u8], written: &mut u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match nix::unistd::write(file, bytes) {
            Ok(0) => return Err(Errno::EIO),
            Ok(count) => {
                *written += count as u64;
                bytes = &bytes[count..];
            }
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

impl Spill {
    fn failed(bytes: u64, errno: Errno) -> Self {
        let errno = format!("{errno:?}");
        Self::Failed { bytes, errno }
    }

    fn of(error: &io::Error) -> Self {
        Self::failed(0, Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32)))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::fs::PermissionsExt;

    use ringfence_backend::{PolicyParts, Require, SandboxExecutionPolicy, SandboxMode, Temp, WorkspaceRoot};

    use super::*;
    use crate::state::tests::place;

    /// A read-only policy.
    pub(in crate::exec) fn policy() -> SandboxExecutionPolicy {
        SandboxExecutionPolicy::seal(PolicyParts {
            mode: SandboxMode::ReadOnly,
            workspace_root: WorkspaceRoot::open("/usr/bin".as_ref()).unwrap(),
            writable: Vec::new(),
            temp: Temp::None,
            protected: Vec::new(),
            closed: std::collections::BTreeSet::new(),
            require: Require::Partial,
            session: None,
        })
        .unwrap()
    }

    /// A run's place in a state directory.
    fn run(state: &std::path::Path) -> Arc<Place> {
        Arc::new(Place::new(Some(state), &policy(), "run"))
    }

    fn mode(path: impl AsRef<std::path::Path>) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn nothing_is_made_before_there_is_something_to_write() {
        let state = place();
        let file = SpillFile::new(run(&state.path().join("s")), "stdout", 10);
        assert_eq!((file.wants(), file.path()), (Some(0), None));
        assert!(!state.path().join("s").exists());
    }

    #[test]
    fn a_file_is_its_owners_alone_and_gets_every_byte_in_order() {
        let state = place();
        let place = run(state.path());
        let [mut out, mut err] = ["stdout", "stderr"].map(|name| SpillFile::new(Arc::clone(&place), name, 100));
        out.write([b"ab", b"cd"]);
        err.write([b"x", b""]);
        out.write([b"ef", b""]);
        assert_eq!(out.wants(), Some(6));
        assert_eq!(out.account(), Spill::Complete { bytes: 6 });
        let path = out.path().unwrap();
        assert_eq!(path, state.path().join("output/run/stdout"));
        assert_eq!(std::fs::read(&path).unwrap(), b"abcdef");
        assert_eq!(std::fs::read(err.path().unwrap()).unwrap(), b"x");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(state.path().join("output/run")), 0o700);
        assert_eq!(mode(state.path().join("output")), 0o700);
    }

    #[test]
    fn a_file_at_its_limit_is_complete_and_beyond_it_keeps_the_beginning() {
        let state = place();
        let mut file = SpillFile::new(run(state.path()), "stdout", 4);
        file.write([b"abc", b"d"]);
        assert_eq!(file.account(), Spill::Complete { bytes: 4 });
        file.write([b"e", b""]);
        assert_eq!((file.account(), file.wants()), (Spill::Head { bytes: 4 }, None));
        file.write([b"f", b""]);
        assert_eq!(std::fs::read(file.path().unwrap()).unwrap(), b"abcd");
    }

    #[test]
    fn a_name_that_is_taken_is_never_written_to() {
        let state = place();
        let place = run(state.path());
        SpillFile::new(Arc::clone(&place), "stdout", 10).write([b"first", b""]);
        let mut second = SpillFile::new(place, "stdout", 10);
        second.write([b"second", b""]);
        assert_eq!(second.account(), Spill::failed(0, Errno::EEXIST));
        assert_eq!(second.path(), None);
        assert_eq!(std::fs::read(state.path().join("output/run/stdout")).unwrap(), b"first");
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_is_not_followed() {
        let state = place();
        std::fs::create_dir(state.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", state.path().join("output")).unwrap();
        let mut file = SpillFile::new(run(state.path()), "stdout", 10);
        file.write([b"x", b""]);
        assert!(matches!(file.account(), Spill::Failed { bytes: 0, .. }), "{file:?}");
        assert_eq!(std::fs::read_dir(state.path().join("elsewhere")).unwrap().count(), 0);
    }

    #[test]
    fn where_no_file_may_be_it_is_said_why() {
        let reason = |place: Place, cap| {
            let mut file = SpillFile::new(Arc::new(place), "stdout", cap);
            file.write([b"x", b""]);
            assert_eq!((file.path(), file.wants()), (None, None));
            match file.account() {
                Spill::Absent { reason } => reason,
                other => panic!("{other:?}"),
            }
        };
        let state = place();
        let nowhere = || Place::new(None, &policy(), "run");
        assert!(reason(nowhere(), 0).contains("0 bytes"));
        assert!(reason(nowhere(), 9).contains("no state directory"));
        let temp = Place::new(Some("/tmp/state".as_ref()), &policy(), "run");
        assert!(reason(temp, 9).contains("temp area"));
        for name in ["", ".", "..", "a/b", "/a"] {
            let odd = Place::new(Some(state.path()), &policy(), name);
            assert!(reason(odd, 9).contains("no file name"), "{name}");
        }
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
    }
}
