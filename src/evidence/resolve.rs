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
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
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

    /// Its absolute path. Nothing for what has no name: a pipe, a file that was removed.
    pub(super) fn path(&self) -> Option<PathBuf> {
        let path = path_of(&self.fd)?;
        (path.is_absolute() && self.stat.st_nlink > 0).then_some(path)
    }
}

impl Place {
    /// Its absolute path, whether or not anything stands there.
    pub(super) fn path(&self) -> Option<PathBuf> {
        match &self.node {
            Some(node) => node.path(),
            None => Some(path_of(&self.parent)?.join(OsStr::from_bytes(&self.name))),
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
        nix::fcntl::open(path.as_str(), OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())
    }

    /// The process the thread belongs to.
    pub(super) fn process(&self) -> i32 {
        let status = read_to_string(format!("/proc/{}/status", self.tid)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or(self.tid)
    }

    /// The program's name, as the kernel keeps it.
    pub(super) fn program(&self) -> String {
        let name = read_to_string(format!("/proc/{}/comm", self.tid)).unwrap_or_default();
        name.trim_end().to_owned()
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
        me().resolve(None, path, last).ok()?.path()
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
