//! The files themselves: what is opened, and what is believed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use ringfence_backend::WorkspaceRoot;

use crate::config::{ConfigError, Files, Origin, WORKSPACE_FILE, load};

/// A workspace with this file in it.
fn workspace(text: &str) -> (tempfile::TempDir, WorkspaceRoot) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(WORKSPACE_FILE), text).unwrap();
    let root = WorkspaceRoot::open(dir.path()).unwrap();
    (dir, root)
}

fn in_workspace(root: &WorkspaceRoot) -> Files<'_> {
    Files {
        workspace: Some(root),
        ..Files::default()
    }
}

#[test]
fn what_was_read_is_known_by_its_content() {
    let (_dir, root) = workspace("schema = 1\n");
    let settings = load(&in_workspace(&root)).unwrap();
    let [source] = settings.sources() else {
        panic!("one file")
    };
    assert_eq!(
        (source.origin, source.path.clone()),
        (Origin::Workspace, root.path().join(WORKSPACE_FILE))
    );
    // As sha256sum(1) has it.
    assert_eq!(
        source.sha256,
        "da93db77ebb07776dbd095f79fe28cbf4d42340c27bc33547ed7eeb2d3c93ea1"
    );
}

#[test]
fn a_file_that_is_there_and_cannot_be_read_is_an_error() {
    let (dir, root) = workspace("");
    let path = dir.path().join(WORKSPACE_FILE);
    let unreadable = || matches!(load(&in_workspace(&root)), Err(ConfigError::Unreadable { .. }));
    fs::write(&path, b"schema = 1\n# \xff\n").unwrap();
    assert!(unreadable(), "no text");
    fs::write(&path, format!("schema = 1\n#{}\n", "x".repeat(1 << 20))).unwrap();
    assert!(unreadable(), "too large");
    fs::remove_file(&path).unwrap();
    assert!(load(&in_workspace(&root)).is_ok(), "not there");
    fs::create_dir(&path).unwrap();
    assert!(unreadable(), "a directory");
    fs::remove_dir(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(unreadable(), "a FIFO, and it is not waited for");
    fs::remove_file(&path).unwrap();
    fs::write(dir.path().join("real"), "schema = 1\n").unwrap();
    symlink("real", &path).unwrap();
    assert!(unreadable(), "a link");
}

#[test]
fn a_file_that_everybody_may_write_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    fs::write(&file, "schema = 1\n").unwrap();
    let load_with = |mode: u32| {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let user = load(&Files {
            user: Some(&file),
            ..Files::default()
        });
        let system = load(&Files {
            system: Some(&file),
            ..Files::default()
        });
        let doubtful = |outcome: Result<_, ConfigError>| matches!(outcome, Err(ConfigError::Doubtful { .. }));
        (doubtful(user), doubtful(system))
    };
    let others = !nix::unistd::geteuid().is_root();
    assert_eq!(load_with(0o644), (false, others), "the system's belongs to root");
    assert_eq!(load_with(0o664), (false, true));
    assert_eq!(load_with(0o666), (true, true));
}
