//! Files in the state directory, each reached from a descriptor of its directory and never through a link.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, fstat, mkdirat};
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

use super::{HOLD, StateDir};

/// Whether something must be on the disk when a call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The kernel has it: it survives the end of this process, and not the end of the machine.
    Kernel,
    /// It is on the disk (fsync(2)).
    Disk,
}

/// A file of the owner's alone.
const PRIVATE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);

impl StateDir {
    /// A directory in this one, made with mode 0700 if it is not there.
    pub(crate) fn within(&self, name: &str) -> io::Result<Self> {
        match mkdirat(self, name, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => self.existing(name),
            Err(errno) => Err(errno.into()),
        }
    }

    /// A directory in this one that is there already.
    pub(crate) fn existing(&self, name: &str) -> io::Result<Self> {
        let flags = HOLD | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(self, name, flags, Mode::empty())?;
        let about = fstat(&fd)?;
        if about.st_uid != nix::unistd::geteuid().as_raw() || about.st_mode & 0o022 != 0 {
            let path = self.path.join(name);
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{} belongs to, or may be written by, somebody else", path.display()),
            ));
        }
        Ok(Self {
            fd,
            path: self.path.join(name),
        })
    }

    /// Opens a file in this directory. One that is made has mode 0600.
    ///
    /// O_NONBLOCK, so that neither a FIFO nor a lease that somebody holds keeps the caller waiting.
    pub(crate) fn open_file(&self, name: impl AsRef<OsStr>, flags: OFlag) -> io::Result<File> {
        self.open_as(name, flags, PRIVATE)
    }

    /// The same, where one that is made has the mode `mode` from its first moment.
    pub(super) fn open_as(&self, name: impl AsRef<OsStr>, flags: OFlag, mode: Mode) -> io::Result<File> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let file = File::from(openat(self, name.as_ref(), flags, mode)?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::other("it is no regular file"))
        }
    }

    /// The content of a file, of at most `most` bytes.
    pub(crate) fn read_file(&self, name: impl AsRef<OsStr>, most: u64) -> io::Result<Vec<u8>> {
        let file = self.open_file(name, OFlag::O_RDONLY)?;
        let mut content = Vec::new();
        file.take(most + 1).read_to_end(&mut content)?;
        if content.len() as u64 > most {
            return Err(io::Error::other(format!("it is larger than {most} bytes")));
        }
        Ok(content)
    }

    /// Puts a whole file in place, or none: it is written under another name and renamed.
    pub(crate) fn put_file(&self, name: &str, content: &[u8], durability: Durability) -> io::Result<()> {
        self.put(name, content, durability, |draft| {
            Ok(renameat(self, draft, self, name)?)
        })
    }

    /// Puts a whole file in place where there is none of that name; [`io::ErrorKind::AlreadyExists`] where
    /// there is one. Of several who try at once, one succeeds. It is on the disk when this returns.
    pub(crate) fn put_new_file(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.put(name, content, Durability::Disk, |draft| {
            linkat(self, draft, self, name, AtFlags::empty())?;
            Ok(unlinkat(self, draft, UnlinkatFlags::NoRemoveDir)?)
        })
    }

    fn put(
        &self,
        name: &str,
        content: &[u8],
        durability: Durability,
        place: impl FnOnce(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        let unique = ringfence_backend::descriptor::random::<8>()?;
        let draft = format!(".{name}.{:016x}", u64::from_ne_bytes(unique));
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        let mut file = self.open_file(&draft, flags)?;
        let put = file
            .write_all(content)
            .and_then(|()| {
                if durability == Durability::Disk {
                    file.sync_all()
                } else {
                    Ok(())
                }
            })
            .and_then(|()| place(&draft));
        if put.is_err() {
            let _ = unlinkat(self, draft.as_str(), UnlinkatFlags::NoRemoveDir);
            return put;
        }
        if durability == Durability::Disk {
            self.sync()
        } else {
            Ok(())
        }
    }

    /// Moves a file to another directory that has none of its name; [`io::ErrorKind::AlreadyExists`] where
    /// it has. Of several who try at once, one succeeds: rename(2) would replace what is there. Both
    /// directories are on the disk when this returns.
    pub(crate) fn move_file(&self, name: &str, to: &Self) -> io::Result<()> {
        linkat(self, name, to, name, AtFlags::empty())?;
        to.sync()?;
        unlinkat(self, name, UnlinkatFlags::NoRemoveDir)?;
        self.sync()
    }

    /// Removes a file.
    pub(crate) fn remove_file(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(self, name.as_ref(), UnlinkatFlags::NoRemoveDir)?)
    }

    /// The names of what is in this directory, sorted; drafts of [`put_file`](Self::put_file) left out.
    pub(crate) fn file_names(&self) -> io::Result<Vec<String>> {
        let mut directory = nix::dir::Dir::from_fd(self.for_reading()?)?;
        let mut names = Vec::new();
        for entry in directory.iter() {
            if let Ok(name) = entry?.file_name().to_str()
                && !name.starts_with('.')
            {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Returns when the names in this directory are on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::from(self.for_reading()?).sync_all()
    }

    fn for_reading(&self) -> io::Result<OwnedFd> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(openat(self.as_fd(), ".", flags, Mode::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::place;
    use super::*;

    #[test]
    fn a_file_is_put_in_place_whole_and_read_back() {
        let place = place();
        let state = StateDir::open(place.path(), None).unwrap().within("a").unwrap();
        state.put_file("x", b"one", Durability::Disk).unwrap();
        state.put_file("x", b"two", Durability::Kernel).unwrap();
        assert_eq!(state.read_file("x", 3).unwrap(), b"two");
        assert!(state.read_file("x", 2).is_err(), "larger than was asked for");
        assert_eq!(state.file_names().unwrap(), ["x"]);
    }

    #[test]
    fn a_link_is_not_followed_and_a_fifo_is_not_waited_for() {
        let place = place();
        let state = StateDir::open(place.path(), None).unwrap();
        std::fs::write(place.path().join("real"), "x").unwrap();
        std::os::unix::fs::symlink("real", place.path().join("link")).unwrap();
        nix::unistd::mkfifo(&place.path().join("fifo"), PRIVATE).unwrap();
        assert!(state.read_file("link", 9).is_err());
        assert!(state.read_file("fifo", 9).is_err());
    }

    #[test]
    fn a_file_that_was_moved_is_in_one_place_alone() {
        let place = place();
        let state = StateDir::open(place.path(), None).unwrap();
        let (from, to) = (state.within("from").unwrap(), state.within("to").unwrap());
        from.put_file("x", b"", Durability::Kernel).unwrap();
        from.move_file("x", &to).unwrap();
        assert!(from.move_file("x", &to).is_err(), "it can be moved once");
        assert_eq!(
            (from.file_names().unwrap().len(), to.file_names().unwrap().len()),
            (0, 1)
        );
    }

    #[test]
    fn of_two_who_put_or_move_a_new_file_one_succeeds() {
        let place = place();
        let state = StateDir::open(place.path(), None).unwrap();
        let (from, to) = (state.within("from").unwrap(), state.within("to").unwrap());
        from.put_new_file("x", b"one").unwrap();
        let again = from.put_new_file("x", b"two").unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(from.read_file("x", 9).unwrap(), b"one");
        from.move_file("x", &to).unwrap();
        from.put_new_file("x", b"two").unwrap();
        let again = from.move_file("x", &to).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(to.read_file("x", 9).unwrap(), b"one");
        let left = std::fs::read_dir(place.path().join("from")).unwrap().count();
        assert_eq!(left, 1, "no draft is left behind");
    }
}
