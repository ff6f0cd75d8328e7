//! The smallest change of policy that would have allowed a denial.

use std::path::{Path, PathBuf};

use ringfence_backend::{HOST_TEMP, SandboxMode};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Denial, Operation};

/// Places that no policy should open: what stands there is no file of the user's.
const SYSTEM: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The policy of a run, as far as a loosening depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loosening {
    /// The mode the run was under.
    pub mode: SandboxMode,
    /// The workspace root.
    pub workspace_root: PathBuf,
    /// What the policy protects.
    pub protected: Vec<PathBuf>,
}

/// A change of policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loosen {
    /// One more writable root: the file itself, or the directory that a name is to change in.
    AddWrite(PathBuf),
    /// The next looser mode.
    Mode(SandboxMode),
}

impl Serialize for Loosen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            // A path of any bytes: one that is no text must not cost the whole report.
            Self::AddWrite(root) => super::path_entry(&mut map, "addWrite", root)?,
            Self::Mode(mode) => map.serialize_entry("mode", mode)?,
        }
        map.end()
    }
}

impl Loosening {
    /// The smallest change that would have allowed a denial; none when no policy should.
    #[must_use]
    pub fn of(&self, denial: &Denial) -> Option<Loosen> {
        let path = denial.path.as_path();
        // What is protected stays so, whatever root is added.
        if self
            .protected
            .iter()
            .any(|kept| path.starts_with(kept) || kept.starts_with(path))
        {
            return None;
        }
        if denial.op == Operation::Mount || beneath_any(path, &SYSTEM) && !beneath_any(path, &HOST_TEMP) {
            return None;
        }
        if self.mode == SandboxMode::ReadOnly {
            // A root alone means nothing in this mode.
            let opened = path.starts_with(&self.workspace_root) || beneath_any(path, &HOST_TEMP);
            return opened.then_some(Loosen::Mode(SandboxMode::WorkspaceWrite));
        }
        let root = if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            // The directory itself, without the slash that says so.
            path.components().as_path()
        } else if changes_a_name(denial.op) {
            path.parent()?
        } else {
            path
        };
        (root != Path::new("/")).then(|| Loosen::AddWrite(root.to_owned()))
    }
}

/// Whether an operation changes a directory rather than the file that is named.
const fn changes_a_name(op: Operation) -> bool {
    use Operation::{Create, Link, Mkdir, Mknod, Remove, Rename, Symlink};
    matches!(op, Create | Link | Mkdir | Mknod | Remove | Rename | Symlink)
}

fn beneath_any(path: &Path, places: &[&str]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    fn loosen(mode: SandboxMode, op: Operation, path: &str) -> Option<Loosen> {
        let denial = Denial {
            op,
            path: path.into(),
            program: "p".to_owned(),
            pid: 1,
            errno: Errno::EROFS,
            count: 1,
        };
        Loosening {
            protected: Vec::new(),
            mode,
            workspace_root: "/w".into(),
        }
        .of(&denial)
    }

    #[test]
    fn a_file_is_opened_by_itself_and_a_name_by_its_directory() {
        let mode = SandboxMode::WorkspaceWrite;
        assert_eq!(
            loosen(mode, Operation::Write, "/etc/x"),
            Some(Loosen::AddWrite("/etc/x".into()))
        );
        assert_eq!(
            loosen(mode, Operation::Create, "/srv/a/x"),
            Some(Loosen::AddWrite("/srv/a".into()))
        );
    }

    #[test]
    fn a_root_that_is_no_text_is_told_beside_its_bytes() {
        use std::os::unix::ffi::OsStrExt;
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/a/\xff"));
        let told = serde_json::to_value(Loosen::AddWrite(odd.to_owned())).unwrap();
        assert_eq!(
            told,
            serde_json::json!({"addWrite": "/a/\u{fffd}", "addWriteBytes": "L2Ev/w=="})
        );
    }

    #[test]
    fn a_directory_that_stands_for_a_name_in_it_is_opened_itself() {
        let Some(Loosen::AddWrite(root)) = loosen(SandboxMode::WorkspaceWrite, Operation::Create, "/srv/a/") else {
            panic!("nothing would have allowed it");
        };
        assert_eq!(root.as_os_str(), "/srv/a");
        assert_eq!(loosen(SandboxMode::WorkspaceWrite, Operation::Create, "/"), None);
    }

    #[test]
    fn read_only_is_loosened_by_its_mode_where_that_helps() {
        let mode = Some(Loosen::Mode(SandboxMode::WorkspaceWrite));
        assert_eq!(loosen(SandboxMode::ReadOnly, Operation::Create, "/w/x"), mode);
        assert_eq!(loosen(SandboxMode::ReadOnly, Operation::Create, "/tmp/x"), mode);
        assert_eq!(loosen(SandboxMode::ReadOnly, Operation::Create, "/etc/x"), None);
    }

    #[test]
    fn the_root_and_the_systems_own_places_are_never_opened() {
        let mode = SandboxMode::WorkspaceWrite;
        for (op, path) in [
            (Operation::Create, "/x"),
            (Operation::Write, "/proc/sys/vm/drop_caches"),
            (Operation::Write, "/dev/sda"),
            (Operation::Mount, "/srv"),
        ] {
            assert_eq!(loosen(mode, op, path), None, "{path}");
        }
    }
}
