//! A process that waits in a call: its memory, its directories, its descriptors.
//!
//! Nothing is opened but with `O_PATH`, so looking changes nothing and waits for nothing.

use std::fs::{File, read_to_string};
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::fcntl::{OFlag, readlinkat};
use nix::sys::stat::Mode;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use super::place::Node;

/// The longest path a call takes, its NUL included (`PATH_MAX` of linux/limits.h).
const PATH_MAX: usize = 4096;
const PAGE: usize = 4096;

/// A thread that waits in a call.
#[derive(Debug)]
pub(super) struct Caller {
    tid: i32,
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

    /// One of the caller's own links in /proc: `cwd`, `root`, `fd/N`.
    pub(super) fn own(&self, what: &str) -> Result<OwnedFd, Errno> {
        let path = format!("/proc/{}/{what}", self.tid);
        nix::fcntl::open(path.as_str(), OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).map_err(hidden)
    }

    /// The process the thread belongs to.
    pub(super) fn process(&self) -> i32 {
        self.status("Tgid:")
            .and_then(|number| number.parse().ok())
            .unwrap_or(self.tid)
    }

    /// The numbers of its process and its thread as this root of a /proc has them. One that this process
    /// has no number in belongs to the PID namespace of the run.
    pub(super) fn numbers_in(&self, proc: &OwnedFd) -> (String, String) {
        if readlinkat(proc, "self").is_ok() {
            return (self.process().to_string(), self.tid.to_string());
        }
        // From the namespace of this process's /proc inwards: the run's is the second. A command can make
        // more, but it cannot mount a /proc for them.
        let inner = |field| {
            let numbers = self.status(field).unwrap_or_default();
            numbers.split_ascii_whitespace().nth(1).unwrap_or("0").to_owned()
        };
        (inner("NStgid:"), inner("NSpid:"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_up_to_its_end_and_not_beyond_the_longest_path() {
        let short = c"/a/b";
        assert_eq!(
            Caller::new(nix::unistd::gettid().as_raw())
                .text(short.as_ptr() as u64)
                .unwrap(),
            b"/a/b"
        );
        let long = vec![b'x'; 2 * PATH_MAX];
        assert_eq!(
            Caller::new(nix::unistd::gettid().as_raw()).text(long.as_ptr() as u64),
            Err(Errno::ENAMETOOLONG)
        );
        assert_eq!(Caller::new(nix::unistd::gettid().as_raw()).text(8), Err(Errno::EFAULT));
    }
}
