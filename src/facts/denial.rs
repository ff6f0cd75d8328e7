//! What was refused.

use std::path::PathBuf;

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

/// What was attempted, in a report's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// On what: absolute, resolved as the process saw it. With a slash at its end: on some name in
    /// that directory, which is all that the kernel's log tells.
    pub path: PathBuf,
    /// The program's name, as the kernel keeps it (15 bytes at most). Not known when `pid` is 0.
    pub program: String,
    /// The process; 0 when it is not known.
    pub pid: i32,
    /// What it was told.
    pub errno: Errno,
    /// How often.
    pub count: u64,
}

/// Where what was seen comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Every call that changes files waited and was looked at.
    #[default]
    Notify,
    /// Only refused calls were looked at, those of programs that use the accelerator.
    Retry,
    /// The kernel's audit log: what it has was refused, and more may have been.
    Audit,
}

/// What was seen of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Where it comes from.
    pub source: Source,
    /// Each kind of denial.
    pub denials: Vec<Denial>,
    /// How many more denials there were than are kept.
    pub omitted: u64,
    /// How many calls could not be looked at, and were left to the kernel.
    pub unseen: u64,
}
