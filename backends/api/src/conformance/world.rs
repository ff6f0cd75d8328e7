//! The files that runs try to change, and whether they did.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::{must, said};
use crate::descriptor;

/// Every file that an attempt on content or metadata has to itself, so that none stands in another's way.
const FILES: [&str; 27] = [
    "write",
    "append",
    "cut",
    "cut2",
    "truncate",
    "remove",
    "rename",
    "out",
    "over",
    "swap",
    "link",
    "again",
    "root",
    "relative",
    "linked-to",
    "mode",
    "owner",
    "times",
    "attribute",
    "bare",
    "fd-mode",
    "fd-owner",
    "fd-times",
    "fd-attribute",
    "flags",
    "magic",
    "newer",
];

/// What each of them holds.
const CONTENT: &str = "keep\n";

/// The attribute that one of them has.
const ATTRIBUTE: &std::ffi::CStr = c"user.ringfence";

/// Makes a directory with a file for every attempt.
pub(super) fn plant(directory: &Path) -> Result<(), String> {
    said(directory.display(), fs::create_dir(directory))?;
    for name in FILES {
        write(&directory.join(name), CONTENT)?;
    }
    said("a directory", fs::create_dir(directory.join("empty")))?;
    said("a link", symlink("write", directory.join("leads")))?;
    let bare = said("a path", CString::new(directory.join("bare").as_os_str().as_bytes()))?;
    said("an attribute", descriptor::set_attribute(&bare, ATTRIBUTE, b"keep", 0))
}

/// Makes a directory with what attempts carry elsewhere, and a link to a file of the other.
pub(super) fn plant_home(directory: &Path, other: &Path) -> Result<(), String> {
    said(directory.display(), fs::create_dir(directory))?;
    for name in ["in", "over", "swap", "linked"] {
        write(&directory.join(name), "new\n")?;
    }
    said("a link", symlink(other.join("linked-to"), directory.join("away")))
}

/// Writes a file that its owner alone may change.
pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    said(path.display(), fs::write(path, text))?;
    said(
        path.display(),
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)),
    )
}

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<String, String> {
    said(path.display(), fs::read_to_string(path))
}

/// The names in a directory, sorted.
pub(super) fn names(directory: &Path) -> Result<Vec<String>, String> {
    let entries = said(directory.display(), fs::read_dir(directory))?;
    let names = entries.map(|entry| Ok(said("a directory", entry)?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>, String>>()?;
    names.sort();
    Ok(names)
}

/// All that can be known of a tree. Whatever changes a file's metadata changes its `st_ctime`, too.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    root: PathBuf,
    files: BTreeMap<PathBuf, String>,
}

impl Snapshot {
    /// Looks at everything at and beneath a directory.
    pub(super) fn of(root: &Path) -> Result<Self, String> {
        let mut files = BTreeMap::new();
        look(root, &mut files)?;
        Ok(Self {
            root: root.to_owned(),
            files,
        })
    }

    /// Whether nothing changed since.
    pub(super) fn must_hold(&self) -> Result<(), String> {
        let now = Self::of(&self.root)?;
        let paths = self.files.keys().chain(now.files.keys());
        let other = paths.filter(|path| self.files.get(*path) != now.files.get(*path));
        let mut changes: Vec<_> = other
            .map(|path| {
                let shown = |files: &BTreeMap<PathBuf, String>| files.get(path).cloned().unwrap_or("nothing".into());
                let (before, after) = (shown(&self.files), shown(&now.files));
                format!("{}: was {before}, is {after}", path.display())
            })
            .collect();
        changes.dedup();
        must(changes.is_empty(), || format!("the run changed {}", changes.join("; ")))
    }
}

fn look(path: &Path, files: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let about = said(path.display(), fs::symlink_metadata(path))?;
    let kind = about.file_type();
    let content = if kind.is_file() {
        said(path.display(), fs::read(path))?
    } else if kind.is_symlink() {
        let to = said(path.display(), fs::read_link(path))?;
        to.as_os_str().as_bytes().to_vec()
    } else {
        Vec::new()
    };
    let odd = kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device();
    files.insert(
        path.to_owned(),
        format!(
            "{:o} of {}:{} inode {} links {} size {} changed {}.{} and {}.{}{} with {:?}",
            about.mode(),
            about.uid(),
            about.gid(),
            about.ino(),
            about.nlink(),
            about.size(),
            about.mtime(),
            about.mtime_nsec(),
            about.ctime(),
            about.ctime_nsec(),
            if odd { " special" } else { "" },
            String::from_utf8_lossy(&content),
        ),
    );
    if kind.is_dir() {
        for name in names(path)? {
            look(&path.join(name), files)?;
        }
    }
    Ok(())
}
