//! Metadata: mode bits, owner, times, attributes and flags, by path and through descriptors.

use std::os::unix::fs::MetadataExt;

use super::ended::governs;
use super::run::Run;
use super::world::{Snapshot, plant};
use super::{Bench, list, must, said};
use crate::{Effect, SandboxMode, Temp};

list![
    metadata_outside_of_the_workspace_stays,
    metadata_in_the_workspace_can_be_changed,
    read_only_changes_no_metadata,
];

/// Every way to change the metadata of files in `D`.
const METADATA: &str = "
me = (os.getuid(), os.getgid())
def opened(name, flags=os.O_RDONLY): return os.open(D + name, flags)
def flags(name):
    fd, now = opened(name), bytearray(8)
    fcntl.ioctl(fd, 0x80086601, now)
    now[0] ^= 0x40
    fcntl.ioctl(fd, 0x40086602, bytes(now))
def magic(name): return '/proc/self/fd/%d' % opened(name, os.O_PATH)
def mode2(name):
    checked(libc.syscall(452, -100, os.fsencode(D + name), 0o600, 0))
attempt('mode', os.chmod, D + '/mode', 0o600)
attempt('mode by the newer call', mode2, '/newer')
attempt('owner', os.chown, D + '/owner', *me)
attempt('owner of a link', os.lchown, D + '/leads', *me)
attempt('times', os.utime, D + '/times', (1, 1))
attempt('times of a link', os.utime, D + '/leads', (1, 1), follow_symlinks=False)
attempt('attribute', os.setxattr, D + '/attribute', 'user.ringfence', b'x')
attempt('no attribute', os.removexattr, D + '/bare', 'user.ringfence')
attempt('mode of what is open', os.fchmod, opened('/fd-mode'), 0o600)
attempt('owner of what is open', os.fchown, opened('/fd-owner'), *me)
attempt('times of what is open', os.utime, opened('/fd-times'), (1, 1))
attempt('attribute of what is open', os.setxattr, opened('/fd-attribute'), 'user.ringfence', b'x')
attempt('flags', flags, '/flags')
attempt('mode by a magic link', os.chmod, magic('/magic'), 0o600)
attempt('mode of a directory', os.chmod, D + '/empty', 0o700)
attempt('times of the directory itself', os.utime, D, (1, 1))
";

/// How many attempts that is.
const ATTEMPTS: usize = 16;

/// Runs the attempts outside; has everything stay there if the plan says so.
fn outside_stays(bench: &Bench<'_>, run: Run<'_>) -> Result<(), String> {
    let tree = bench.outside().join("tree");
    plant(&tree)?;
    let before = Snapshot::of(&tree)?;
    let ended = run.attempts_on(&tree, &bench.workspace(), METADATA).finish()?;
    let made = ended.attempts()?.len();
    must(made == ATTEMPTS, || {
        format!("{made} attempts were made, and not {ATTEMPTS}")
    })?;
    if governs(&ended.plan, Effect::Metadata) {
        before.must_hold()?;
        ended.all_refused()
    } else {
        // What is said to be open must not be closed by chance: the word would be wrong.
        ended.all_done()
    }
}

fn metadata_outside_of_the_workspace_stays(bench: &Bench<'_>) -> Result<(), String> {
    outside_stays(bench, Run::writing(bench)?)
}

fn metadata_in_the_workspace_can_be_changed(bench: &Bench<'_>) -> Result<(), String> {
    let tree = bench.workspace().join("tree");
    plant(&tree)?;
    let run = Run::writing(bench)?.attempts_on(&tree, &bench.workspace(), METADATA);
    run.finish()?.all_done()?;
    for (name, mode) in [
        ("mode", 0o600),
        ("newer", 0o600),
        ("fd-mode", 0o600),
        ("magic", 0o600),
        ("empty", 0o700),
    ] {
        let now = said(name, std::fs::metadata(tree.join(name)))?.mode() & 0o7777;
        must(now == mode, || format!("the mode of {name} is {now:o}"))?;
    }
    for name in ["times", "fd-times"] {
        let now = said(name, std::fs::metadata(tree.join(name)))?.mtime();
        must(now == 1, || format!("the time of {name} is {now}"))?;
    }
    Ok(())
}

fn read_only_changes_no_metadata(bench: &Bench<'_>) -> Result<(), String> {
    outside_stays(bench, Run::new(bench, SandboxMode::ReadOnly)?.temp(Temp::Private)?)?;
    let tree = bench.workspace().join("tree");
    plant(&tree)?;
    let before = Snapshot::of(&tree)?;
    let run = Run::new(bench, SandboxMode::ReadOnly)?.temp(Temp::Private)?;
    let ended = run.attempts_on(&tree, &tree, METADATA).finish()?;
    before.must_hold()?;
    ended.all_refused()
}
