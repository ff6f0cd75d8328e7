//! Paths as a process sees them: its memory, its directories, its root, its own /proc/self.
//!
//! Nothing is opened but with `O_PATH`, so looking changes nothing and waits for nothing.

use std::ffi::OsStr;
use std::fs::{File, read_to_string};
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat, openat2, readlink};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, stat};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use ringfence_backend::calls::Final;

use super::walk::Walk;

/// The longest path a call takes, its NUL included (`PATH_MAX` of linux/limits.h).
const PATH_MAX: usize = 4096;
const PAGE: usize = 4096;

/// A thread that waits in a call.
#[derive(Debug)]
pub(super) struct Caller {
    tid: i32,
}

/// Where a path leads: a name in a directory, and what stands there, if anything does.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) parent: OwnedFd,
    pub(super) name: Vec<u8>,
    pub(super) node: Option<Node>,
    /// Whether the path ended in a slash.
    pub(super) slash: bool,
}

/// A file that was found.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) fd: OwnedFd,
    pub(super) stat: FileStat,
}

impl Node {
    pub(super) fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let stat = fstat(&fd)?;
        Ok(Self { fd, stat })
    }

    /// The kind of file, one of the `S_IF*` constants.
    pub(super) fn kind(&self) -> SFlag {
        SFlag::from_bits_truncate(self.stat.st_mode) & SFlag::S_IFMT
    }

    /// Where it stands.
    pub(super) fn path(&self) -> Where {
        const GONE: &[u8] = b" (deleted)";
        let Some(path) = path_of(&self.fd) else {
            return Where::Unknown;
        };
        let text = path.as_os_str().as_bytes();
        if !path.is_absolute() || NAMELESS.iter().any(|kind| text.starts_with(kind)) {
            return Where::Nowhere;
        }
        match text.strip_suffix(GONE) {
            Some(before) if stat(&path).map_or(true, |there| there.st_ino != self.stat.st_ino) => {
                Where::At(PathBuf::from(OsStr::from_bytes(before)))
            }
            _ => Where::At(path),
        }
    }
}

/// How the kernel writes files that no directory ever held.
const NAMELESS: [&[u8]; 2] = [b"/memfd:", b"/SYSV"];

/// Where a file stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// At this absolute path; if it was removed, there it stood.
    At(PathBuf),
    /// In no directory: a pipe, a socket, memory.
    Nowhere,
    /// The kernel does not tell: the path is longer than a path can be.
    Unknown,
}

impl Place {
    /// Where it is, whether or not anything stands there.
    pub(super) fn path(&self) -> Where {
        match &self.node {
            Some(node) => node.path(),
            None => path_of(&self.parent).map_or(Where::Unknown, |parent| {
                Where::At(parent.join(OsStr::from_bytes(&self.name)))
            }),
        }
    }
}

fn path_of(fd: &OwnedFd) -> Option<PathBuf> {
    readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()).as_str())
        .ok()
        .map(PathBuf::from)
}

impl Caller {
    pub(super) const fn new(tid: i32) -> Self {
        Self { tid }
    }

    /// The thread's id.
    pub(super) const fn thread(&self) -> i32 {
        self.tid
    }

    /// Copies bytes out of the caller's memory.
    pub(super) fn read(&self, address: u64, bytes: &mut [u8]) -> Result<usize, Errno> {
        let remote = RemoteIoVec {
            base: usize::try_from(address).map_err(|_| Errno::EFAULT)?,
            len: bytes.len(),
        };
        match process_vm_readv(Pid::from_raw(self.tid), &mut [IoSliceMut::new(bytes)], &[remote]) {
            // The kernel takes paths from pages that a process may not read itself; so does this.
            Err(Errno::EFAULT) => {
                let memory = File::open(format!("/proc/{}/mem", self.tid)).map_err(|_| Errno::EFAULT)?;
                memory.read_at(bytes, address).map_err(|_| Errno::EFAULT)
            }
            other => other,
        }
    }

