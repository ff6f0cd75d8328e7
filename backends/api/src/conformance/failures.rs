//! Launches that fail: the stage, the reason, and nothing that is left.

use std::collections::BTreeSet;

use nix::sys::stat::Mode;

use super::run::{Run, pin};
use super::world::{Snapshot, names, plant, write};
use super::{Bench, list, must, said};
use crate::LaunchError;
use crate::Temp;
use crate::descriptor::End;
use crate::status::Stage;

list![
    a_program_that_cannot_be_executed_is_a_failure_with_its_reason,
    a_working_directory_that_was_exchanged_ends_the_launch,
    a_writable_root_that_was_exchanged_is_not_opened,
    many_launches_leave_nothing_behind_in_the_runner,
];

/// The children of this process, of all its threads, by number.
fn children() -> Result<BTreeSet<String>, String> {
    let mut all = BTreeSet::new();
    for thread in names("/proc/self/task".as_ref())? {
        // A thread that has ended meanwhile has none.
        let list = std::fs::read_to_string(format!("/proc/self/task/{thread}/children")).unwrap_or_default();
        all.extend(list.split_whitespace().map(str::to_owned));
    }
    Ok(all)
}

/// That a launch fails at this stage with this errno, and leaves nobody.
fn fails(run: &Run<'_>, stage: Stage, errno: i32) -> Result<(), String> {
    let before = children()?;
    let failed = run.try_start()?;
    let after = children()?;
    must(after == before, || {
        format!("{after:?} are children, and {before:?} were")
    })?;
    match failed {
        Ok(_) => Err("the command ran".to_owned()),
        Err(LaunchError::Failed(failure)) => must((failure.stage, failure.errno) == (stage, errno), || {
            format!(
                "{failure} ({:?}, {}), and not {stage:?}, {errno}",
                failure.stage, failure.errno
            )
        }),
        Err(error) => Err(format!("{error}, and not {stage:?}, {errno}")),
    }
}

fn a_program_that_cannot_be_executed_is_a_failure_with_its_reason(bench: &Bench<'_>) -> Result<(), String> {
    let workspace = bench.workspace();
    write(&workspace.join("plain"), "#!/bin/sh\n")?;
    write(&workspace.join("odd"), "no program\n")?;
    said(
        "a mode",
        nix::sys::stat::fchmodat(
            nix::fcntl::AT_FDCWD,
            &workspace.join("odd"),
            Mode::S_IRWXU,
            nix::sys::stat::FchmodatFlags::FollowSymlink,
        ),
    )?;
    for (name, errno) in [
        ("missing", libc::ENOENT),
        ("plain", libc::EACCES),
        ("odd", libc::ENOEXEC),
        ("plain/x", libc::ENOENT),
    ] {
        let run = Run::writing(bench)?.argv([workspace.join(name)]);
        fails(&run, Stage::Exec, errno).map_err(|error| format!("{name}: {error}"))?;
    }
    // One that can be is found behind others that cannot.
    let mut run = Run::writing(bench)?.shell("exit 6");
    run.candidates.splice(
        0..0,
        ["missing", "plain"].map(|name| workspace.join(name).into_os_string()),
    );
    let ended = run.finish()?;
    must(ended.end == Some(End::Exited(6)), || ended.shown())
}

fn a_working_directory_that_was_exchanged_ends_the_launch(bench: &Bench<'_>) -> Result<(), String> {
    let directory = bench.workspace().join("sub");
    said("a directory", std::fs::create_dir(&directory))?;
    let mut run = Run::writing(bench)?.shell(": > ran");
    run.workdir = pin(&directory)?;
    said("a rename", std::fs::rename(&directory, bench.workspace().join("moved")))?;
    fails(&run, Stage::WorkingDirectory, libc::ENOENT)?;
    said("a directory", std::fs::create_dir(&directory))?;
    fails(&run, Stage::WorkingDirectory, libc::ESTALE)?;
    said("a directory", std::fs::remove_dir(&directory))?;
    said("a link", std::os::unix::fs::symlink("moved", &directory))?;
    // A link is no directory, wherever it leads.
    fails(&run, Stage::WorkingDirectory, libc::ENOTDIR)?;
    must(names(&bench.workspace().join("moved"))?.is_empty(), || {
        "the command ran".to_owned()
    })
}

fn a_writable_root_that_was_exchanged_is_not_opened(bench: &Bench<'_>) -> Result<(), String> {
    let (root, moved, other) = (
        bench.outside().join("root"),
        bench.outside().join("moved"),
        bench.outside().join("other"),
    );
    plant(&other)?;
    for link in [false, true] {
        said("a directory", std::fs::create_dir(&root))?;
        let run = Run::writing(bench)?.root(&root)?.env("D", &root);
        let run = run.shell(r#"echo x > "$D/write"; echo x > "$D/ran"; exit 0"#);
        said("a rename", std::fs::rename(&root, &moved))?;
        if link {
            said("a link", std::os::unix::fs::symlink(&other, &root))?;
        } else {
            plant(&root)?;
        }
        let before = Snapshot::of(&other)?;
        let mounts = run.plan()?.has_mounts();
        if mounts && !link {
            fails(&run, Stage::WritableRoot, libc::ESTALE)?;
        } else if let Ok(started) = run.try_start()? {
            must(!mounts, || "the command ran".to_owned())?;
            // Without mounts a root is a descriptor, to which the name does not lead any more.
            started.finish()?;
        }
        before.must_hold()?;
        must(!root.join("ran").exists(), || {
            "what took the root's place could be written".to_owned()
        })?;
        said(
            "the root",
            if link {
                std::fs::remove_file(&root)
            } else {
                std::fs::remove_dir_all(&root)
            },
        )?;
        said("the root", std::fs::remove_dir(&moved))?;
    }
    Ok(())
}

fn many_launches_leave_nothing_behind_in_the_runner(bench: &Bench<'_>) -> Result<(), String> {
    let missing = Run::writing(bench)?.temp(Temp::Private)?.argv(["/missing"]);
    let run = Run::writing(bench)?.temp(Temp::Private)?.argv(["/bin/true"]);
    // What is made once and kept is made now.
    run.finish()?.must_succeed()?;
    let state = || Ok::<_, String>((names("/proc/self/fd".as_ref())?, children()?));
    let before = state()?;
    for _ in 0..50 {
        run.finish()?.must_succeed()?;
    }
    for _ in 0..5 {
        fails(&missing, Stage::Exec, libc::ENOENT)?;
    }
    let after = state()?;
    must(after == before, || {
        format!("descriptors and children are {after:?}, and were {before:?}")
    })
}
