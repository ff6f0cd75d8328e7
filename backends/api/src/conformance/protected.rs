//! Paths inside a writable root that stay as they are.

use std::path::{Path, PathBuf};

use super::ended::governs;
use super::run::Run;
use super::world::{Snapshot, names, plant, write};
use super::{Bench, list, must, said};
use crate::{CommandSpec, Effect, Enforcement, LaunchError, Protected};

list![
    protected_paths_stay_whatever_is_tried,
    what_stands_beside_a_protected_path_can_be_changed,
    a_writable_root_inside_a_protected_path_stays_protected,
    a_protected_path_inside_a_second_root_stays,
    a_protected_path_that_was_exchanged_ends_the_launch,
    what_cannot_be_protected_is_said,
];

/// Every way to change `D`, which is protected with everything in it, and `H`, a protected file.
const ATTEMPTS: &str = "
def write(path, flags=os.O_WRONLY):
    fd = os.open(path, flags, 0o600); os.write(fd, b'x'); os.close(fd)
def fresh(name):
    write(name, os.O_WRONLY | os.O_CREAT); return name
def exchange(one, other): checked(libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2))
def fresh_directory(name): os.mkdir(name); return name
above = os.path.dirname(D)
attempt('write', write, D + '/write')
attempt('write the file', write, H)
attempt('append', write, H, os.O_WRONLY | os.O_APPEND)
attempt('create', write, D + '/new', os.O_WRONLY | os.O_CREAT)
attempt('truncate', os.truncate, H, 0)
attempt('open and cut', os.open, H, os.O_WRONLY | os.O_TRUNC)
attempt('remove', os.unlink, D + '/remove')
attempt('remove the file', os.unlink, H)
attempt('rmdir', os.rmdir, D + '/empty')
attempt('rename', os.rename, D, above + '/elsewhere')
attempt('rename the file', os.rename, H, 'elsewhere')
attempt('rename what is above', os.rename, above, 'gone')
attempt('rename within', os.rename, D + '/rename', D + '/renamed')
attempt('rename out', os.rename, D + '/out', 'stolen')
attempt('replace', os.rename, fresh('one'), H)
attempt('replace within', os.rename, fresh('two'), D + '/over')
attempt('exchange', exchange, fresh('three'), H)
attempt('exchange the directory', exchange, fresh_directory('four'), D)
attempt('exchange what is above', exchange, 'four', above)
attempt('mkdir', os.mkdir, D + '/mkdir')
attempt('symlink', os.symlink, 'x', D + '/symlink')
attempt('link', os.link, H, 'linked')
attempt('link in', os.link, 'one', D + '/linked')
attempt('mkfifo', os.mkfifo, D + '/fifo')
attempt('mode', os.chmod, H, 0o777)
attempt('mode within', os.chmod, D + '/mode', 0o777)
attempt('owner', os.chown, H, os.getuid(), os.getgid())
attempt('times', os.utime, H, (1, 1))
attempt('attribute', os.setxattr, H, 'user.ringfence', b'x')
attempt('mode of what is open', os.fchmod, os.open(H, os.O_RDONLY), 0o777)
attempt('write what is open', write, '/proc/self/fd/%d' % os.open(H, os.O_RDONLY))
attempt('write from the side', write, 'deep/down/../../' + os.path.basename(H))
";

/// A directory and a file in a workspace, beneath directories that can be written.
fn planted(workspace: &Path) -> Result<(PathBuf, PathBuf), String> {
    let above = workspace.join("deep/down");
    said(above.display(), std::fs::create_dir_all(&above))?;
    let (directory, file) = (above.join("kept"), workspace.join("file"));
    plant(&directory)?;
    write(&file, "keep\n")?;
    Ok((directory, file))
}

fn protected_paths_stay_whatever_is_tried(bench: &Bench<'_>) -> Result<(), String> {
    let (directory, file) = planted(&bench.workspace())?;
    let run = Run::writing(bench)?.protect(&directory)?.protect(&file)?;
    let before = [Snapshot::of(&directory)?, Snapshot::of(&file)?];
    if !governs(&run.plan()?, Effect::ProtectedPaths) {
        // Half of them would succeed, so each could stand in another's way: the word alone is looked at.
        return Ok(());
    }
    let ended = run.attempts_on(&directory, &file, ATTEMPTS).finish()?;
    before.iter().try_for_each(Snapshot::must_hold)?;
    ended.all_refused()
}

