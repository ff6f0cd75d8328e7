//! The state directory, and when it may be used.
//!
//! What a command of some run could have left there must neither be believed nor followed. So the
//! directory is used only where no run can write: not in a temp area, not in this run's roots, not
//! through a link, and not where others may write.

mod files;
mod lock;

use std::ffi::OsStr;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, fstat, mkdirat};
use ringfence_backend::{HOST_TEMP, PinnedPath, SandboxExecutionPolicy, SandboxMode, user_temp};

pub use files::Durability;
pub(crate) use lock::{Held, LockError};

/// A state directory that no run can write, held open.
#[derive(Debug)]
pub(crate) struct StateDir {
    fd: OwnedFd,
    path: PathBuf,
}

impl StateDir {
    /// Opens the directory, and makes it if it is not there.
    ///
    /// # Errors
    /// Why it is not used, in a sentence.
    pub(crate) fn open(path: &Path, policy: Option<&SandboxExecutionPolicy>) -> Result<Self, String> {
        let reach = |what: &str| format!("the state directory {} {what}", path.display());
        let own_temp =
            user_temp().is_some_and(|temp| PinnedPath::open(&temp).is_ok_and(|it| path.starts_with(it.path())));
        if own_temp || HOST_TEMP.iter().any(|temp| path.starts_with(temp)) {
            return Err(reach("lies in a temp area, where runs can write"));
        }
        // A root in it is as bad as one around it.
        let within = |root: &Path| path.starts_with(root) || root.starts_with(path);
        let in_policy = policy.is_some_and(|policy| {
            let works_there = policy.mode() != SandboxMode::ReadOnly && within(policy.workspace_root().path());
            works_there || policy.writable().iter().any(|root| within(root.path()))
        });
        if in_policy {
            return Err(reach("lies where this run works; RINGFENCE_STATE_DIR names another"));
        }
        let fd = descend(path).map_err(|errno| match errno {
            Errno::ELOOP | Errno::ENOTDIR => reach("leads through a link, which is not followed"),
            errno => reach(&format!("cannot be opened: {errno}")),
        })?;
        let about = fstat(&fd).map_err(|errno| reach(&errno.to_string()))?;
        if about.st_uid != nix::unistd::geteuid().as_raw() || about.st_mode & 0o022 != 0 {
            return Err(reach("belongs to, or may be written by, somebody else"));
        }
        Ok(Self {
            fd,
            path: path.to_owned(),
        })
    }
}

impl StateDir {
    /// Holds a directory that is only to be read from, whoever it belongs to. Nothing is made, and nothing
    /// that is found there is trusted.
    pub(crate) fn to_read(path: &Path) -> io::Result<Self> {
        let flags = HOLD | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(Self {
            fd: nix::fcntl::open(path, flags, Mode::empty())?,
            path: path.to_owned(),
        })
    }

    /// Its path, of which every part was seen to be a directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(target_os = "linux")]
impl StateDir {
    /// A path that leads to this very directory, whatever happens to its name.
    pub(crate) fn held(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
    }
}

impl AsFd for StateDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// How a directory is held that is only a place for names.
#[cfg(target_os = "linux")]
const HOLD: OFlag = OFlag::O_PATH;
#[cfg(not(target_os = "linux"))]
const HOLD: OFlag = OFlag::O_RDONLY;

/// Opens a directory one name at a time, following no link, and makes what is missing.
fn descend(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = HOLD | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut at = nix::fcntl::open("/", flags, Mode::empty())?;
    for part in path.components() {
        let name: &OsStr = match part {
            Component::RootDir => continue,
            Component::Normal(name) => name,
            _ => return Err(Errno::EINVAL),
        };
        at = match openat(&at, name, flags, Mode::empty()) {
            Err(Errno::ENOENT) => {
                match mkdirat(&at, name, Mode::S_IRWXU) {
                    Ok(()) | Err(Errno::EEXIST) => {}
                    Err(errno) => return Err(errno),
                }
                openat(&at, name, flags, Mode::empty())?
            }
            other => other?,
        };
    }
    Ok(at)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    /// A directory outside of every temp area, wherever the project itself lies.
    pub(crate) fn place() -> tempfile::TempDir {
        let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let candidates = [Some(own), std::env::home_dir(), Some(PathBuf::from("/var/lib"))];
        let fit = candidates
            .into_iter()
            .flatten()
            .find(|place| place.is_dir() && !HOST_TEMP.iter().any(|temp| place.starts_with(temp)));
        tempfile::tempdir_in(fit.expect("a directory outside the temp area")).unwrap()
    }

    #[test]
    fn a_directory_of_ones_own_is_made_and_used() {
        let place = place();
        let state = place.path().join("a/b");
        assert!(StateDir::open(&state, None).is_ok());
        assert_eq!(std::fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_root_in_it_or_around_it_keeps_it_from_being_used() {
        use ringfence_backend::{PolicyParts, Require, WorkspaceRoot};
        let place = place();
        let state = place.path().join("state");
        for name in ["work", "state/approvals"] {
            std::fs::create_dir_all(place.path().join(name)).unwrap();
        }
        for (root, used) in [
            ("work", true),
            ("", false),
            ("state", false),
            ("state/approvals", false),
        ] {
            let root = PinnedPath::open(&place.path().join(root)).unwrap();
            let work = WorkspaceRoot::open(&place.path().join("work")).unwrap();
            let policy = SandboxExecutionPolicy::seal(PolicyParts {
                mode: SandboxMode::WorkspaceWrite,
                writable: vec![work.pinned().clone(), root.clone()],
                workspace_root: work,
                protected: Vec::new(),
                temp: ringfence_backend::Temp::Private,
                closed: std::collections::BTreeSet::new(),
                require: Require::Partial,
                session: None,
            });
            let opened = StateDir::open(&state, Some(&policy.unwrap()));
            assert_eq!(opened.is_ok(), used, "{}", root.path().display());
        }
    }

    #[test]
    fn links_and_temp_areas_and_what_others_may_write_are_not_used() {
        let place = place();
        std::fs::create_dir(place.path().join("real")).unwrap();
        symlink("real", place.path().join("link")).unwrap();
        assert!(StateDir::open(&place.path().join("link/state"), None).is_err());
        assert!(
            !place.path().join("real/state").exists(),
            "nothing was made behind the link"
        );
        assert!(StateDir::open(Path::new("/tmp/ringfence-state"), None).is_err());
        let open = place.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(StateDir::open(&open, None).is_err());
    }
}
