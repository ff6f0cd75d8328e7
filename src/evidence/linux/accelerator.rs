//! The patched copy of the host's C library: made once, checked at every run.
//!
//! The copy lives in the state directory, which is used only where no run can write; the note that
//! vouches for it is in the user's keyring, which no confined command reaches. It is shown in place of the
//! host's library inside a run's own mounts; the host's is never touched. Whatever is not as
//! expected (another library, a copy that changed, a place where nothing may be executed) means no
//! accelerator, and then every call that changes files waits.

use std::ffi::CStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use nix::sys::statvfs::{FsFlags, statvfs};
use ringfence_backend::{Accelerator, PinnedPath, descriptor, keyring};

use crate::state::StateDir;

use super::patch::patch;

/// Where distributions keep the C library that programs are linked with.
const LIBRARIES: [&str; 5] = [
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib64/libc.so.6",
    "/usr/lib/libc.so.6",
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib64/libc.so.6",
];
/// The form of the copy: another number makes the copies of older versions unknown.
const FORM: u32 = 2;
/// No C library is this large; what is, is not read.
const LARGEST: u64 = 64 << 20;

/// Which copy is in force: for which library, with which cookie, and the copy's own identity. In the
/// keyring, where no confined command can write.
const NOTE: &CStr = c"ringfence:accelerator";

/// The accelerator kept in a state directory, made now if it is not there.
///
/// # Errors
/// Why there is none, in a sentence.
pub(crate) fn find(state: &StateDir) -> Result<Accelerator, String> {
    let found = LIBRARIES.iter().find_map(|path| PinnedPath::open(Path::new(path)).ok());
    let library = found.ok_or("this host has no C library that is known")?;
    let about = fs::metadata(library.path()).map_err(|e| e.to_string())?;
    let key = format!("{FORM} {} {}", identity_of(&about), state.path().display());
    if let Some(kept) = kept(state, &key, &library) {
        return Ok(kept);
    }
    let (cookie, identity) = make(state, &key, &library, about.size())?;
    open(state, cookie, &identity, &library)
        .ok_or_else(|| "the copy of the C library cannot be used where it is kept".to_owned())
}

fn name(cookie: u64) -> String {
    format!("accelerator-{cookie:016x}.so")
}

/// What a file is known by: nobody can change its content without changing this.
fn identity_of(about: &fs::Metadata) -> String {
    format!(
        "{}:{}:{}:{}.{}",
        about.dev(),
        about.ino(),
        about.size(),
        about.ctime(),
        about.ctime_nsec()
    )
}

/// The identity of a copy that is ours alone.
fn identity(copy: &Path) -> Option<String> {
    let about = fs::symlink_metadata(copy).ok()?;
    let mine = about.uid() == nix::unistd::geteuid().as_raw() && about.mode() & 0o022 == 0;
    (about.is_file() && about.nlink() == 1 && mine).then(|| identity_of(&about))
}

fn kept(state: &StateDir, key: &str, library: &PinnedPath) -> Option<Accelerator> {
    let note = keyring::kept(NOTE)?;
    let mut lines = note.lines();
    if lines.next() != Some(key) {
        return None;
    }
    let cookie = u64::from_str_radix(lines.next()?, 16).ok()?;
    open(state, cookie, lines.next()?, library)
}

/// Opens a copy, if it is the one that is meant and may be used where it stands.
fn open(state: &StateDir, cookie: u64, meant: &str, library: &PinnedPath) -> Option<Accelerator> {
    // By its path, because the run's own mounts show it by its path, where the identity of what was
    // opened here is checked once more.
    let copy = PinnedPath::open(&state.path().join(name(cookie))).ok()?;
    let held = identity(&state.held().join(name(cookie)))?;
    let same = held == meant && held.starts_with(&format!("{}:{}:", copy.id().device, copy.id().inode));
    let executable = statvfs(copy.path()).is_ok_and(|about| !about.flags().contains(FsFlags::ST_NOEXEC));
    (same && executable).then(|| Accelerator {
        copy,
        library: library.path().to_owned(),
        cookie,
    })
}

/// Makes a copy and says of it which it is.
fn make(state: &StateDir, key: &str, library: &PinnedPath, size: u64) -> Result<(u64, String), String> {
    let failed = |what: &str, error: std::io::Error| format!("{what}: {error}");
    if size > LARGEST {
        return Err(format!("{} is too large for a C library", library.path().display()));
    }
    let original = fs::read(library.path()).map_err(|e| failed("the C library cannot be read", e))?;
    let cookie = u64::from_ne_bytes(descriptor::random().map_err(|e| failed("no random bytes", e))?);
    let patched = patch(&original, cookie).map_err(|e| format!("{}: {e}", library.path().display()))?;
    let kept = "the copy of the C library cannot be kept";
    let path = state.held().join(name(cookie));
    let store = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(".accelerator-")
            .tempfile_in(state.held())?;
        file.write_all(&patched.bytes)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o555))?;
        file.persist(&path).map(drop).map_err(|e| e.error)
    };
    store().map_err(|e| failed(kept, e))?;
    let identity = identity(&path).ok_or(kept)?;
    let note = format!("{key}\n{cookie:016x}\n{identity}\n");
    keyring::keep(NOTE, &note).map_err(|e| failed("the kernel keeps no keys for this user", e))?;
    forget_others(&state.held(), &name(cookie));
    Ok((cookie, identity))
}

/// Removes copies that no note names any more. A run that shows one keeps it until it ends.
fn forget_others(state: &Path, current: &str) {
    for entry in fs::read_dir(state).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name != current && (name.starts_with("accelerator-") || name.starts_with(".accelerator-")) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;
    use crate::state::tests::place;

    /// The keyring is the user's, so one test at a time.
    static ALONE: Mutex<()> = Mutex::new(());

    fn state() -> (MutexGuard<'static, ()>, tempfile::TempDir, StateDir) {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let place = place();
        let state = StateDir::open(place.path(), None).unwrap();
        (alone, place, state)
    }

    #[test]
    fn the_copy_is_made_once_and_found_again() {
        let (_alone, _place, state) = state();
        let first = find(&state).unwrap();
        let again = find(&state).unwrap();
        assert_eq!((first.copy.id(), first.cookie), (again.copy.id(), again.cookie));
        assert_ne!(fs::read(first.copy.path()).unwrap(), fs::read(&first.library).unwrap());
    }

    #[test]
    fn a_copy_that_was_changed_is_made_anew() {
        let (_alone, _place, state) = state();
        let first = find(&state).unwrap();
        fs::set_permissions(first.copy.path(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(first.copy.path(), "no library").unwrap();
        let second = find(&state).unwrap();
        assert_ne!(first.cookie, second.cookie);
        assert!(!first.copy.path().exists(), "what nothing names is removed");
    }

    #[test]
    fn a_copy_in_another_place_is_another_copy() {
        let (_alone, _place, state) = state();
        let first = find(&state).unwrap();
        let elsewhere = place();
        let forged = elsewhere.path().join(name(first.cookie));
        fs::write(&forged, "forged").unwrap();
        let second = find(&StateDir::open(elsewhere.path(), None).unwrap()).unwrap();
        assert_ne!(second.cookie, first.cookie);
        assert!(!forged.exists());
    }
}
