//! Devices: the sinks and terminals work in every mode, and nothing else does.

use std::path::Path;

use nix::sys::stat::{Mode, SFlag, makedev, mknod};

use super::ended::governs;
use super::run::Run;
use super::world::names;
use super::{Bench, list, must, said};
use crate::{Effect, SandboxMode, Temp};

list![
    the_sinks_work,
    a_run_without_a_terminal_has_none_and_can_make_one,
    no_other_device_is_opened_for_writing_or_asked_anything,
    no_device_node_is_made,
    a_device_node_in_the_workspace_is_closed,
];

/// The modes that confine, with what else a run may have.
fn confined<'a>(bench: &'a Bench<'a>) -> Result<[Run<'a>; 2], String> {
    Ok([
        Run::new(bench, SandboxMode::ReadOnly)?.temp(Temp::Private)?,
        Run::writing(bench)?.temp(Temp::Host)?,
    ])
}

fn the_sinks_work(bench: &Bench<'_>) -> Result<(), String> {
    let script = "
def into(path):
    fd = os.open(path, os.O_WRONLY); os.write(fd, b'x'); os.close(fd)
def both(path): os.close(os.open(path, os.O_RDWR))
def read(path, expected=None):
    with open(path, 'rb', 0) as file: got = file.read(16)
    if expected is not None and got != expected: raise OSError(errno.EIO, '')
    if expected is None and len(got) != 16: raise OSError(errno.EIO, '')
for name in ['null', 'zero', 'full', 'random', 'urandom']: attempt('open ' + name, both, '/dev/' + name)
for name in ['null', 'zero', 'random', 'urandom']: attempt('write ' + name, into, '/dev/' + name)
attempt('truncate', lambda: os.close(os.open('/dev/null', os.O_WRONLY | os.O_TRUNC | os.O_CREAT)))
attempt('read null', read, '/dev/null', b'')
attempt('read zero', read, '/dev/zero', bytes(16))
attempt('read full', read, '/dev/full', bytes(16))
attempt('read random', read, '/dev/random')
attempt('read urandom', read, '/dev/urandom')
attempt('full', into, '/dev/full')
";
    for run in confined(bench)? {
        let ended = run.attempts(script).finish()?;
        ended.must_be("full", &["ENOSPC"])?;
        ended.all(|what| matches!(what, "done" | "ENOSPC"))?;
    }
    Ok(())
}

fn a_run_without_a_terminal_has_none_and_can_make_one(bench: &Bench<'_>) -> Result<(), String> {
    let script = "
def talk():
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, 0x5414, bytes([40, 0, 100, 0, 0, 0, 0, 0]))
    name = os.ttyname(theirs)
    again = os.open(name, os.O_RDWR | os.O_NOCTTY)
    os.write(again, b'hello\\n')
    if os.read(ours, 16) != b'hello\\r\\n' or os.get_terminal_size(again) != (100, 40): raise OSError(errno.EIO, '')
def own():
    ours, theirs = os.openpty()
    if os.fork() == 0:
        os.setsid()
        fcntl.ioctl(theirs, 0x540e, 0)
        os.write(os.open('/dev/tty', os.O_RDWR), b'x')
        os._exit(0)
    if os.read(ours, 1) != b'x' or os.wait()[1] != 0: raise OSError(errno.EIO, '')
attempt('terminal', os.open, '/dev/tty', os.O_RDWR)
attempt('talk', talk)
attempt('own', own)
";
    for run in confined(bench)? {
        let ended = run.attempts(script).finish()?;
        ended.must_be("terminal", &["ENXIO"])?;
        ended.must_be("talk", &["done"])?;
        ended.must_be("own", &["done"])?;
    }
    Ok(())
}

fn no_other_device_is_opened_for_writing_or_asked_anything(bench: &Bench<'_>) -> Result<(), String> {
    // A request that no driver knows: what the driver answers, the boundary let through.
    let script = "
known = {'null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx'}
def ask(path):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    fcntl.ioctl(fd, 0x4cfe, 0)
for name in os.environ['NAMES'].split(':'):
    path = '/dev/' + name
    attempt('write ' + name, os.open, path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    attempt('change ' + name, os.open, path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
    attempt('ask ' + name, ask, path)
print('all=made')
";
    let mut nodes = Vec::new();
    for name in names(Path::new("/dev"))? {
        use std::os::unix::fs::FileTypeExt;
        let kind = said(&name, std::fs::symlink_metadata(Path::new("/dev").join(&name)))?.file_type();
        let known = ["null", "zero", "full", "random", "urandom", "tty", "ptmx"].contains(&name.as_str());
        // Opening a watchdog starts it, and a boundary with a fault must not cost the machine.
        let known = known || name.starts_with("watchdog");
        if (kind.is_char_device() || kind.is_block_device()) && !known {
            nodes.push(name);
        }
    }
    // A host without a further device has nothing that could be opened; the line that ends the script is looked for.
    for run in confined(bench)? {
        let run = run.env("NAMES", Path::new(&nodes.join(":")));
        let ended = run.attempts(script).finish()?;
        ended.must_be("all", &["made"])?;
        let asked = governs(&ended.plan, Effect::DeviceIoctl);
        for (attempt, what) in ended.attempts()? {
            let refused = matches!(&*what, "EROFS" | "EACCES" | "EPERM" | "ENOENT" | "EISDIR" | "ENXIO");
            let free = attempt == "all" || (attempt.starts_with("ask") && !asked);
            must(refused || free, || format!("{attempt} ended with {what}"))?;
        }
    }
    Ok(())
}

fn no_device_node_is_made(bench: &Bench<'_>) -> Result<(), String> {
    let script = "
for place in [D, H]:
    attempt('character ' + place, os.mknod, place + '/c', stat.S_IFCHR | 0o600, os.makedev(1, 3))
    attempt('block ' + place, os.mknod, place + '/b', stat.S_IFBLK | 0o600, os.makedev(7, 0))
";
    let (workspace, scratch) = (bench.workspace(), bench.scratch());
    let run = Run::writing(bench)?.temp(Temp::Private)?;
    run.attempts_on(&workspace, &scratch, script).finish()?.all_refused()?;
    let made = [names(&workspace)?, names(&scratch)?].concat();
    must(made.is_empty(), || format!("nodes were made: {made:?}"))
}

fn a_device_node_in_the_workspace_is_closed(bench: &Bench<'_>) -> Result<(), String> {
    let node = bench.workspace().join("node");
    // A second /dev/full, which tells by ENOSPC that it was reached.
    match mknod(&node, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(1, 7)) {
        Ok(()) => {}
        // Who cannot make one has none there: then that is what is looked at.
        Err(nix::errno::Errno::EPERM) => return no_device_node_is_made(bench),
        Err(errno) => return said("a device node", Err(errno)),
    }
    let script = "
def full(path):
    fd = os.open(path, os.O_WRONLY); os.write(fd, b'x')
attempt('write', full, D + '/node')
";
    for run in confined(bench)? {
        let ended = run
            .attempts_on(&bench.workspace(), &bench.workspace(), script)
            .finish()?;
        if governs(&ended.plan, Effect::Devices) {
            ended.must_be("write", &["EACCES", "EROFS", "EPERM"])?;
        } else {
            ended.must_be("write", &["ENOSPC"])?;
        }
    }
    Ok(())
}
