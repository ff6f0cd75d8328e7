//! The system call filter of every confined run, assembled by hand because its price is its form.

use std::collections::{BTreeMap, BTreeSet};

use libc::sock_filter;
use ringfence_backend::Door;
use ringfence_backend::calls::{self, Call, INODE_REQUESTS};

mod metadata;

pub(crate) use metadata::{inode_requests, metadata};

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

/// Calls refused with EPERM: kernel modules, keyrings that outlive the run, message queues
/// (files of a file system that no mount of ours covers, mq_overview(7)), and the newer calls that
/// mount, some of which Landlock does not ask about.
const REFUSED: [libc::c_long; 16] = [
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
const ON_A_PROCESS: [libc::c_long; 7] = [
    libc::SYS_prlimit64,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
];

/// What becomes of a call, as a place at the end of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Allow,
    Eperm,
    Enosys,
    /// Wait, unless the call carries the cookie.
    Notify,
    /// Wait for the runner.
    Wait,
    /// Notify when the flags in this argument open for a change.
    OpenFlags(u8),
    /// ioctl(2), by its request.
    Request,
    /// Allowed, unless it is on the runner.
    Process,
    /// socket(2), by its family.
    Socket,
    Eacces,
}

/// The filter of every confined run: foreign architectures and io_uring do not exist, keyrings and
/// kernel modules are refused, and nothing is typed into a terminal.
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
            Call::NewMount(_) => Outcome::Wait,
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

    const fn are_closed(self) -> bool {
        self.network_closed || self.unix_closed
    }
}

/// A filter that refuses the calls on one process more, with EPERM. For the child: nothing is allocated.
pub(crate) const fn sparing(process: u32) -> [sock_filter; ON_A_PROCESS.len() + 6] {
    const LAST: usize = ON_A_PROCESS.len() + 5;
    let mut lines = [instruction(RETURN, 0, libc::SECCOMP_RET_ALLOW); LAST + 1];
    lines[0] = instruction(LOAD, 0, NR);
    let mut at = 0;
    while at < ON_A_PROCESS.len() {
        // To the load of the first argument, over the return in between.
        #[allow(clippy::cast_possible_truncation, reason = "there are few")]
        let over = (ON_A_PROCESS.len() - at) as u8;
        lines[1 + at] = instruction(JUMP_EQUAL, over, number(ON_A_PROCESS[at]));
        at += 1;
    }
    lines[LAST - 3] = instruction(LOAD, 0, ARGUMENTS);
    lines[LAST - 2] = instruction(JUMP_EQUAL, 1, process);
    lines[LAST] = instruction(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned());
    lines
}

fn refusals(sockets: Sockets) -> BTreeMap<u32, Outcome> {
    let mut outcomes: BTreeMap<u32, Outcome> = REFUSED.map(|call| (number(call), Outcome::Eperm)).into();
    outcomes.insert(number(libc::SYS_io_uring_setup), Outcome::Enosys);
    outcomes.insert(number(libc::SYS_ioctl), Outcome::Request);
    if sockets.are_closed() {
        outcomes.insert(number(libc::SYS_socket), Outcome::Socket);
    }
    outcomes.extend(ON_A_PROCESS.map(|call| (number(call), Outcome::Process)));
    outcomes
}

/// A filter with a jump that its instruction cannot express.
#[derive(Debug)]
pub(crate) struct TooLong;

/// An instruction whose jump, taken when its test holds, is still a place or a distance.
enum Line {
    Plain(u16, u32),
    Ahead(u16, u32, usize),
    To(u16, u32, Outcome),
}