fn what_stands_beside_a_protected_path_can_be_changed(bench: &Bench<'_>) -> Result<(), String> {
    let (directory, file) = planted(&bench.workspace())?;
    // What is held in its place is a mount of its own, so a rename across is a move in two steps (EXDEV).
    let script = "
import shutil
above = os.path.dirname(D)
attempt('create', lambda: open(above + '/beside', 'w').close())
attempt('rename', os.rename, above + '/beside', above + '/renamed')
attempt('mkdir', os.mkdir, above + '/mkdir')
attempt('rename a directory', os.rename, above + '/mkdir', above + '/moved')
attempt('move across', shutil.move, above + '/moved', 'mkdir')
attempt('mode', os.chmod, above, 0o700)
attempt('read', lambda: open(H).read())
";
    let run = Run::writing(bench)?.protect(&directory)?.protect(&file)?;
    run.attempts_on(&directory, &file, script).finish()?.all_done()?;
    let there = names(&bench.workspace())?;
    must(there == ["deep", "file", "mkdir"], || format!("{there:?}"))?;
    let there = names(&bench.workspace().join("deep/down"))?;
    must(there == ["kept", "renamed"], || format!("{there:?}"))
}

/// Writes to a file in `D` and makes another.
const WRITE: &str = "
attempt('write', lambda: os.open(D + '/write', os.O_WRONLY | os.O_TRUNC))
attempt('create', os.open, D + '/new', os.O_WRONLY | os.O_CREAT, 0o600)
";

fn a_writable_root_inside_a_protected_path_stays_protected(bench: &Bench<'_>) -> Result<(), String> {
    let (directory, _) = planted(&bench.workspace())?;
    let inner = directory.join("inner");
    plant(&inner)?;
    let before = Snapshot::of(&directory)?;
    let run = Run::writing(bench)?.root(&inner)?.protect(&directory)?;
    let ended = run.attempts_on(&inner, &directory, WRITE).finish()?;
    if governs(&ended.plan, Effect::ProtectedPaths) {
        before.must_hold()?;
        ended.all_refused()?;
    }
    Ok(())
}

fn a_protected_path_inside_a_second_root_stays(bench: &Bench<'_>) -> Result<(), String> {
    let (directory, _) = planted(&bench.outside())?;
    let before = Snapshot::of(&directory)?;
    let run = Run::writing(bench)?.root(&bench.outside())?.protect(&directory)?;
    let beside = bench.outside().join("beside");
    let script = format!("{WRITE}open(H, 'w').close()\n");
    let ended = run.attempts_on(&directory, &beside, &script).finish()?;
    if governs(&ended.plan, Effect::ProtectedPaths) {
        before.must_hold()?;
        ended.all_refused()?;
    }
    must(beside.exists(), || "the root itself could not be written".to_owned())
}

fn a_protected_path_that_was_exchanged_ends_the_launch(bench: &Bench<'_>) -> Result<(), String> {
    let (directory, _) = planted(&bench.workspace())?;
    let mark = bench.workspace().join("ran");
    let run = Run::writing(bench)?.protect(&directory)?.env("D", &mark);
    let run = run.shell(r#": > "$D""#);
    if !governs(&run.plan()?, Effect::ProtectedPaths) {
        return Ok(());
    }
    let moved = directory.with_file_name("moved");
    said("a rename", std::fs::rename(&directory, &moved))?;
    plant(&directory)?;
    match run.try_start()? {
        Ok(_) => Err("another directory was protected, and the command ran".to_owned()),
        Err(LaunchError::Failed(failure)) if failure.stage == crate::status::Stage::Protected => {
            must(failure.errno == libc::ESTALE, || failure.to_string())?;
            must(!mark.exists(), || "the command ran".to_owned())
        }
        Err(error) => Err(format!("it failed elsewhere: {error}")),
    }
}

fn what_cannot_be_protected_is_said(bench: &Bench<'_>) -> Result<(), String> {
    let missing = Protected {
        path: bench.workspace().join("missing"),
        target: None,
        above: Vec::new(),
        linked: false,
    };
    let (directory, _) = planted(&bench.workspace())?;
    let linked = |run: &mut Run<'_>| run.protected.iter_mut().for_each(|path| path.linked = true);
    let mut first = Run::writing(bench)?;
    first.protected.push(missing);
    let mut second = Run::writing(bench)?.protect(&directory)?;
    linked(&mut second);
    for run in [first, second] {
        let command: CommandSpec = run.command()?;
        let plan = run.plan_with(&command)?;
        let said = matches!(&plan.enforcement, Some(Enforcement::Partial { ungoverned }) if ungoverned.contains(&Effect::ProtectedPaths));
        must(said, || format!("it is not named as open: {:?}", plan.enforcement))?;
    }
    Ok(())
}
