//! Doors: the ways out that a mode does not speak of. What is not listed as open is closed.

use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::ended::governs;
use super::run::Run;
use super::{Bench, list, must, said};
use crate::{Door, Effect, LaunchPlan, Session};

list![
    doors_that_nobody_closed_are_open_and_listed,
    a_closed_network_refuses_its_sockets_alone,
    closed_unix_sockets_refuse_theirs_alone,
    both_can_be_closed_at_once,
    nobody_outside_is_signalled,
    nobody_outside_is_seen,
    no_other_process_is_written_through,
    no_other_way_into_the_kernel_is_open,
];

/// Makes sockets of each family, connects to a listener outside, and talks through a pair.
const SOCKETS: &str = "
def made(family, kind=socket.SOCK_STREAM): socket.socket(family, kind).close()
def connect(path):
    with socket.socket(socket.AF_UNIX) as s: s.connect(path)
def pair(kind):
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    one.send(b'x')
    if other.recv(1) != b'x': raise OSError(errno.EIO, '')
def listen():
    with socket.socket(socket.AF_INET) as s, socket.socket(socket.AF_INET) as c:
        s.bind(('127.0.0.1', 0)); s.listen(); c.connect(s.getsockname())
attempt('internet 4', made, socket.AF_INET)
attempt('internet 6', made, socket.AF_INET6)
attempt('datagrams', made, socket.AF_INET, socket.SOCK_DGRAM)
attempt('vsock', made, 40)
attempt('loopback', listen)
attempt('unix', made, socket.AF_UNIX)
attempt('unix datagrams', made, socket.AF_UNIX, socket.SOCK_DGRAM)
attempt('connect', connect, D)
attempt('pair', pair, socket.SOCK_STREAM)
attempt('pair of datagrams', pair, socket.SOCK_DGRAM)
";

/// The attempts that go through each door.
const INTERNET: [&str; 4] = ["internet 4", "internet 6", "datagrams", "loopback"];
const UNIX: [&str; 3] = ["unix", "unix datagrams", "connect"];
const PAIRS: [&str; 2] = ["pair", "pair of datagrams"];

fn sockets(bench: &Bench<'_>, closed: &[Door]) -> Result<(), String> {
    let at = bench.outside().join("listener");
    let listener = said(at.display(), UnixListener::bind(&at))?;
    said("the listener", listener.set_nonblocking(true))?;
    let run = closed.iter().fold(Run::writing(bench)?, |run, door| run.closed(*door));
    let ended = run.attempts_on(&at, &at, SOCKETS).finish()?;
    let expected = |door| if closed.contains(&door) { ["EACCES"] } else { ["done"] };
    for attempt in INTERNET {
        ended.must_be(attempt, &expected(Door::Network))?;
    }
    // A host may lack the family.
    if closed.contains(&Door::Network) {
        ended.must_be("vsock", &["EACCES"])?;
    }
    for attempt in UNIX {
        ended.must_be(attempt, &expected(Door::UnixSockets))?;
    }
    for attempt in PAIRS {
        ended.must_be(attempt, &["done"])?;
    }
    must(listener.accept().is_ok() != closed.contains(&Door::UnixSockets), || {
        "what came to a listener outside is not what the run says".to_owned()
    })?;
    for door in [Door::Network, Door::UnixSockets] {
        let listed = ended.plan.not_confined.contains(&door);
        must(listed != closed.contains(&door), || {
            format!("{:?} are listed as open", ended.plan.not_confined)
        })?;
    }
    Ok(())
}

fn doors_that_nobody_closed_are_open_and_listed(bench: &Bench<'_>) -> Result<(), String> {
    sockets(bench, &[])
}

fn a_closed_network_refuses_its_sockets_alone(bench: &Bench<'_>) -> Result<(), String> {
    sockets(bench, &[Door::Network])
}

fn closed_unix_sockets_refuse_theirs_alone(bench: &Bench<'_>) -> Result<(), String> {
    sockets(bench, &[Door::UnixSockets])
}

fn both_can_be_closed_at_once(bench: &Bench<'_>) -> Result<(), String> {
    sockets(bench, &[Door::Network, Door::UnixSockets])
}

/// This process and its parent, both of which stand outside of every run.
fn outsiders() -> [i32; 2] {
    [nix::unistd::getpid().as_raw(), nix::unistd::getppid().as_raw()]
}

fn is_open(plan: &LaunchPlan, door: Door) -> bool {
    plan.not_confined.contains(&door)
}

