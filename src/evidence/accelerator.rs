//! The patched copy of the host's C library: made once, checked at every run.
//!
//! The copy lives in the state directory, where only its owner writes, and is shown in place of the
//! host's library inside a run's own mounts; the host's is never touched. Whatever is not as
//! expected (another library, a copy that changed, a place where nothing may be executed) means no
//! accelerator, and then every call that changes files waits.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, statvfs};
use ringfence_backend::{Accelerator, PinnedPath, descriptor};

use super::patch::patch;

/// Where distributions keep the C library that programs are linked with.
const LIBRARIES: [&str; 4] = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib64/libc.so.6",
    "/usr/lib64/libc.so.6",
    "/usr/lib/libc.so.6",
];
/// The form of the copy: another number makes the copies of older versions unknown.
const FORM: u32 = 1;
/// No C library is this large; what is, is not read.
const LARGEST: u64 = 64 << 20;

/// The accelerator kept in a state directory, made now if it is not there.
///
/// # Errors
/// Why there is none, in a sentence.
pub(crate) fn find(state_dir: &Path) -> Result<Accelerator, String> {
    let found = LIBRARIES.iter().find_map(|path| PinnedPath::open(Path::new(path)).ok());
    let library = found.ok_or("this host has no C library that is known")?;
    let about = fs::metadata(library.path()).map_err(|e| e.to_string())?;
    let key = format!(
        "{FORM} {}:{}:{}:{}.{} {}",
        about.dev(),
        about.ino(),
        about.size(),
        about.ctime(),
        about.ctime_nsec(),
        nix::unistd::geteuid()
    );
    if let Some(kept) = kept(state_dir, &key, &library) {
        return Ok(kept);
    }
    make(state_dir, &key, &library, about.size())?;
    kept(state_dir, &key, &library)
        .ok_or_else(|| "the copy of the C library cannot be used where it is kept".to_owned())
}

/// The note that tells which copy is in force: its key, its cookie, and the copy's own identity.
fn note(state_dir: &Path) -> PathBuf {
    state_dir.join("accelerator")
}

fn copy(state_dir: &Path, cookie: u64) -> PathBuf {
    state_dir.join(format!("accelerator-{cookie:016x}.so"))
}

/// What a copy is known by: nobody can change its content without changing this.
fn identity(copy: &Path) -> Option<String> {
    let about = fs::symlink_metadata(copy).ok()?;
    let mine = about.uid() == nix::unistd::geteuid().as_raw() && about.mode() & 0o022 == 0;
    let sound = about.is_file() && about.nlink() == 1 && mine;
    sound.then(|| {
        format!(
            "{}:{}:{}:{}.{}",
            about.dev(),
            about.ino(),
            about.size(),
            about.ctime(),
            about.ctime_nsec()
        )
    })
}

fn kept(state_dir: &Path, key: &str, library: &PinnedPath) -> Option<Accelerator> {
    let text = read_own(&note(state_dir))?;
    let mut lines = text.lines();
    if lines.next() != Some(key) {
        return None;
    }
    let cookie = u64::from_str_radix(lines.next()?, 16).ok()?;
    let path = copy(state_dir, cookie);
    if lines.next() != identity(&path).as_deref() {
        return None;
    }
    let copy = PinnedPath::open(&path).ok()?;
    let executable = statvfs(copy.path()).is_ok_and(|about| !about.flags().contains(FsFlags::ST_NOEXEC));
    executable.then(|| Accelerator {
        copy,
        library: library.path().to_owned(),
        cookie,
    })
}

/// A small file that nobody else can have written.
fn read_own(path: &Path) -> Option<String> {
    let file = fs::File::options()
        .read(true)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path)
        .ok()?;
    let about = file.metadata().ok()?;
    if about.uid() != nix::unistd::geteuid().as_raw() || about.mode() & 0o022 != 0 {
        return None;
    }
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text).ok()?;
    Some(text)
}

fn make(state_dir: &Path, key: &str, library: &PinnedPath, size: u64) -> Result<(), String> {
    let failed = |what: &str, error: std::io::Error| format!("{what}: {error}");
    if size > LARGEST {
        return Err(format!("{} is too large for a C library", library.path().display()));
    }
    let original = fs::read(library.path()).map_err(|e| failed("the C library cannot be read", e))?;
    let cookie = u64::from_ne_bytes(descriptor::random().map_err(|e| failed("no random bytes", e))?);
    let patched = patch(&original, cookie).map_err(|e| format!("{}: {e}", library.path().display()))?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state_dir)
        .map_err(|e| failed("the state directory cannot be made", e))?;
    let store = |name: &Path, bytes: &[u8], mode: u32| -> std::io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(".accelerator-")
            .tempfile_in(state_dir)?;
        file.write_all(bytes)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
        file.persist(name).map(drop).map_err(|e| e.error)
    };
    let path = copy(state_dir, cookie);
    let kept = "the copy of the C library cannot be kept";
    store(&path, &patched.bytes, 0o555).map_err(|e| failed(kept, e))?;
    let identity = identity(&path).ok_or(kept)?;
    let text = format!("{key}\n{cookie:016x}\n{identity}\n{}\n", patched.places);
    store(&note(state_dir), text.as_bytes(), 0o600).map_err(|e| failed(kept, e))?;
    forget_others(state_dir, &path);
    Ok(())
}

/// Removes copies that no note names any more. A run that shows one keeps it until it ends.
fn forget_others(state_dir: &Path, current: &Path) {
    for entry in fs::read_dir(state_dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let old = name.to_string_lossy().starts_with("accelerator-") && entry.path() != current;
        if old {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_is_made_once_and_found_again() {
        let state = tempfile::tempdir().unwrap();
        let first = find(state.path()).unwrap();
        let again = find(state.path()).unwrap();
        assert_eq!((first.copy.id(), first.cookie), (again.copy.id(), again.cookie));
        assert_ne!(fs::read(first.copy.path()).unwrap(), fs::read(&first.library).unwrap());
    }

    #[test]
    fn a_copy_that_was_changed_is_made_anew() {
        let state = tempfile::tempdir().unwrap();
        let first = find(state.path()).unwrap();
        fs::set_permissions(first.copy.path(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(first.copy.path(), "no library").unwrap();
        let second = find(state.path()).unwrap();
        assert_ne!(first.cookie, second.cookie);
        assert!(!first.copy.path().exists(), "what nothing names is removed");
    }

    #[test]
    fn a_note_that_others_may_write_is_not_believed() {
        let state = tempfile::tempdir().unwrap();
        let first = find(state.path()).unwrap();
        fs::set_permissions(note(state.path()), fs::Permissions::from_mode(0o666)).unwrap();
        assert_ne!(find(state.path()).unwrap().cookie, first.cookie);
    }
}
