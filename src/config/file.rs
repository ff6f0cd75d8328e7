//! Opening the files. What is there and cannot be read or believed is an error, never left out.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use ringfence_backend::WorkspaceRoot;

use super::WORKSPACE_FILE;
use super::error::ConfigError;

/// The most that is read of a file, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// A file's name and its text.
type Text = Option<(PathBuf, String)>;

/// The system's file: root's, and for nobody else to write.
pub(super) fn system(path: Option<&Path>) -> Result<Text, ConfigError> {
    let Some(path) = path else { return Ok(None) };
    text(path, open(path), |file| {
        let about = file.metadata()?;
        Ok(match (about.uid(), about.mode() & 0o022) {
            (0, 0) => None,
            (0, _) => Some("its mode lets others than root write it"),
            _ => Some("it does not belong to root"),
        })
    })
}

/// The user's file.
pub(super) fn user(path: Option<&Path>) -> Result<Text, ConfigError> {
    let Some(path) = path else { return Ok(None) };
    let opened = match open(path) {
        // A home that this user cannot enter is another's, and so is the file that may be in it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_reachable(path) => return Ok(None),
        other => other,
    };
    text(path, opened, |file| {
        let open_to_all = file.metadata()?.mode() & 0o002 != 0;
        Ok(open_to_all.then_some("its mode lets everybody write it"))
    })
}

/// The file in the root of a workspace. It is no link: a run may have made one.
pub(super) fn workspace(root: Option<&WorkspaceRoot>) -> Result<Text, ConfigError> {
    let Some(root) = root else { return Ok(None) };
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let opened = match openat(root.pinned(), WORKSPACE_FILE, flags, Mode::empty()) {
        Ok(fd) => Ok(File::from(fd)),
        Err(Errno::ELOOP) => Err(io::Error::other("it is a link, which is not followed in a workspace")),
        // A workspace that cannot be entered is refused where it is entered.
        Err(Errno::EACCES) if !is_reachable(&root.path().join(WORKSPACE_FILE)) => return Ok(None),
        Err(errno) => Err(errno.into()),
    };
    text(&root.path().join(WORKSPACE_FILE), opened, |_| Ok(None))
}

fn is_reachable(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// Opens a file without waiting for whoever may stand at the other end of it.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    File::options().read(true).custom_flags(flags.bits()).open(path)
}

fn text(
    path: &Path,
    opened: io::Result<File>,
    doubt: impl FnOnce(&File) -> io::Result<Option<&'static str>>,
) -> Result<Text, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable {
        file: path.to_owned(),
        source,
    };
    let file = match opened {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
    };
    if let Some(reason) = doubt(&file).map_err(unreadable)? {
        return Err(ConfigError::Doubtful {
            file: path.to_owned(),
            reason,
        });
    }
    read(file).map(|text| Some((path.to_owned(), text))).map_err(unreadable)
}

fn read(file: File) -> io::Result<String> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    let read = file.take(LARGEST + 1).read_to_string(&mut text)?;
    if read as u64 > LARGEST {
        return Err(io::Error::other(format!("it is larger than {LARGEST} bytes")));
    }
    Ok(text)
}
