//! Whether the launcher stands where it was to stand: bubblewrap is asked for a boundary, and not believed.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use ringfence_backend::status::{Failure, Stage};
use ringfence_backend::{FileId, PinnedPath};

use crate::arguments::NODES;
use crate::order::{Name, Order, mount_namespace, pinned};

/// A file system of the namespace's own, in which terminals are made.
const TERMINALS: &str = "/dev/pts";

/// How much of the table of mounts is read at a time: all of it on most hosts.
const TABLE: usize = 64 * 1024;

const fn failed(stage: Stage, errno: Errno) -> Failure {
    Failure {
        stage,
        errno: errno as i32,
    }
}

/// Whether this process stands in namespaces of the run's own, so that what it does to mounts is nobody else's affair.
///
/// # Errors
/// What is not as it was asked for.
pub(crate) fn stands_apart(order: &Order) -> Result<(), Failure> {
    // The first process of a namespace, and a /proc that shows it.
    let own = std::fs::read_link("/proc/self").map_err(|e| at(Stage::Place, &e))?;
    if nix::unistd::getpid().as_raw() != 1 || own != Path::new("1") {
        return Err(failed(Stage::Namespaces, Errno::ESRCH));
    }
    let here = mount_namespace().map_err(|errno| failed(Stage::Place, errno))?;
    if order.outside.is_none_or(|outside| outside == here) {
        return Err(failed(Stage::Mounts, Errno::ESRCH));
    }
    Ok(())
}

/// Looks at the mounts around the calling process. Gives what was found where something had to be.
///
/// # Errors
/// What is not as it was asked for.
pub(crate) fn check(order: &Order) -> Result<Vec<PinnedPath>, Failure> {
    let table = table().map_err(|e| at(Stage::Mounts, &e))?;
    let mounts = mounts(&table).ok_or(failed(Stage::Mounts, Errno::EINVAL))?;
    // The table leaves out what a changed root does not reach, the root itself among it.
    if !mounts.iter().any(|mount| mount.at == Path::new("/")) {
        return Err(failed(Stage::Place, Errno::ENOENT));
    }
    let seen: Vec<_> = mounts.iter().filter(|mount| mount.is_seen(&mounts)).collect();
    for mount in &seen {
        // bubblewrap leaves as it is what its user cannot reach, and so does the command.
        if mount.writable && !order.may_be_writable(&mount.at) && !is_out_of_reach(&mount.at) {
            return Err(failed(Stage::Place, Errno::EROFS));
        }
        // What is mounted on the host later would come with flags of its own.
        if mount.shares && order.nodes.is_empty() {
            return Err(failed(Stage::Place, Errno::EBUSY));
        }
        // Without a domain and a user namespace, it leads to processes that are confined elsewhere.
        if mount.processes && !mount.at.starts_with("/proc") && order.stands_alone() {
            return Err(failed(Stage::Place, Errno::EXDEV));
        }
        // On a read-only mount, too, a device can be written.
        if mount.devices && !order.may_have_devices(&mount.at) && !is_out_of_reach(&mount.at) {
            return Err(failed(Stage::Place, Errno::ENODEV));
        }
    }
    let mut found = Vec::with_capacity(order.found.len());
    for (path, device, inode) in &order.found {
        let stage = if order.replaced.as_ref() == Some(path) {
            Stage::Accelerator
        } else if order.read_only.contains(path) {
            Stage::Protected
        } else {
            Stage::WritableRoot
        };
        let id = FileId {
            device: *device,
            inode: *inode,
        };
        // What was to be mounted here may have landed elsewhere, while somebody exchanged the names on the way.
        let here = seen.iter().find(|mount| mount.at == **path);
        if here.is_none_or(|mount| mount.writable && stage != Stage::WritableRoot) {
            return Err(failed(stage, Errno::EINVAL));
        }
        found.push(pinned(path, id).map_err(|e| at(stage, &e))?);
    }
    Ok(found)
}

/// Whether this user, without capabilities, cannot get to a path.
fn is_out_of_reach(path: &Path) -> bool {
    nix::sys::stat::lstat(path) == Err(Errno::EACCES)
}

/// The table of mounts. The kernel writes it anew for each read, so there are few of them.
fn table() -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open("/proc/self/mountinfo")?;
    let mut bytes = Vec::with_capacity(TABLE);
    let mut part = vec![0; TABLE];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(bytes),
            got => bytes.extend_from_slice(part.get(..got).unwrap_or_default()),
        }
    }
}

fn at(stage: Stage, error: &std::io::Error) -> Failure {
    Failure {
        stage,
        errno: error.raw_os_error().unwrap_or(Errno::EINVAL as i32),
    }
}

impl Order {
    /// Whether a mount at this path is one that was asked for, or stands beneath one.
    fn may_be_writable(&self, at: &Path) -> bool {
        // Where several lie above one another, the nearest counts.
        let nearest = |paths: &[Name]| {
            let above = paths.iter().filter(|path| at.starts_with(&***path));
            above.map(|path| path.components().count()).max()
        };
        let own = at == Path::new(TERMINALS) || self.nodes.iter().any(|node| **node == *at);
        own || nearest(&self.writable) > nearest(&self.read_only)
    }

    /// Whether devices may work in a mount at this path.
    fn may_have_devices(&self, at: &Path) -> bool {
        let shown = self.shown.iter().any(|shown| **shown == *at);
        shown || at == Path::new(TERMINALS) || NODES.iter().any(|node| at == Path::new(node))
    }
}