    /// A NUL-terminated string in the caller's memory.
    pub(super) fn text(&self, address: u64) -> Result<Vec<u8>, Errno> {
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < PATH_MAX {
            // A read never crosses into a page that may not be there.
            let rest = PAGE - usize::try_from(at % PAGE as u64).unwrap_or(0);
            let mut bytes = [0; 512];
            let part = &mut bytes[..rest.min(512)];
            let n = self.read(at, part)?;
            if n == 0 {
                return Err(Errno::EFAULT);
            }
            if let Some(end) = part[..n].iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&part[..end]);
                return Ok(text);
            }
            text.extend_from_slice(&part[..n]);
            at += n as u64;
        }
        Err(Errno::ENAMETOOLONG)
    }

    /// The directory a relative path begins at: the working directory, or a descriptor's.
    pub(super) fn directory(&self, descriptor: Option<i32>) -> Result<OwnedFd, Errno> {
        match descriptor {
            None | Some(nix::libc::AT_FDCWD) => self.own("cwd"),
            Some(fd) => self.descriptor(fd),
        }
    }

    /// What one of the caller's descriptors refers to.
    pub(super) fn descriptor(&self, fd: i32) -> Result<OwnedFd, Errno> {
        self.own(&format!("fd/{fd}"))
    }

    /// What a descriptor refers to, as a file.
    pub(super) fn descriptor_node(&self, fd: i32) -> Result<Node, Errno> {
        Node::new(self.descriptor(fd)?)
    }

    fn own(&self, what: &str) -> Result<OwnedFd, Errno> {
        let path = format!("/proc/{}/{what}", self.tid);
        nix::fcntl::open(path.as_str(), OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).map_err(hidden)
    }

    /// The process the thread belongs to.
    pub(super) fn process(&self) -> i32 {
        self.status("Tgid:")
            .and_then(|number| number.parse().ok())
            .unwrap_or(self.tid)
    }

    /// Whether the caller could mount, if only in a namespace of its own (`CAP_SYS_ADMIN`).
    pub(super) fn may_mount(&self) -> bool {
        let held = self
            .status("CapEff:")
            .and_then(|hex| u64::from_str_radix(&hex, 16).ok());
        held.unwrap_or(0) & (1 << 21) != 0
    }

    /// Whether a descriptor only names a file (`O_PATH`), so that nothing can be changed through it.
    pub(super) fn is_name_only(&self, fd: i32) -> bool {
        let about = read_to_string(format!("/proc/{}/fdinfo/{fd}", self.tid)).unwrap_or_default();
        let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags
            .and_then(|octal| i32::from_str_radix(octal.trim(), 8).ok())
            .unwrap_or(0);
        flags & OFlag::O_PATH.bits() != 0
    }

    fn status(&self, field: &str) -> Option<String> {
        let status = read_to_string(format!("/proc/{}/status", self.tid)).ok()?;
        status
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .map(|value| value.trim().to_owned())
    }

    /// The program's name, as the kernel keeps it.
    pub(super) fn program(&self) -> String {
        let name = std::fs::read(format!("/proc/{}/comm", self.tid)).unwrap_or_default();
        String::from_utf8_lossy(&name).trim_end().to_owned()
    }

    /// Finds where a path leads that openat2(2) resolves in a way of its own.
    ///
    /// # Errors
    /// What the kernel would say of the path; `EXDEV` for one that ends in a link or in dots, which is
    /// not imitated.
    pub(super) fn resolve_as(&self, descriptor: Option<i32>, path: &[u8], resolve: u64) -> Result<Place, Errno> {
        let base = self.directory(descriptor)?;
        let trimmed = trim(path);
        let cut = trimmed
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |slash| slash + 1);
        let (parent, name) = trimmed.split_at(cut);
        let parent = if parent.is_empty() { &b"."[..] } else { parent };
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let how = OpenHow::new()
            .flags(flags)
            .resolve(ResolveFlag::from_bits_truncate(resolve));
        let parent = openat2(&base, OsStr::from_bytes(parent), how)?;
        let node = look(&parent, name)?;
        let link = node.as_ref().is_some_and(|node| node.kind() == SFlag::S_IFLNK);
        if link || matches!(name, b"" | b"." | b"..") {
            return Err(Errno::EXDEV);
        }
        Ok(Place {
            parent,
            name: name.to_vec(),
            node,
            slash: path.ends_with(b"/"),
        })
    }

    /// Finds where a path leads.
    ///
    /// # Errors
    /// What the kernel would say of the path on its way to the last name: that is the call's own
    /// failure and nobody's refusal.
    pub(super) fn resolve(&self, descriptor: Option<i32>, path: &[u8], last: Final) -> Result<Place, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        let absolute = path[0] == b'/';
        let base = if absolute {
            self.own("root")?
        } else {
            self.directory(descriptor)?
        };
        let trimmed = trim(path);
        let (parent, name) = trimmed
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or((&b"."[..], trimmed), |slash| {
                (
                    if slash == 0 { &b"."[..] } else { &trimmed[..slash] },
                    &trimmed[slash + 1..],
                )
            });
        let parent = parent.strip_prefix(b"/").unwrap_or(parent);
        // The common case, in one call: no link on the way, so nothing depends on who looks.
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        let climbs = trimmed.split(|byte| *byte == b'/').any(|part| part == b"..");
        let plain = !matches!(name, b"" | b".") && !climbs && !parent.starts_with(b"/");
        if plain && let Ok(parent) = openat2(&base, OsStr::from_bytes(parent), how) {
            let node = look(&parent, name)?;
            let link = node.as_ref().is_some_and(|node| node.kind() == SFlag::S_IFLNK);
            if !(link && last == Final::Follow) {
                return Ok(Place {
                    parent,
                    name: name.to_vec(),
                    node,
                    slash: path.ends_with(b"/"),
                });
            }
        }
        let place = Walk::new(self, self.own("root")?).run(base, path, last)?;
        Ok(Place {
            slash: path.ends_with(b"/"),
            ..place
        })
    }
}