fn nobody_outside_is_signalled(bench: &Bench<'_>) -> Result<(), String> {
    // SIGURG is ignored by who does not ask for it, so a boundary with a fault harms nobody.
    let script = "
import signal
for number in map(int, os.environ['PIDS'].split()):
    for kind in [0, signal.SIGURG]: attempt('signal %d to %d' % (kind, number), os.kill, number, kind)
    attempt('descriptor of %d' % number, lambda: checked(libc.syscall(424, libc.syscall(434, number, 0), signal.SIGURG, None, 0)))
try: os.kill(0, signal.SIGURG)
except OSError: pass
try: os.kill(-1, signal.SIGURG)
except OSError: pass
def self(): os.kill(os.getpid(), signal.SIGURG)
attempt('self', self)
";
    let mut urgent = SigSet::empty();
    urgent.add(Signal::SIGURG);
    said("SIGURG", urgent.thread_block())?;
    let arrived = said(
        "SIGURG",
        SignalFd::with_flags(&urgent, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC),
    )?;
    let mut run = Run::writing(bench)?;
    // Of the same group, so that the group can be tried, too.
    run.session = Session::Callers;
    let [own, parent] = outsiders();
    let run = run.env("PIDS", Path::new(&format!("{own} {parent}"))).attempts(script);
    let ended = run.finish();
    let signal = said("SIGURG", arrived.read_signal())?;
    let ended = ended?;
    if is_open(&ended.plan, Door::Signals) {
        return Ok(());
    }
    must(signal.is_none(), || {
        "a signal of the run's arrived outside of it".to_owned()
    })?;
    ended.must_be("self", &["done"])?;
    let attempts = ended.attempts()?;
    must(attempts.len() == 7, || format!("{attempts:?}"))?;
    ended.all(|what| matches!(what, "ESRCH" | "EPERM" | "EBADF" | "done"))?;
    let others = attempts.iter().filter(|(name, _)| *name != "self");
    must(others.clone().all(|(_, what)| what != "done"), || {
        format!("{attempts:?}")
    })
}

fn nobody_outside_is_seen(bench: &Bench<'_>) -> Result<(), String> {
    let script = "
for name in os.listdir('/proc'):
    if name.isdigit(): print(name, open('/proc/%s/cmdline' % name, 'rb').read(), sep='=')
print('me', os.getpid(), sep='=')
";
    let ended = Run::writing(bench)?.attempts(script).finish()?;
    if is_open(&ended.plan, Door::ProcessVisibility) {
        return Ok(());
    }
    let seen = ended.attempts()?;
    let me = seen.get("me").cloned().unwrap_or_default();
    must(seen.contains_key(&me), || format!("it does not see itself: {seen:?}"))?;
    // The command, and whoever is the first of its namespace.
    must(seen.len() <= 3, || format!("it sees others: {seen:?}"))
}

fn no_other_process_is_written_through(bench: &Bench<'_>) -> Result<(), String> {
    let script = "
def memory(number): os.open('/proc/%d/mem' % number, os.O_RDWR)
def through(number, what): os.open('/proc/%d/%s' % (number, what) + H, os.O_WRONLY | os.O_CREAT, 0o600)
def attach(number): checked(libc.ptrace(0x4206, number, 0, 0))
def take(number): checked(libc.syscall(438, libc.syscall(434, number, 0), 0, 0))
for number in [*map(int, os.environ['PIDS'].split()), 1, os.getppid()]:
    attempt('memory of %d' % number, memory, number)
    attempt('root of %d' % number, through, number, 'root')
    attempt('directory of %d' % number, through, number, 'cwd')
    attempt('attach to %d' % number, attach, number)
    attempt('descriptor of %d' % number, take, number)
";
    let [own, parent] = outsiders();
    let made = bench.outside().join("made");
    let run = Run::writing(bench)?.env("PIDS", Path::new(&format!("{own} {parent}")));
    let ended = run.attempts_on(&made, &made, script).finish()?;
    must(!made.exists(), || {
        "a file was made outside through another process".to_owned()
    })?;
    must(governs(&ended.plan, Effect::ProcessMemory), || {
        "it is not governed at all".to_owned()
    })?;
    ended.all(|what| {
        matches!(
            what,
            "EACCES" | "EPERM" | "ENOENT" | "ESRCH" | "EBADF" | "EROFS" | "ENOTDIR"
        )
    })
}

fn no_other_way_into_the_kernel_is_open(bench: &Bench<'_>) -> Result<(), String> {
    let script = "
def call(number, *words): checked(libc.syscall(number, *words))
here = os.fsencode(D)
attempt('io_uring', call, 425, 8, ctypes.create_string_buffer(128))
attempt('mount', lambda: checked(libc.mount(b'none', here, b'tmpfs', 0, None)))
attempt('unmount', lambda: checked(libc.umount2(here, 0)))
attempt('remount', lambda: checked(libc.mount(b'none', b'/', None, 32 | 4096, None)))
attempt('open a tree', call, 428, -100, here, 1)
attempt('open a file system', call, 430, b'tmpfs', 0)
attempt('attributes of a mount', call, 442, -100, here, 0, ctypes.create_string_buffer(32), 32)
attempt('message queue', lambda: checked(libc.mq_open(b'/ringfence', os.O_CREAT | os.O_RDWR, 0o600, None)))
attempt('key', call, 248, b'user', b'ringfence', b'x', 1, -4)
";
    for run in [Run::writing(bench)?, Run::new(bench, crate::SandboxMode::ReadOnly)?] {
        let ended = run
            .attempts_on(&bench.workspace(), &bench.workspace(), script)
            .finish()?;
        ended.all(|what| matches!(what, "EPERM" | "ENOSYS"))?;
        ended.must_be("io_uring", &["ENOSYS"])?;
    }
    Ok(())
}
