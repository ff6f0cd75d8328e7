//! The system call filter of every confined run, assembled by hand because its price is its form.

use std::collections::{BTreeMap, BTreeSet};

use libc::sock_filter;
use ringfence_backend::Door;
use ringfence_backend::calls::{self, Call};

mod assembly;
mod metadata;

pub(crate) use assembly::TooLong;
pub(crate) use metadata::{inode_requests, metadata};

use assembly::{Line, Outcome, assemble};

/// A compiled filter.
pub(crate) type Program = Vec<sock_filter>;

/// `AUDIT_ARCH_*` of the calls a native program makes (linux/audit.h).
#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;

/// Call numbers from here on are x32's (`__X32_SYSCALL_BIT`). No other architecture has such.
const X32: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`: the call's number, its architecture, its first argument.
const NR: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER_OR_EQUAL: u16 = 0x35;
const JUMP_SET: u16 = 0x45;
const JUMP: u16 = 0x05;
const RETURN: u16 = 0x06;

/// Bits of open(2)'s flags that ask for a change. `O_TMPFILE` has one more than `O_DIRECTORY`.
const OPENS_FOR_CHANGE: u32 =
    (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY))
        .cast_unsigned();

/// `open_tree_attr`, which the `libc` crate does not name yet (linux/unistd.h).
const OPEN_TREE_ATTR: libc::c_long = 467;

/// What a priority is of: one process, and not a group or a user, which reach out of a PID namespace
/// (setpriority(2), ioprio_set(2)).
const PRIO_PROCESS: u32 = 0;
const IOPRIO_WHO_PROCESS: u32 = 1;

/// Commands of fcntl(2) that take a lease on a file or a delegation of a directory (linux/fcntl.h), of which the
/// `libc` crate does not name the second. A descriptor for reading is enough, and nobody else can open the file
/// while the lease is being broken, which takes most of a minute: a command could keep the trail from being written.
const LEASES: [u32; 2] = [libc::F_SETLEASE.cast_unsigned(), 1024 + 16];

/// Calls refused with EPERM: kernel modules, keyrings that outlive the run, message queues
/// (files of a file system that no mount of ours covers, mq_overview(7)), and every call that mounts: a
/// Landlock domain does not ask about some of the newer ones, and not every run has one.
const REFUSED: [libc::c_long; 19] = [
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_fsmount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// Calls on the process in their first argument. On the runner, whose limits are not the command's
/// to set and which it is not to stop, they are refused with EPERM.
const ON_A_PROCESS: [libc::c_long; 11] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
];

/// The filter of every confined run: foreign architectures, io_uring and clone3 do not exist, keyrings and
/// kernel modules are refused, nothing is typed into a terminal, and nobody is kept from a file by a lease.
///
/// # Errors
/// [`TooLong`], which would be a fault of the tables.
pub(crate) fn base(runner: u32, sockets: Sockets) -> Result<Program, TooLong> {
    assemble(&refusals(sockets), runner, sockets, None)
}

/// The same, and every call that changes files waits for the runner, unless it carries the cookie
/// in its sixth argument, which none of them uses.
///
/// # Errors
/// [`TooLong`], which would be a fault of the tables.
pub(crate) fn observing(runner: u32, sockets: Sockets, cookie: Option<u64>) -> Result<Program, TooLong> {
    let mut outcomes = refusals(sockets);
    for (call, kind) in calls::table() {
        let outcome = match kind {
            Call::Open(_, flags) => Outcome::OpenFlags(flags),
            Call::Ioctl => Outcome::Request,
            // Whatever it carries: the runner refuses it and writes it down.
            Call::Mount(_) => Outcome::Wait,
            _ => Outcome::Notify,
        };
        outcomes.insert(number(call), outcome);
    }
    assemble(&outcomes, runner, sockets, cookie)
}

/// Which sockets can be made (socket(2)). Pairs can in any case: they lead nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sockets {
    network_closed: bool,
    unix_closed: bool,
}

impl Sockets {
    /// Those that lead through no closed door.
    pub(crate) fn new(closed: &BTreeSet<Door>) -> Self {
        Self {
            network_closed: closed.contains(&Door::Network),
            unix_closed: closed.contains(&Door::UnixSockets),
        }
    }

    /// socket(2), by the family in its first argument.
    fn body(self) -> Vec<Line> {
        let unix = if self.unix_closed {
            Outcome::Eacces
        } else {
            Outcome::Allow
        };
        let mut lines = vec![
            Line::Plain(LOAD, ARGUMENTS),
            Line::To(JUMP_EQUAL, family(libc::AF_UNIX), unix),
        ];
        if self.network_closed {
            // Asking the kernel about interfaces reaches nobody.
            lines.push(Line::To(JUMP_EQUAL, family(libc::AF_NETLINK), Outcome::Allow));
            lines.push(Line::To(JUMP, 0, Outcome::Eacces));
        } else {
            lines.push(Line::To(JUMP, 0, Outcome::Allow));
        }
        lines
    }

    const fn are_closed(self) -> bool {
        self.network_closed || self.unix_closed
    }
}

/// Stands in [`sparing`] for the process that is to be spared, which is known in the child alone.
pub(crate) const SPARED: u32 = i32::MAX.cast_unsigned() - 14;

/// Where there is no PID namespace: a filter that refuses the calls on one process more, and
/// changing the limits and priorities of any other. Those take the number of a thread as well, and
/// every thread of the runner has one.
///
/// # Errors
/// [`TooLong`], which would be a fault of the tables.
pub(crate) fn sparing() -> Result<Program, TooLong> {
    let mut outcomes: BTreeMap<u32, Outcome> = ON_A_PROCESS.map(|call| (number(call), Outcome::Process)).into();
    outcomes.insert(number(libc::SYS_prlimit64), Outcome::Limits);
    outcomes.insert(number(libc::SYS_setpriority), Outcome::Priority);
    outcomes.insert(number(libc::SYS_ioprio_set), Outcome::Priority);
    assemble(&outcomes, SPARED, Sockets::default(), None)
}

fn refusals(sockets: Sockets) -> BTreeMap<u32, Outcome> {
    let mut outcomes: BTreeMap<u32, Outcome> = REFUSED.map(|call| (number(call), Outcome::Eperm)).into();
    outcomes.insert(number(libc::SYS_io_uring_setup), Outcome::Enosys);
    // It can put a new process into any control group whose directory can be opened, and a filter does not see
    // its arguments. C libraries then use clone(2).
    outcomes.insert(number(libc::SYS_clone3), Outcome::Enosys);
    outcomes.insert(number(libc::SYS_ioctl), Outcome::Request);
    outcomes.insert(number(libc::SYS_fcntl), Outcome::Lease);
    if sockets.are_closed() {
        outcomes.insert(number(libc::SYS_socket), Outcome::Socket);
    }
    outcomes.extend(ON_A_PROCESS.map(|call| (number(call), Outcome::Process)));
    outcomes.insert(number(libc::SYS_setpriority), Outcome::PriorityOf(PRIO_PROCESS));
    outcomes.insert(number(libc::SYS_ioprio_set), Outcome::PriorityOf(IOPRIO_WHO_PROCESS));
    outcomes
}

/// A call's number as a filter compares it.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "call numbers are small and positive"
)]
const fn number(call: libc::c_long) -> u32 {
    call as u32
}

/// A socket's family as a filter compares it.
const fn family(family: libc::c_int) -> u32 {
    family.cast_unsigned()
}

/// An ioctl request as a filter compares it: the kernel looks at 32 bits.
#[allow(clippy::cast_possible_truncation, reason = "ioctl(2) requests have 32 bits")]
#[allow(
    clippy::unnecessary_cast,
    reason = "the type of a request differs between C libraries"
)]
const fn request(request: libc::Ioctl) -> u32 {
    request as u32
}

#[cfg(test)]
mod tests;
