//! Content and names: what a run may create, write, remove and move, and what it may not.

use std::path::{Path, PathBuf};

use super::run::Run;
use super::world::{Snapshot, names, plant, plant_home};
use super::{Bench, list, must};
use crate::{SandboxMode, Temp};

list![
    content_outside_of_the_workspace_stays,
    the_workspace_can_be_written,
    a_root_beside_the_workspace_can_be_written,
    read_only_changes_nothing_but_its_private_scratch,
    what_moves_between_two_roots_arrives,
];

/// Every way to change content or names in `D`, some of them with the help of `H`.
const CONTENT: &str = "
W, R, C, U = os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC
def write(path, flags, **more):
    fd = os.open(path, flags, 0o600, **more); os.write(fd, b'x'); os.close(fd)
def bind(path):
    with socket.socket(socket.AF_UNIX) as s: s.bind(path)
def reopen(path):
    fd = os.open(path, os.O_RDONLY); write('/proc/self/fd/%d' % fd, W)
def relative(path):
    write('relative', W, dir_fd=os.open(path, os.O_RDONLY | os.O_DIRECTORY))
attempt('create', write, D + '/new', C | W)
attempt('create exclusively', write, D + '/new2', C | R | os.O_EXCL)
attempt('create without a name', write, D, R | os.O_TMPFILE)
attempt('write', write, D + '/write', W)
attempt('write through a link', write, D + '/leads', R)
attempt('append', write, D + '/append', W | os.O_APPEND)
attempt('open and cut', os.open, D + '/cut', W | U)
attempt('read and cut', os.open, D + '/cut2', os.O_RDONLY | U)
attempt('truncate', os.truncate, D + '/truncate', 0)
attempt('remove', os.unlink, D + '/remove')
attempt('rmdir', os.rmdir, D + '/empty')
attempt('rename', os.rename, D + '/rename', D + '/renamed')
attempt('rename out', os.rename, D + '/out', H + '/out')
attempt('rename in', os.rename, H + '/in', D + '/in')
attempt('rename over', os.rename, H + '/over', D + '/over')
attempt('exchange', lambda: checked(libc.renameat2(-100, os.fsencode(D + '/swap'), -100, os.fsencode(H + '/swap'), 2)))
attempt('link out', os.link, D + '/link', H + '/link')
attempt('link in', os.link, H + '/linked', D + '/linked')
attempt('symlink', os.symlink, 'x', D + '/symlink')
attempt('mkdir', os.mkdir, D + '/mkdir')
attempt('mkfifo', os.mkfifo, D + '/fifo')
attempt('bind', bind, D + '/socket')
attempt('write what is open for reading', reopen, D + '/again')
attempt('write by another root', write, '/proc/self/root' + D + '/root', W)
attempt('write from a directory', relative, D)
attempt('write what is linked to', write, H + '/away', W | C)
";

/// How many attempts that is.
const ATTEMPTS: usize = 26;

/// A tree and a home for the attempts on it.
fn planted(directory: &Path, home: &Path) -> Result<(PathBuf, PathBuf), String> {
    let (tree, home) = (directory.join("tree"), home.join("home"));
    plant(&tree)?;
    plant_home(&home, &tree)?;
    Ok((tree, home))
}

/// Runs the attempts and has every one refused, and both directories unchanged.
fn refused(run: Run<'_>, tree: &Path, home: &Path) -> Result<(), String> {
    let before = [Snapshot::of(tree)?, Snapshot::of(home)?];
    let ended = run.attempts_on(tree, home, CONTENT).finish()?;
    before.iter().try_for_each(Snapshot::must_hold)?;
    ended.all_refused()?;
    let made = ended.attempts()?.len();
    must(made == ATTEMPTS, || {
        format!("{made} attempts were made, and not {ATTEMPTS}")
    })
}

/// Runs the attempts and has every one succeed, and the names be there.
fn done(run: Run<'_>, tree: &Path, home: &Path) -> Result<(), String> {
    run.attempts_on(tree, home, CONTENT).finish()?.all_done()?;
    let (there, elsewhere) = (names(tree)?, names(home)?);
    for name in ["new", "renamed", "in", "linked", "symlink", "mkdir", "fifo", "socket"] {
        must(there.iter().any(|it| it == name), || {
            format!("{name} is not in {there:?}")
        })?;
    }
    for name in ["remove", "empty", "rename", "out"] {
        must(!there.iter().any(|it| it == name), || {
            format!("{name} is still in {there:?}")
        })?;
    }
    must(elsewhere == ["away", "link", "linked", "out", "swap"], || {
        format!("{elsewhere:?}")
    })
}

fn content_outside_of_the_workspace_stays(bench: &Bench<'_>) -> Result<(), String> {
    let (tree, home) = planted(&bench.outside(), &bench.workspace())?;
    refused(Run::writing(bench)?, &tree, &home)
}

fn the_workspace_can_be_written(bench: &Bench<'_>) -> Result<(), String> {
    let (tree, home) = planted(&bench.workspace(), &bench.workspace())?;
    done(Run::writing(bench)?, &tree, &home)
}

fn a_root_beside_the_workspace_can_be_written(bench: &Bench<'_>) -> Result<(), String> {
    let (tree, home) = planted(&bench.outside(), &bench.outside())?;
    let run = Run::writing(bench)?.root(&tree)?.root(&home)?.root(&bench.outside())?;
    done(run, &tree, &home)
}

fn read_only_changes_nothing_but_its_private_scratch(bench: &Bench<'_>) -> Result<(), String> {
    let read_only = || Run::new(bench, SandboxMode::ReadOnly)?.temp(Temp::Private);
    let scratch = bench.scratch();
    for place in [bench.workspace(), bench.outside()] {
        let (tree, home) = planted(&place, &scratch)?;
        refused(read_only()?, &tree, &home)?;
        super::said("the home", std::fs::remove_dir_all(home))?;
    }
    let (tree, home) = planted(&scratch, &scratch)?;
    done(read_only()?, &tree, &home)
}

fn what_moves_between_two_roots_arrives(bench: &Bench<'_>) -> Result<(), String> {
    let (tree, home) = planted(&bench.outside(), &bench.workspace())?;
    let script = "
import shutil
attempt('move', shutil.move, D + '/out', H + '/moved')
attempt('move a directory', shutil.move, H, D + '/moved')
";
    let run = Run::writing(bench)?.root(&tree)?.attempts_on(&tree, &home, script);
    run.finish()?.all_done()?;
    must(names(&tree.join("moved"))?.contains(&"moved".to_owned()), || {
        "it did not arrive".to_owned()
    })?;
    must(!home.exists(), || "it was left behind".to_owned())
}