/// One mount.
#[derive(Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own about the mount")]
struct Mount {
    id: u64,
    parent: u64,
    at: PathBuf,
    writable: bool,
    /// Whether device nodes work in it.
    devices: bool,
    /// Whether mounts made elsewhere come to it (mount_namespaces(7)).
    shares: bool,
    /// Whether it shows the processes of a namespace (proc(5)).
    processes: bool,
}

impl Mount {
    /// Whether any path leads to what is mounted here: another mount may lie over it, or over a directory
    /// above it.
    fn is_seen(&self, all: &[Self]) -> bool {
        if all.iter().any(|other| other.parent == self.id && other.at == self.at) {
            return false;
        }
        let mut below = self;
        while let Some(above) = all.iter().find(|other| other.id == below.parent) {
            let mut beside = all
                .iter()
                .filter(|other| other.parent == above.id && other.id != below.id);
            if beside.any(|other| below.at.starts_with(&other.at)) {
                return false;
            }
            below = above;
        }
        true
    }
}

/// The mounts of a table (proc_pid_mountinfo(5)). None for one with a line that cannot be read.
fn mounts(table: &[u8]) -> Option<Vec<Mount>> {
    let lines = table.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(mount).collect()
}

fn mount(line: &[u8]) -> Option<Mount> {
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse().ok();
    let mut fields = line.split(|byte| *byte == b' ');
    let (id, parent) = (number(fields.next()?)?, number(fields.next()?)?);
    let (at, options) = (fields.nth(2)?, fields.next()?);
    // Optional fields up to the dash: `shared:1`, `master:1`, `propagate_from:1`.
    let mut shares = false;
    for field in fields.by_ref().take_while(|field| *field != b"-") {
        shares |= field.starts_with(b"shared:") || field.starts_with(b"master:");
    }
    let processes = fields.next() == Some(b"proc");
    let has = |wanted: &[u8]| options.split(|byte| *byte == b',').any(|option| option == wanted);
    Some(Mount {
        id,
        parent,
        at: PathBuf::from(OsString::from_vec(unescaped(at)?)),
        writable: !has(b"ro"),
        devices: !has(b"nodev"),
        shares,
        processes,
    })
}

/// A path whose spaces, tabs, newlines and backslashes are written as octal numbers.
fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        if *first == b'\\' {
            let (digits, after) = after.split_at_checked(3)?;
            let number = std::str::from_utf8(digits).ok()?;
            bytes.push(u8::from_str_radix(number, 8).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_mounts_is_read_with_its_odd_names() {
        let table = "30 29 0:26 / / ro,relatime master:1 - ext4 /dev/a rw\n\
                     31 30 0:26 /a /a\\040b\\012c\\134 rw,nodev - ext4 /dev/a rw\n";
        let mounts = mounts(table.as_bytes()).unwrap();
        assert_eq!((&*mounts[0].at, mounts[0].writable), (Path::new("/"), false));
        assert_eq!((&*mounts[1].at, mounts[1].writable), (Path::new("/a b\nc\\"), true));
        assert_eq!((mounts[0].devices, mounts[1].devices), (true, false));
        assert_eq!((mounts[0].shares, mounts[1].shares), (true, false));
    }

    #[test]
    fn a_mount_that_shows_processes_is_known_by_its_type() {
        let table = "1 0 0:1 / /srv/proc rw - proc p rw\n2 0 0:1 / /proc rw shared:1 master:2 - ext4 proc rw\n";
        let mounts = mounts(table.as_bytes()).unwrap();
        assert_eq!((mounts[0].processes, mounts[1].processes), (true, false));
    }

    #[test]
    fn a_line_that_cannot_be_read_makes_the_table_worth_nothing() {
        for line in ["30 29 0:26 /", "30 29 0:26 / /a\\04 rw", "x 29 0:26 / /a rw"] {
            let table = format!("30 29 0:26 / / ro\n{line}\n");
            assert_eq!(mounts(table.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn what_another_mount_lies_over_is_not_seen() {
        let table = "1 0 0:1 / / ro\n2 1 0:2 / /dev rw\n3 2 0:3 / /dev/shm rw\n4 2 0:4 / /dev ro\n\
                     5 1 0:5 / /a/b rw\n6 1 0:6 / /a ro\n7 4 0:7 / /dev/pts rw\n8 1 0:8 / /ab rw\n";
        let mounts = mounts(table.as_bytes()).unwrap();
        let seen: Vec<_> = mounts.iter().filter(|it| it.is_seen(&mounts)).map(|it| it.id).collect();
        assert_eq!(seen, [1, 4, 6, 7, 8]);
    }

    #[test]
    fn a_writable_mount_that_nobody_asked_for_is_seen() {
        let order = Order {
            writable: vec!["/w".into(), "/w/.git/held".into()],
            read_only: vec!["/w/.git".into()],
            nodes: vec!["/dev/null".into()],
            ..Order::default()
        };
        for allowed in ["/w", "/w/sub", "/dev/pts", "/w/.git/held/x", "/dev/null"] {
            assert!(order.may_be_writable(Path::new(allowed)), "{allowed}");
        }
        for other in ["/", "/wx", "/etc", "/dev", "/dev/null/x", "/w/.git", "/w/.git/hooks"] {
            assert!(!order.may_be_writable(Path::new(other)), "{other}");
        }
    }
}
