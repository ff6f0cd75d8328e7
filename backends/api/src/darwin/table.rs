//! The processes of a run, as the system's table of processes shows them.
#![cfg_attr(target_os = "macos", allow(unsafe_code))]

use std::collections::BTreeSet;
use std::io;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    session: i32,
    stopped: bool,
}

/// Whether a process is stopped.
pub(super) fn is_stopped(pid: i32) -> bool {
    process(pid).is_some_and(|process| process.stopped)
}

/// Which processes belong to a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Members {
    /// The command.
    pub(super) command: i32,
    /// Whether it is the leader of a process group of its own.
    pub(super) group: bool,
    /// Whether it is the leader of a session of its own.
    pub(super) session: bool,
}

impl Members {
    /// Their process ids, the command's among them as long as it has not ended.
    ///
    /// # Errors
    /// The operating system's, when it does not show its table.
    pub(super) fn find(self) -> io::Result<BTreeSet<i32>> {
        let all = processes()?;
        let mut found = BTreeSet::new();
        loop {
            let before = found.len();
            for process in &all {
                let belongs = process.pid == self.command
                    || process.parent == self.command
                    || self.group && process.group == self.command
                    || self.session && process.session == self.command
                    || found.contains(&process.parent);
                if belongs {
                    found.insert(process.pid);
                }
            }
            if found.len() == before {
                return Ok(found);
            }
        }
    }

    /// Sends a signal to each of them, to the group at once where there is one. Those that end
    /// meanwhile need none.
    pub(super) fn signal(self, signal: Signal) {
        if self.group {
            let _ = kill(Pid::from_raw(-self.command), signal);
        }
        // Without a table, the group and the command are all there is.
        let all = self.find().unwrap_or_else(|_| BTreeSet::from([self.command]));
        for pid in all {
            let told = self.group && nix::unistd::getpgid(Some(Pid::from_raw(pid))) == Ok(Pid::from_raw(self.command));
            if !told {
                let _ = kill(Pid::from_raw(pid), signal);
            }
        }
    }
}

/// Every process of the system that has not ended.
#[cfg(target_os = "macos")]
fn processes() -> io::Result<Vec<Process>> {
    // Some more than there are now, for those that are made meanwhile.
    // SAFETY: without a buffer, only the number of processes is told.
    let count = unsafe { libc::proc_listallpids(std::ptr::null_mut(), 0) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())? + 256;
    let mut pids = vec![0_i32; count];
    let size = i32::try_from(size_of_val(&pids[..])).map_err(io::Error::other)?;
    // SAFETY: fills a live buffer of the given size.
    let got = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), size) };
    pids.truncate(usize::try_from(got).map_err(|_| io::Error::last_os_error())?);
    Ok(pids.into_iter().filter_map(process).collect())
}

/// One process; none for one that has ended.
#[cfg(target_os = "macos")]
fn process(pid: i32) -> Option<Process> {
    let size = i32::try_from(size_of::<libc::proc_bsdinfo>()).ok()?;
    // SAFETY: fills a zeroed structure of the given size.
    let (got, about) = unsafe {
        let mut about: libc::proc_bsdinfo = std::mem::zeroed();
        let to = (&raw mut about).cast();
        (libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, to, size), about)
    };
    if got != size || about.pbi_status == libc::SZOMB {
        return None;
    }
    Some(Process {
        pid,
        parent: i32::try_from(about.pbi_ppid).ok()?,
        group: i32::try_from(about.pbi_pgid).ok()?,
        session: nix::unistd::getsid(Some(Pid::from_raw(pid))).ok()?.as_raw(),
        stopped: about.pbi_status == libc::SSTOP,
    })
}

/// Every process of the system that has not ended (proc_pid_stat(5)).
#[cfg(not(target_os = "macos"))]
fn processes() -> io::Result<Vec<Process>> {
    let entries = std::fs::read_dir("/proc")?.flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(pids.filter_map(process).collect())
}

/// One process; none for one that has ended.
#[cfg(not(target_os = "macos"))]
fn process(pid: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let mut number = || fields.next()?.parse().ok();
    let (parent, group, session) = (number()?, number()?, number()?);
    (!matches!(state, "Z" | "X")).then_some(Process {
        pid,
        parent,
        group,
        session,
        stopped: state == "T",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_in_the_table_as_the_system_calls_describe_it() {
        let pid = nix::unistd::getpid().as_raw();
        let me = processes()
            .unwrap()
            .into_iter()
            .find(|process| process.pid == pid)
            .unwrap();
        assert_eq!(me.parent, nix::unistd::getppid().as_raw());
        assert_eq!(me.group, nix::unistd::getpgrp().as_raw());
        assert_eq!(me.session, nix::unistd::getsid(None).unwrap().as_raw());
        let members = Members {
            command: me.parent,
            group: false,
            session: false,
        };
        assert!(members.find().unwrap().contains(&pid));
    }
}
