//! What was refused.

use std::path::PathBuf;

use nix::errno::Errno;
use serde::Serialize;

/// What was attempted, in a report's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Making a file by opening it.
    Create,
    /// Opening for writing.
    Write,
    /// Cutting or extending.
    Truncate,
    /// Removing a name or a directory.
    Remove,
    /// Renaming.
    Rename,
    /// Making a second name.
    Link,
    /// Making a symbolic link.
    Symlink,
    /// Making a directory.
    Mkdir,
    /// Making a node.
    Mknod,
    /// Changing mode bits.
    Chmod,
    /// Changing owner or group.
    Chown,
    /// Changing times.
    Utime,
    /// Changing an extended attribute.
    Xattr,
    /// Changing inode flags.
    Flags,
    /// Changing mounts.
    Mount,
}

/// One kind of denial: everything but the count is the first one's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// What was attempted.
    pub op: Operation,
    /// On what: absolute, resolved as the process saw it.
    pub path: PathBuf,
    /// The program's name, as the kernel keeps it (15 bytes at most).
    pub program: String,
    /// The process.
    pub pid: i32,
    /// What it was told.
    pub errno: Errno,
    /// How often.
    pub count: u64,
}

/// What a supervisor has seen of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Whether only refused calls were looked at, those of programs that use the accelerator.
    pub accelerated: bool,
    /// Each kind of denial.
    pub denials: Vec<Denial>,
    /// How many more denials there were than are kept.
    pub omitted: u64,
    /// How many calls could not be looked at, and were left to the kernel.
    pub unseen: u64,
}