/// A refusal by /proc itself says that the caller hides, and nothing of the path.
pub(super) const fn hidden(errno: Errno) -> Errno {
    match errno {
        Errno::EACCES | Errno::EPERM => HIDDEN,
        other => other,
    }
}

/// What stands for "the caller cannot be looked at". No path ends with it.
pub(super) const HIDDEN: Errno = Errno::EOWNERDEAD;

/// A path without the slashes at its end, which only say that a directory is meant.
fn trim(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    &path[..end]
}

/// What stands under a name; a link itself, if it is one.
pub(super) fn look(parent: &OwnedFd, name: &[u8]) -> Result<Option<Node>, Errno> {
    match openat(
        parent,
        OsStr::from_bytes(name),
        OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
        Mode::empty(),
    ) {
        Ok(fd) => Node::new(fd).map(Some),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_backend::PinnedPath;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// This process, seen as another would see it.
    fn me() -> Caller {
        Caller::new(nix::unistd::gettid().as_raw())
    }

    fn found(path: &[u8], last: Final) -> Option<PathBuf> {
        match me().resolve(None, path, last).ok()?.path() {
            Where::At(path) => Some(path),
            _ => None,
        }
    }

    #[test]
    fn a_path_leads_where_the_kernel_would_take_it() {
        let directory = tempfile::tempdir().unwrap();
        let top = PinnedPath::open(directory.path()).unwrap().path().to_owned();
        fs::create_dir_all(top.join("real/deep")).unwrap();
        fs::write(top.join("real/f"), "x").unwrap();
        symlink("real/deep", top.join("link")).unwrap();
        symlink(top.join("real/f"), top.join("absolute")).unwrap();
        symlink("nowhere", top.join("dangling")).unwrap();
        let at = |name: &str| top.join(name).as_os_str().as_bytes().to_vec();
        for (path, last, leads) in [
            ("real/f", Final::Follow, "real/f"),
            ("link/../f", Final::Follow, "real/f"),
            ("absolute", Final::Follow, "real/f"),
            ("absolute", Final::Stay, "absolute"),
            ("dangling", Final::Follow, "nowhere"),
            ("link/new", Final::Stay, "real/deep/new"),
            ("real//deep/./x", Final::Stay, "real/deep/x"),
        ] {
            assert_eq!(found(&at(path), last), Some(top.join(leads)), "{path}");
        }
    }

    #[test]
    fn links_that_loop_and_paths_through_files_lead_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        symlink("b", directory.path().join("a")).unwrap();
        symlink("a", directory.path().join("b")).unwrap();
        fs::write(directory.path().join("f"), "x").unwrap();
        let at = |name: &str| directory.path().join(name).as_os_str().as_bytes().to_vec();
        assert_eq!(
            me().resolve(None, &at("a"), Final::Follow).map(|_| ()),
            Err(Errno::ELOOP)
        );
        assert_eq!(
            me().resolve(None, &at("f/x"), Final::Follow).map(|_| ()),
            Err(Errno::ENOTDIR)
        );
        assert_eq!(me().resolve(None, b"", Final::Follow).map(|_| ()), Err(Errno::ENOENT));
    }

    #[test]
    fn proc_self_is_the_callers() {
        let mine = format!("/proc/{}/comm", std::process::id());
        assert_eq!(found(b"/proc/self/comm", Final::Follow), Some(mine.into()));
    }

    #[test]
    fn a_descriptor_in_proc_leads_to_what_it_refers_to() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = PinnedPath::open(file.path()).unwrap().path().to_owned();
        let fd = file.as_file().as_raw_fd();
        assert_eq!(found(format!("/dev/fd/{fd}").as_bytes(), Final::Follow), Some(path));
    }

    #[test]
    fn text_is_read_up_to_its_end_and_not_beyond_the_longest_path() {
        let short = c"/a/b";
        assert_eq!(me().text(short.as_ptr() as u64).unwrap(), b"/a/b");
        let long = vec![b'x'; 2 * PATH_MAX];
        assert_eq!(me().text(long.as_ptr() as u64), Err(Errno::ENAMETOOLONG));
        assert_eq!(me().text(8), Err(Errno::EFAULT));
    }
}
