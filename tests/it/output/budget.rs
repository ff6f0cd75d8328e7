//! How much finished runs leave behind, and for how long.

use std::fs::{self, File};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use super::spill::{file, numbers};
use crate::support::{Case, World, for_each_user, names, text};

/// A week and a day.
const LONG_AGO: Duration = Duration::from_hours(8 * 24);

/// The directory of a finished run that left this many bytes.
fn finished(world: &World, name: &str, bytes: u64, age: Duration) -> PathBuf {
    let run = world.state().join("output").join(name);
    world.prepare(&format!(
        "umask 077; mkdir -p '{0}'; : > '{0}/stdout'; truncate -s {bytes} '{0}/stdout'",
        run.display()
    ));
    let then = SystemTime::now() - age;
    let written = File::options().write(true).open(run.join("stdout")).unwrap();
    written.set_modified(then).unwrap();
    File::open(&run).unwrap().set_modified(then).unwrap();
    run
}

#[test]
fn the_files_of_old_runs_go_and_those_of_a_run_that_goes_on_stay() {
    for_each_user(|world| {
        let old = finished(world, "old", 10, LONG_AGO);
        let locked = finished(world, "locked", 10, LONG_AGO);
        let young = finished(world, "young", 10, Duration::from_hours(24));
        let goes_on = File::open(&locked).unwrap();
        goes_on.try_lock().unwrap();
        let long = Case::new(ReadOnly).shell("seq 1 100000");
        let report = long.run_in(world);
        assert!(!old.exists());
        assert!(locked.join("stdout").exists() && young.join("stdout").exists());
        drop(goes_on);
        long.run_in(world);
        assert!(!locked.exists());
        assert!(young.exists() && file(&report, "stdout").exists());
    });
}

#[test]
fn a_run_that_goes_on_keeps_its_file_whatever_its_age() {
    for_each_user(|world| {
        world.prepare("mkfifo ready go");
        let slow = Case::new(WorkspaceWrite).shell("seq 1 100000; echo > ready; cat go; seq 1 100000");
        thread::scope(|scope| {
            let running = scope.spawn(|| slow.run_in(world));
            // By now all but a pipe's worth was read, and that is more than is held back.
            fs::read(world.inside("ready")).unwrap();
            let output = world.state().join("output");
            let run = output.join(&names(&output)[0]);
            let then = SystemTime::now() - LONG_AGO;
            for path in [run.join("stdout"), run] {
                File::open(path).unwrap().set_modified(then).unwrap();
            }
            Case::new(ReadOnly).shell("seq 1 100000").run_in(world);
            assert_eq!(names(&output).len(), 2, "both are there");
            fs::write(world.inside("go"), "").unwrap();
            let report = running.join().unwrap();
            assert!(text(file(&report, "stdout")) == numbers(100_000).repeat(2));
            assert_eq!(report.field("/stdout/spill/state"), "complete");
        });
    });
}

#[test]
fn the_oldest_files_go_when_there_is_too_much_of_them() {
    for_each_user(|world| {
        let runs: Vec<_> = [3, 2, 1]
            .map(|hours| finished(world, &format!("{hours}h"), 500 << 20, Duration::from_hours(hours)))
            .into();
        Case::new(ReadOnly).shell("seq 1 100000").run_in(world);
        let left: Vec<_> = runs.iter().map(|run| run.exists()).collect();
        assert_eq!(left, [false, true, true]);
    });
}

#[test]
fn a_run_that_needs_no_file_removes_nothing() {
    for_each_user(|world| {
        let old = finished(world, "old", 10, LONG_AGO);
        Case::new(ReadOnly).shell("echo hi").run_in(world).assert_exit(0);
        assert!(old.exists());
    });
}
