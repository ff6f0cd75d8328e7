//! The private temp directory of a run.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::dir::Dir;
use nix::fcntl::{AT_FDCWD, OFlag, openat, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use ringfence_backend::{HOST_TEMP, PinnedPath, descriptor};

/// A directory of mode 0700 that is removed with everything in it when this is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    pinned: PinnedPath,
}

impl Scratch {
    /// Makes the directory.
    ///
    /// # Errors
    /// The last place's reason, when none of the host's temp directories takes one.
    pub(super) fn make() -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for place in HOST_TEMP {
            let mut builder = tempfile::Builder::new();
            builder
                .prefix("rf-")
                .permissions(std::fs::Permissions::from_mode(0o700));
            match builder.tempdir_in(Path::new(place)) {
                Ok(made) => {
                    return Ok(Self {
                        pinned: PinnedPath::open(&made.keep())?,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub(super) const fn pinned(&self) -> &PinnedPath {
        &self.pinned
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed stays in the host's temp directory, where it is swept like the rest.
        let _ = remove(self.pinned.path());
    }
}

/// Removes a directory that a command had in its hands.
///
/// Names are resolved one at a time beneath open descriptors and links are never followed, so
/// nothing outside can be reached. Directories found inside are first moved up to the top: the
/// depth that a command can nest them to costs neither descriptors nor stack.
fn remove(path: &Path) -> io::Result<()> {
    let top = open_directory(AT_FDCWD, &CString::new(path.as_os_str().as_encoded_bytes())?)?;
    let mut moved = 0_u64;
    // A name that the command cannot have guessed and taken.
    let prefix = u64::from_ne_bytes(descriptor::random()?);
    let mut progress = true;
    while progress {
        progress = false;
        for name in names(&top)? {
            if unlinkat(&top, name.as_c_str(), UnlinkatFlags::NoRemoveDir).is_ok() {
                progress = true;
                continue;
            }
            let Ok(inner) = open_directory(&top, &name) else {
                continue;
            };
            for deeper in names(&inner).unwrap_or_default() {
                if unlinkat(&inner, deeper.as_c_str(), UnlinkatFlags::NoRemoveDir).is_err() {
                    // rename(2) of a directory needs write permission on the directory itself.
                    allow(&inner, &deeper);
                    moved += 1;
                    let free = format!(".rf-{prefix:016x}-{moved}");
                    progress |= renameat(&inner, deeper.as_c_str(), &top, free.as_str()).is_ok();
                }
            }
            progress |= unlinkat(&top, name.as_c_str(), UnlinkatFlags::RemoveDir).is_ok();
        }
    }
    Ok(unlinkat(AT_FDCWD, path, UnlinkatFlags::RemoveDir)?)
}

/// Lets the owner into a directory again. A link is left alone.
fn allow(parent: impl AsFd, name: &CStr) {
    let _ = fchmodat(parent, name, Mode::S_IRWXU, FchmodatFlags::NoFollowSymlink);
}

fn open_directory(parent: impl AsFd, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    allow(&parent, name);
    Ok(openat(parent, name, flags, Mode::empty())?)
}

fn names(directory: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut listing = Dir::from_fd(openat(
        directory,
        c".",
        OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
        Mode::empty(),
    )?)?;
    let mut names = Vec::new();
    for entry in listing.iter() {
        let name = entry?.file_name().to_owned();
        if name.as_c_str() != c"." && name.as_c_str() != c".." {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_scratch_directory_is_private_and_goes_with_everything_in_it() {
        let scratch = Scratch::make().unwrap();
        let path = scratch.pinned().path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir_all(path.join("a/b/c")).unwrap();
        fs::write(path.join("a/b/f"), "x").unwrap();
        fs::set_permissions(path.join("a/b"), fs::Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o0)).unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn links_out_of_a_scratch_directory_are_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        fs::set_permissions(outside.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let scratch = Scratch::make().unwrap();
        std::os::unix::fs::symlink(outside.path(), scratch.pinned().path().join("link")).unwrap();
        drop(scratch);
        assert!(outside.path().join("kept").exists());
        assert_eq!(
            fs::metadata(outside.path()).unwrap().permissions().mode() & 0o777,
            0o755
        );
    }

    #[test]
    fn depth_does_not_matter() {
        let scratch = Scratch::make().unwrap();
        let path = scratch.pinned().path().to_owned();
        let mut at = open_directory(AT_FDCWD, &CString::new(path.as_os_str().as_encoded_bytes()).unwrap()).unwrap();
        for _ in 0..3000 {
            nix::sys::stat::mkdirat(&at, c"d", Mode::S_IRWXU).unwrap();
            at = open_directory(&at, c"d").unwrap();
        }
        drop(scratch);
        assert!(!path.exists());
    }
}
