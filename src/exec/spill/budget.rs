//! How much finished runs may leave behind, and for how long.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::dir::Dir;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// How long the output of a finished run is kept.
const AGE: Duration = Duration::from_hours(7 * 24);
/// How much of all runs is kept, in bytes.
const SIZE: u64 = 1 << 30;
/// How many runs are looked at in one sweep.
const MOST: usize = 4096;
/// A run's directory is empty while it begins.
const BEGINNING: Duration = Duration::from_mins(1);

/// The names of the files in a run's directory; nothing else is ever removed.
pub(super) const FILES: [&CStr; 2] = [c"stdout", c"stderr"];

/// What a run left.
struct Left {
    name: CString,
    /// When it was last written, since 1970.
    last: Duration,
    bytes: u64,
}

/// Removes the directories of runs beyond their age or beyond the size of all, the oldest first.
/// One whose run goes on is locked, and stays.
pub(super) fn sweep(all: &File) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    sweep_at(all, now, SIZE);
}

fn sweep_at(all: &File, now: Duration, size: u64) {
    let mut found = found(all);
    found.sort_by_key(|left| left.last);
    let mut sum: u64 = found.iter().map(|left| left.bytes).sum();
    for left in found {
        let age = now.saturating_sub(left.last);
        let begins = left.bytes == 0 && age < BEGINNING;
        if (age > AGE || sum > size) && !begins && remove(all, &left.name) {
            sum -= left.bytes;
        }
    }
}

fn found(all: &File) -> Vec<Left> {
    let Ok(listing) = open(all, c".").and_then(|again| Dir::from_fd(again.into())) else {
        return Vec::new();
    };
    listing
        .into_iter()
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_owned())
        .filter(|name| name.as_c_str() != c"." && name.as_c_str() != c"..")
        .take(MOST)
        .filter_map(|name| look(all, name))
        .collect()
}

fn look(all: &File, name: CString) -> Option<Left> {
    let directory = open(all, &name).ok()?;
    let about = directory.metadata().ok()?;
    let mut left = Left {
        name,
        last: since_1970(about.mtime()),
        bytes: 0,
    };
    for file in FILES {
        if let Ok(about) = fstatat(&directory, file, AtFlags::AT_SYMLINK_NOFOLLOW) {
            let FileStat { st_mtime, st_size, .. } = about;
            left.last = left.last.max(since_1970(st_mtime));
            left.bytes += u64::try_from(st_size).unwrap_or(0);
        }
    }
    Some(left)
}

fn since_1970(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// Removes a run's files and its directory. Whether it is gone.
fn remove(all: &File, name: &CStr) -> bool {
    let Ok(directory) = open(all, name) else { return false };
    // Held until the directory is gone.
    if directory.try_lock().is_err() {
        return false;
    }
    for file in FILES {
        let _ = unlinkat(&directory, file, UnlinkatFlags::NoRemoveDir);
    }
    unlinkat(all, name, UnlinkatFlags::RemoveDir).is_ok()
}

fn open(parent: &File, name: &CStr) -> nix::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(parent, name, flags, Mode::empty()).map(File::from)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::state::tests::place;

    const DAY: u64 = 24 * 60 * 60;

    /// A finished run that was last written this many days ago.
    fn run(all: &Path, name: &str, bytes: u64, days: u64) {
        let directory = all.join(name);
        fs::create_dir(&directory).unwrap();
        let file = File::create(directory.join("stdout")).unwrap();
        file.set_len(bytes).unwrap();
        let then = SystemTime::now() - Duration::from_secs(days * DAY);
        file.set_modified(then).unwrap();
        File::open(&directory).unwrap().set_modified(then).unwrap();
    }

    /// The runs that are left when `size` bytes may be.
    fn left(all: &Path, size: u64) -> Vec<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        sweep_at(&File::open(all).unwrap(), now, size);
        let mut names: Vec<_> = fs::read_dir(all)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_older_than_a_week_goes_and_a_run_that_goes_on_stays() {
        let all = place();
        for (name, days) in [("a", 8), ("b", 9), ("c", 6), ("d", 0)] {
            run(all.path(), name, 1, days);
        }
        let goes_on = File::open(all.path().join("b")).unwrap();
        goes_on.try_lock().unwrap();
        assert_eq!(left(all.path(), SIZE), ["b", "c", "d"]);
        drop(goes_on);
        assert_eq!(left(all.path(), SIZE), ["c", "d"]);
    }

    #[test]
    fn the_oldest_go_until_the_rest_is_small_enough() {
        let all = place();
        for (name, bytes, days) in [("a", 10, 1), ("b", 10, 3), ("c", 10, 2), ("d", 10, 0)] {
            run(all.path(), name, bytes, days);
        }
        assert_eq!(left(all.path(), 40), ["a", "b", "c", "d"]);
        assert_eq!(left(all.path(), 39), ["a", "c", "d"]);
        assert_eq!(left(all.path(), 10), ["d"]);
        assert_eq!(left(all.path(), 0), [""; 0]);
    }

    #[test]
    fn what_is_no_runs_is_left_alone() {
        let all = place();
        fs::write(all.path().join("file"), "x").unwrap();
        run(all.path(), "with-more", 5, 30);
        fs::write(all.path().join("with-more/notes"), "mine").unwrap();
        let outside = place();
        run(outside.path(), "run", 5, 30);
        std::os::unix::fs::symlink(outside.path().join("run"), all.path().join("link")).unwrap();
        assert_eq!(left(all.path(), 0), ["file", "link", "with-more"]);
        assert_eq!(fs::read_to_string(all.path().join("with-more/notes")).unwrap(), "mine");
        assert!(outside.path().join("run/stdout").exists());
    }

    #[test]
    fn a_run_that_just_begins_is_left_alone() {
        let all = place();
        fs::create_dir(all.path().join("begins")).unwrap();
        run(all.path(), "old", 5, 1);
        assert_eq!(left(all.path(), 0), ["begins"]);
    }
}