/// Assembles a filter from the outcomes of single calls; every other call is allowed.
///
/// The kernel runs a new filter once for every call number there is, to learn which it always
/// allows. So the calls are found by a search tree: it has more instructions than a list and is
/// installed in half the time (docs/adr/0002-layers.md).
fn assemble(
    outcomes: &BTreeMap<u32, Outcome>,
    runner: u32,
    sockets: Sockets,
    cookie: Option<u64>,
) -> Result<Program, TooLong> {
    let mut lines = vec![
        Line::Plain(LOAD, ARCHITECTURE),
        Line::Ahead(JUMP_EQUAL, ARCH, 1),
        Line::To(JUMP, 0, Outcome::Enosys),
        Line::Plain(LOAD, NR),
        Line::To(JUMP_GREATER_OR_EQUAL, X32, Outcome::Enosys),
    ];
    let calls: Vec<_> = outcomes.iter().map(|(call, outcome)| (*call, *outcome)).collect();
    search(&calls, &mut lines);

    let used = |outcome| outcomes.values().any(|it| *it == outcome);
    let observes = used(Outcome::Notify);
    let mut places = BTreeMap::new();
    let mut place = |outcome: Outcome, at: usize| places.insert(outcome, at);
    place(Outcome::Request, lines.len());
    lines.push(Line::Plain(LOAD, ARGUMENTS + 8));
    lines.push(Line::To(JUMP_EQUAL, request(libc::TIOCSTI), Outcome::Eperm));
    lines.push(Line::To(JUMP_EQUAL, request(libc::TIOCLINUX), Outcome::Eperm));
    if observes {
        lines.extend(INODE_REQUESTS.map(|request| Line::To(JUMP_EQUAL, request, Outcome::Notify)));
    }
    lines.push(Line::To(JUMP, 0, Outcome::Allow));
    place(Outcome::Process, lines.len());
    lines.push(Line::Plain(LOAD, ARGUMENTS));
    lines.push(Line::To(JUMP_EQUAL, runner, Outcome::Eperm));
    lines.push(Line::To(JUMP, 0, Outcome::Allow));
    if sockets.are_closed() {
        place(Outcome::Socket, lines.len());
        lines.push(Line::Plain(LOAD, ARGUMENTS));
        let unix = if sockets.unix_closed {
            Outcome::Eacces
        } else {
            Outcome::Allow
        };
        lines.push(Line::To(JUMP_EQUAL, family(libc::AF_UNIX), unix));
        if sockets.network_closed {
            // Asking the kernel about interfaces reaches nobody.
            lines.push(Line::To(JUMP_EQUAL, family(libc::AF_NETLINK), Outcome::Allow));
            lines.push(Line::To(JUMP, 0, Outcome::Eacces));
        } else {
            lines.push(Line::To(JUMP, 0, Outcome::Allow));
        }
    }
    for argument in [1, 2]
        .into_iter()
        .filter(|argument| used(Outcome::OpenFlags(*argument)))
    {
        place(Outcome::OpenFlags(argument), lines.len());
        lines.push(Line::Plain(LOAD, ARGUMENTS + 8 * u32::from(argument)));
        lines.push(Line::To(JUMP_SET, OPENS_FOR_CHANGE, Outcome::Notify));
        lines.push(Line::To(JUMP, 0, Outcome::Allow));
    }
    place(Outcome::Notify, lines.len());
    if let Some([low, high]) = cookie.map(halves) {
        lines.push(Line::Plain(LOAD, ARGUMENTS + 5 * 8));
        lines.push(Line::Ahead(JUMP_EQUAL, low, 1));
        lines.push(Line::To(JUMP, 0, Outcome::Wait));
        lines.push(Line::Plain(LOAD, ARGUMENTS + 5 * 8 + 4));
        lines.push(Line::To(JUMP_EQUAL, high, Outcome::Allow));
    }
    for (outcome, action) in [
        (Outcome::Wait, libc::SECCOMP_RET_USER_NOTIF),
        (Outcome::Allow, libc::SECCOMP_RET_ALLOW),
        (Outcome::Eperm, libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned()),
        (Outcome::Eacces, libc::SECCOMP_RET_ERRNO | libc::EACCES.cast_unsigned()),
        (Outcome::Enosys, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()),
    ] {
        place(outcome, lines.len());
        lines.push(Line::Plain(RETURN, action));
    }
    let distance = |at: usize, outcome: Outcome| -> Result<usize, TooLong> {
        places
            .get(&outcome)
            .and_then(|place| place.checked_sub(at + 1))
            .ok_or(TooLong)
    };
    lines
        .iter()
        .enumerate()
        .map(|(at, line)| match *line {
            Line::Plain(code, k) => Ok(instruction(code, 0, k)),
            Line::Ahead(code, k, ahead) => Ok(instruction(code, short(ahead)?, k)),
            Line::To(JUMP, _, outcome) => Ok(instruction(
                JUMP,
                0,
                u32::try_from(distance(at, outcome)?).map_err(|_| TooLong)?,
            )),
            Line::To(code, k, outcome) => Ok(instruction(code, short(distance(at, outcome)?)?, k)),
        })
        .collect()
}

/// A search tree over sorted calls. A call that is not found is allowed.
fn search(calls: &[(u32, Outcome)], lines: &mut Vec<Line>) {
    if let [.., _, _, _] = calls {
        let (low, high) = calls.split_at(calls.len() / 2);
        let mut lower = Vec::new();
        search(low, &mut lower);
        lines.push(Line::Ahead(JUMP_GREATER_OR_EQUAL, high[0].0, lower.len()));
        lines.append(&mut lower);
        search(high, lines);
    } else {
        lines.extend(
            calls
                .iter()
                .map(|(call, outcome)| Line::To(JUMP_EQUAL, *call, *outcome)),
        );
        lines.push(Line::To(JUMP, 0, Outcome::Allow));
    }
}

/// The halves of a number as `struct seccomp_data` has them: little-endian, as every architecture here.
#[allow(clippy::cast_possible_truncation, reason = "each half is taken for itself")]
const fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

/// A socket's family as a filter compares it.
const fn family(family: libc::c_int) -> u32 {
    family.cast_unsigned()
}

fn short(distance: usize) -> Result<u8, TooLong> {
    u8::try_from(distance).map_err(|_| TooLong)
}

const fn instruction(code: u16, jt: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf: 0, k }
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
