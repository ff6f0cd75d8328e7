//! All that can be told of a directory tree from outside, line by line.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::support::World;

/// What lies outside: the directory beside the workspace, the home, the names beside them, and in
/// `read-only` the workspace.
pub(super) fn snapshot(world: &World, workspace: bool) -> Vec<String> {
    let top = world.workspace().parent().unwrap().to_owned();
    let mut lines = vec![line(&top)];
    add(&world.beside(), &mut lines);
    add(&world.home(), &mut lines);
    if workspace {
        add(&world.workspace(), &mut lines);
    }
    lines
}

fn add(path: &Path, lines: &mut Vec<String>) {
    lines.push(line(path));
    if fs::symlink_metadata(path).is_ok_and(|about| about.is_dir()) {
        let mut entries: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for entry in entries {
            add(&entry, lines);
        }
    }
}

/// Name, type, identity, size, mode bits, owners, links, times, content, attributes and inode flags.
/// The time of the last change tells of any other change: nobody can set it.
fn line(path: &Path) -> String {
    let about = match fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(error) => return format!("{}: {error}", path.display()),
    };
    let mut line = format!(
        "{} inode {}:{} mode {:o} owner {}:{} links {} device {} size {} changed {}.{:09}/{}.{:09}",
        path.display(),
        about.dev(),
        about.ino(),
        about.mode(),
        about.uid(),
        about.gid(),
        about.nlink(),
        about.rdev(),
        about.size(),
        about.mtime(),
        about.mtime_nsec(),
        about.ctime(),
        about.ctime_nsec()
    );
    if about.is_symlink() {
        let _ = write!(line, " to {}", fs::read_link(path).unwrap().display());
        return line;
    }
    if about.is_file() {
        let content = fs::read(path).map(|content| {
            let mut hasher = DefaultHasher::new();
            content.hash(&mut hasher);
            hasher.finish()
        });
        let _ = write!(line, " content {content:?}");
    }
    if about.is_file() || about.is_dir() {
        let flags = rustix::fs::open(path, OFlags::RDONLY | OFlags::NOFOLLOW, Mode::empty())
            .and_then(rustix::fs::ioctl_getflags);
        let _ = write!(line, " flags {flags:?}");
    }
    line + &attributes(path)
}

fn attributes(path: &Path) -> String {
    let mut names = vec![0_u8; 65_536];
    let length = match rustix::fs::llistxattr(path, names.as_mut_slice()) {
        Ok(length) => length,
        Err(error) => return format!(" attributes: {error}"),
    };
    let mut attributes: Vec<_> = names[..length]
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0_u8; 65_536];
            let got = rustix::fs::lgetxattr(path, name, value.as_mut_slice());
            let shown = got.map(|length| value[..length].to_vec());
            format!(" {}={shown:?}", String::from_utf8_lossy(name))
        })
        .collect();
    attributes.sort();
    attributes.concat()
}

/// The lines that are in one of two lists and not in the other.
pub(super) fn differences(before: &[String], after: &[String]) -> Vec<String> {
    let gone = before.iter().filter(|line| !after.contains(line));
    let new = after.iter().filter(|line| !before.contains(line));
    gone.map(|line| format!("was: {line}"))
        .chain(new.map(|line| format!("is: {line}")))
        .collect()
}
