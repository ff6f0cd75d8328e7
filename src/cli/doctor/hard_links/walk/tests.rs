use std::ffi::OsStr;
use std::fs::{self, hard_link};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use nix::fcntl::{OpenHow, openat2};

use super::*;

const FAR: Bounds = Bounds {
    names: 1000,
    time: Duration::from_hours(1),
};

/// A directory with `w`, the workspace, and `out` beside it.
fn place() -> (tempfile::TempDir, WorkspaceRoot) {
    let place = tempfile::tempdir().unwrap();
    for name in ["w", "w/d", "out"] {
        fs::create_dir(place.path().join(name)).unwrap();
    }
    fs::write(place.path().join("out/f"), "outside").unwrap();
    let root = WorkspaceRoot::open(&place.path().join("w")).unwrap();
    (place, root)
}

fn names(found: &Walk) -> Vec<(&Path, u64, u64)> {
    let mut names: Vec<_> = found
        .linked
        .iter()
        .map(|file| (file.path.as_path(), file.links, file.inside))
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_with_a_name_outside_is_found_and_one_wholly_inside_is_not() {
    let (place, root) = place();
    let at = |path: &str| place.path().join(path);
    hard_link(at("out/f"), at("w/d/a")).unwrap();
    fs::write(at("w/b"), "inside").unwrap();
    hard_link(at("w/b"), at("w/d/b")).unwrap();
    fs::write(at("w/single"), "").unwrap();
    let found = walk(&root, &FAR);
    assert_eq!(names(&found), [(Path::new("d/a"), 2, 1)]);
    assert_eq!((found.linked[0].bytes, found.cut), (7, None));
    assert!(found.unread.is_empty());
}

#[test]
fn a_file_with_several_names_inside_and_one_outside_is_found_once() {
    let (place, root) = place();
    for name in ["w/a", "w/d/b"] {
        hard_link(place.path().join("out/f"), place.path().join(name)).unwrap();
    }
    let found = walk(&root, &FAR);
    assert_eq!(found.linked.len(), 1);
    assert_eq!((found.linked[0].links, found.linked[0].inside), (3, 2));
}

#[test]
fn links_by_name_are_not_followed() {
    let (place, root) = place();
    hard_link(place.path().join("out/f"), place.path().join("out/g")).unwrap();
    symlink(place.path().join("out"), place.path().join("w/away")).unwrap();
    symlink("../out/f", place.path().join("w/f")).unwrap();
    symlink(".", place.path().join("w/again")).unwrap();
    let found = walk(&root, &FAR);
    assert!(found.linked.is_empty() && found.unread.is_empty(), "{found:?}");
}

#[test]
fn odd_names_are_found_as_they_are() {
    let (place, root) = place();
    let odd = OsStr::from_bytes(b"a\xff\n\x1b");
    hard_link(place.path().join("out/f"), place.path().join("w").join(odd)).unwrap();
    assert_eq!(names(&walk(&root, &FAR)), [(Path::new(odd), 2, 1)]);
}

#[test]
fn a_walk_ends_at_its_bounds_and_says_at_which() {
    let (place, root) = place();
    for name in 0..9 {
        fs::write(place.path().join(format!("w/{name}")), "").unwrap();
    }
    let bound = |names, time| walk(&root, &Bounds { names, time }).cut;
    assert_eq!(bound(10, FAR.time), None);
    assert_eq!(bound(9, FAR.time), Some(Cut::Names));
    assert_eq!(bound(10, Duration::ZERO), Some(Cut::Time));
}

#[test]
fn a_directory_that_is_too_deep_to_be_named_is_said_to_be_left_out() {
    let (place, root) = place();
    let mut deep = place.path().join("w");
    let part = "x".repeat(200);
    // Below the longest path there is, made step by step.
    let mut fd = openat2(nix::fcntl::AT_FDCWD, &deep, OpenHow::new().flags(OFlag::O_RDONLY)).unwrap();
    for _ in 0..21 {
        nix::sys::stat::mkdirat(&fd, part.as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fd = openat2(&fd, part.as_str(), OpenHow::new().flags(OFlag::O_RDONLY)).unwrap();
        deep.push(&part);
    }
    let found = walk(&root, &FAR);
    assert_eq!(found.unread.len(), 1, "{found:?}");
    assert_eq!(found.unread[0].reason, Errno::ENAMETOOLONG.desc());
}
