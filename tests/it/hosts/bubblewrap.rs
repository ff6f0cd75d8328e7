//! Programs called bwrap that fail, or that are not started: said in words, and nothing runs unconfined.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use super::given::assert_refused;
use super::{ATTACK, KEEP, UNWATCHED, assert_nothing_ran};
use crate::support::{Case, Report, World, for_each_user, names};

/// Where every user finds the ordinary programs.
pub(super) const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

/// Puts a program called bwrap into a directory. It is started with an empty environment.
pub(super) fn put(world: &World, directory: &Path, script: &str) {
    let script = world.expand(script.as_ref()).into_string().unwrap();
    fs::create_dir_all(directory).unwrap();
    let program = directory.join("bwrap");
    fs::write(&program, format!("#!/bin/bash\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Attacks through the backend bwrap, with this PATH.
fn attack(world: &World, path: impl AsRef<OsStr>) -> Report {
    world.prepare(&format!("rm -f ran; {KEEP}"));
    Case::new(WorkspaceWrite)
        .options(UNWATCHED)
        .options(["--backend", "bwrap"])
        .env("PATH", path.as_ref())
        .shell(ATTACK)
        .run_in(world)
}

/// Attacks through a stand-in that lies where root alone can write.
pub(super) fn attack_through(world: &World, script: &str) -> Report {
    let directory = world.system();
    put(world, &directory, script);
    attack(world, format!("{}:{USUAL}", directory.display()))
}

#[test]
fn where_there_is_no_bubblewrap_it_is_said_where_it_was_looked_for() {
    for_each_user(|world| {
        let empty = world.home();
        let report = attack(world, &empty);
        assert_refused(
            &report,
            &[(
                "bwrap",
                &format!("bubblewrap is not installed: there is no bwrap in {}", empty.display()),
            )],
        );
        assert_nothing_ran(world);
    });
}

#[test]
fn one_that_fails_is_quoted_and_one_that_says_nothing_is_said_to() {
    let words = [
        (
            "echo 'bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted' >&2; exit 1",
            "Failed RTM_NEWADDR",
        ),
        (
            "echo 'bwrap: Unknown option --argv0' >&2; exit 1",
            "Unknown option --argv0",
        ),
        ("exit 1", "it ended without a word"),
        ("exit 0", "it ended without a word"),
        ("kill -9 $$", "it ended without a word"),
        ("printf '\\377\\033[31m\\n' >&2; exit 1", "did not make the boundary"),
    ];
    for (script, said) in words {
        for_each_user(|world| {
            let report = attack_through(world, script);
            assert_refused(&report, &[("bwrap", said)]);
            assert_nothing_ran(world);
        });
    }
}

#[test]
fn one_that_runs_can_write_is_not_started_not_even_to_ask() {
    let mark = "echo started >> $OUT/started; exec /usr/bin/bwrap \"$@\"";
    for_each_user(|world| {
        let temp = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o777))
            .tempdir_in("/tmp")
            .unwrap();
        for directory in [world.inside("node_modules/.bin"), temp.path().to_owned()] {
            put(world, &directory, mark);
            let report = attack(world, format!("{}:{USUAL}", directory.display()));
            assert_refused(&report, &[("bwrap", "not started")]);
            assert_eq!(names(world.beside()), ["f"], "it was started");
            assert_nothing_ran(world);
        }
        // The same through a link, and through a root that is added.
        let linked = world.home().join("linked");
        fs::create_dir(&linked).unwrap();
        symlink(world.inside("node_modules/.bin/bwrap"), linked.join("bwrap")).unwrap();
        let report = attack(world, format!("{}:{USUAL}", linked.display()));
        assert_refused(&report, &[("bwrap", "not started")]);
        assert_eq!(names(world.beside()), ["f"], "it was started");
        put(world, &world.home().join("tools"), mark);
        let added = Case::new(WorkspaceWrite)
            .options(["--backend", "bwrap", "--write"])
            .options([world.home().join("tools")])
            .env("PATH", format!("{}:{USUAL}", world.home().join("tools").display()))
            .shell(ATTACK)
            .run_in(world);
        assert_refused(&added, &[("bwrap", "not started")]);
        assert_eq!(names(world.beside()), ["f"], "it was started");
        assert_nothing_ran(world);
    });
}

#[test]
fn one_that_others_may_write_is_not_started() {
    for_each_user(|world| {
        let directory = world.home().join("open");
        put(
            world,
            &directory,
            "echo started >> $OUT/started; exec /usr/bin/bwrap \"$@\"",
        );
        fs::set_permissions(directory.join("bwrap"), fs::Permissions::from_mode(0o777)).unwrap();
        let report = attack(world, format!("{}:{USUAL}", directory.display()));
        assert_refused(&report, &[("bwrap", "others than root may write")]);
        assert_nothing_ran(world);
    });
}

#[test]
fn a_directory_of_path_that_depends_on_where_the_caller_is_is_passed_over() {
    for relative in ["bin:", ".:", "", "../w/bin:"] {
        for_each_user(|world| {
            put(world, &world.inside("bin"), "echo started >> $OUT/started; exit 1");
            put(world, &world.workspace(), "echo started >> $OUT/started; exit 1");
            let report = attack(world, format!("{relative}:{USUAL}"));
            report.assert_exit(0).assert_full();
            assert_eq!(names(world.beside()), ["f"], "it was started");
        });
    }
}

#[test]
fn where_landlock_serves_no_bubblewrap_is_started() {
    for mode in [ReadOnly, WorkspaceWrite] {
        for_each_user(|world| {
            put(world, &world.system(), "echo started >> $OUT/started; exit 1");
            let report = Case::new(mode)
                .env("PATH", format!("{}:{USUAL}", world.system().display()))
                .argv(["true"])
                .run_in(world);
            report.assert_exit(0).assert_full();
            assert!(names(world.beside()).is_empty(), "it was started");
        });
    }
}
