//! From the outcomes of single calls to the instructions of a filter.

use std::collections::BTreeMap;

use libc::sock_filter;
use ringfence_backend::calls::INODE_REQUESTS;

use super::{
    ARCH, ARCHITECTURE, ARGUMENTS, JUMP, JUMP_EQUAL, JUMP_GREATER_OR_EQUAL, JUMP_SET, LEASES, LOAD, NR,
    OPENS_FOR_CHANGE, Program, RETURN, Sockets, X32, request,
};

/// What becomes of a call, as a place at the end of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
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
    /// prlimit(2): allowed on oneself, and where nothing is set.
    Limits,
    /// setpriority(2), ioprio_set(2): allowed on oneself.
    Priority,
    /// The same of a process other than the runner, by the number that the first argument must have.
    PriorityOf(u32),
    /// socket(2), by its family.
    Socket,
    /// fcntl(2): allowed, unless it takes a lease.
    Lease,
    Eacces,
}

/// A filter with a jump that its instruction cannot express.
#[derive(Debug)]
pub(crate) struct TooLong;

/// An instruction whose jump, taken when its test holds, is still a place or a distance.
#[derive(Clone, Copy)]
pub(super) enum Line {
    Plain(u16, u32),
    Ahead(u16, u32, usize),
    To(u16, u32, Outcome),
}

/// Assembles a filter from the outcomes of single calls; every other call is allowed.
///
/// The kernel runs a new filter once for every call number there is, to learn which it always
/// allows. So the calls are found by a search tree: it has more instructions than a list and is
/// installed in half the time (docs/adr/0002-layers.md).
pub(super) fn assemble(
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

    let mut places = BTreeMap::new();
    for (outcome, body) in bodies(outcomes, runner, sockets, cookie) {
        places.insert(outcome, lines.len());
        lines.extend(body);
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

/// What is done about each outcome that occurs. All jumps are forward, so what is jumped to comes last.
fn bodies(
    outcomes: &BTreeMap<u32, Outcome>,
    runner: u32,
    sockets: Sockets,
    cookie: Option<u64>,
) -> Vec<(Outcome, Vec<Line>)> {
    let used = |outcome| outcomes.values().any(|it| *it == outcome);
    let allowed = Line::To(JUMP, 0, Outcome::Allow);
    let mut bodies = vec![
        (Outcome::Request, requests(used(Outcome::Notify))),
        (
            Outcome::Process,
            vec![
                Line::Plain(LOAD, ARGUMENTS),
                Line::To(JUMP_EQUAL, runner, Outcome::Eperm),
                allowed,
            ],
        ),
    ];
    if used(Outcome::Limits) {
        let new = ARGUMENTS + 2 * 8;
        bodies.push((
            Outcome::Limits,
            vec![
                Line::Plain(LOAD, ARGUMENTS),
                Line::To(JUMP_EQUAL, 0, Outcome::Allow),
                Line::Plain(LOAD, new),
                Line::To(JUMP_SET, u32::MAX, Outcome::Eperm),
                Line::Plain(LOAD, new + 4),
                Line::To(JUMP_SET, u32::MAX, Outcome::Eperm),
                allowed,
            ],
        ));
    }
    if used(Outcome::Priority) {
        bodies.push((
            Outcome::Priority,
            vec![
                Line::Plain(LOAD, ARGUMENTS + 8),
                Line::To(JUMP_EQUAL, 0, Outcome::Allow),
                Line::To(JUMP, 0, Outcome::Eperm),
            ],
        ));
    }
    for which in outcomes.values().filter_map(|outcome| match outcome {
        Outcome::PriorityOf(which) => Some(*which),
        _ => None,
    }) {
        bodies.push((
            Outcome::PriorityOf(which),
            vec![
                Line::Plain(LOAD, ARGUMENTS),
                Line::Ahead(JUMP_EQUAL, which, 1),
                Line::To(JUMP, 0, Outcome::Eperm),
                Line::Plain(LOAD, ARGUMENTS + 8),
                Line::To(JUMP_EQUAL, runner, Outcome::Eperm),
                allowed,
            ],
        ));
    }
    if used(Outcome::Socket) {
        bodies.push((Outcome::Socket, sockets.body()));
    }
    if used(Outcome::Lease) {
        let mut lines = vec![Line::Plain(LOAD, ARGUMENTS + 8)];
        lines.extend(LEASES.map(|command| Line::To(JUMP_EQUAL, command, Outcome::Eperm)));
        lines.push(allowed);
        bodies.push((Outcome::Lease, lines));
    }
    let opens = [1, 2]
        .map(Outcome::OpenFlags)
        .into_iter()
        .filter(|outcome| used(*outcome));
    bodies.extend(opens.map(|outcome| {
        let Outcome::OpenFlags(argument) = outcome else {
            return (outcome, Vec::new());
        };
        let body = vec![
            Line::Plain(LOAD, ARGUMENTS + 8 * u32::from(argument)),
            Line::To(JUMP_SET, OPENS_FOR_CHANGE, Outcome::Notify),
            allowed,
        ];
        (outcome, body)
    }));
    let carried = cookie.map(halves).map_or_else(Vec::new, |[low, high]| {
        vec![
            Line::Plain(LOAD, ARGUMENTS + 5 * 8),
            Line::Ahead(JUMP_EQUAL, low, 1),
            Line::To(JUMP, 0, Outcome::Wait),
            Line::Plain(LOAD, ARGUMENTS + 5 * 8 + 4),
            Line::To(JUMP_EQUAL, high, Outcome::Allow),
        ]
    });
    bodies.push((Outcome::Notify, carried));
    let ends = [
        (Outcome::Wait, libc::SECCOMP_RET_USER_NOTIF),
        (Outcome::Allow, libc::SECCOMP_RET_ALLOW),
        (Outcome::Eperm, refuse(libc::EPERM)),
        (Outcome::Eacces, refuse(libc::EACCES)),
        (Outcome::Enosys, refuse(libc::ENOSYS)),
    ];
    bodies.extend(ends.map(|(outcome, action)| (outcome, vec![Line::Plain(RETURN, action)])));
    bodies
}

/// ioctl(2): what types into a terminal is refused, and what changes an inode waits, if anything does.
fn requests(observed: bool) -> Vec<Line> {
    let mut lines = vec![
        Line::Plain(LOAD, ARGUMENTS + 8),
        Line::To(JUMP_EQUAL, request(libc::TIOCSTI), Outcome::Eperm),
        Line::To(JUMP_EQUAL, request(libc::TIOCLINUX), Outcome::Eperm),
    ];
    if observed {
        lines.extend(INODE_REQUESTS.map(|request| Line::To(JUMP_EQUAL, request, Outcome::Notify)));
    }
    lines.push(Line::To(JUMP, 0, Outcome::Allow));
    lines
}

const fn refuse(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
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
pub(super) const fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

fn short(distance: usize) -> Result<u8, TooLong> {
    u8::try_from(distance).map_err(|_| TooLong)
}

pub(super) const fn instruction(code: u16, jt: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf: 0, k }
}
