//! State directories in which no trail can be kept, or in which it can only be read.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use nix::fcntl::{FcntlArg, fcntl};
use ringfence::SandboxMode::WorkspaceWrite;

use super::{audit, run, segment};
use crate::support::{Case, World, for_each_user, names};

/// The end of a run that could not be recorded: the command ran, or with `required` it did not.
fn assert_unrecorded(world: &World) {
    let done = world.inside("done");
    let plain = Case::new(WorkspaceWrite).shell("echo x > done");
    let report = plain.run_in(world);
    report.assert_exit(0);
    assert!(done.exists());
    fs::remove_file(&done).unwrap();
    let required = plain.clone().options(["--audit", "required"]).run_in(world);
    required.assert_error("AUDIT_UNWRITABLE");
    assert!(!done.exists(), "it ran although it could not be recorded");
}

#[test]
fn where_nothing_can_be_written_a_trail_is_still_read() {
    let Some(world) = World::of_root("where_nothing_can_be_written_a_trail_is_still_read") else {
        return;
    };
    run(&world, "true");
    let before = fs::read(segment(&world)).unwrap();
    let script = "mount --bind \"$RINGFENCE_STATE_DIR\" \"$RINGFENCE_STATE_DIR\"; \
        mount -o remount,bind,ro \"$RINGFENCE_STATE_DIR\"; \
        for what in list tail summary verify checkpoint; do \"$BIN\" audit $what > $OUT/$what; done; \
        \"$BIN\" audit prune --keep 0s && exit 9; \
        \"$BIN\" run -m workspace-write --audit required -- touch ran && exit 9; \
        \"$BIN\" run -m workspace-write -- touch went-on";
    let mut command = world.command("unshare");
    command.args(["--mount", "bash", "-euc", script]);
    let outcome = world.outcome(command);
    assert_eq!(outcome.status(), 0, "{outcome}");
    assert!(outcome.stderr().contains("AUDIT_UNWRITABLE"), "{outcome}");
    assert!(world.inside("went-on").exists() && !world.inside("ran").exists());
    assert!(
        fs::read_to_string(world.outside("verify"))
            .unwrap()
            .contains("records 1 to 2")
    );
    assert_eq!(fs::read(segment(&world)).unwrap(), before);
}

#[test]
fn a_trail_of_somebody_else_is_not_written() {
    let Some(world) = World::of_root("a_trail_of_somebody_else_is_not_written") else {
        return;
    };
    run(&world, "true");
    let before = fs::read(segment(&world)).unwrap();
    chown(world.state().join("audit"), Some(65_534), Some(65_534)).unwrap();
    assert_unrecorded(&world);
    assert_eq!(fs::read(segment(&world)).unwrap(), before);
    assert_eq!(audit(&world, &["verify"]).status(), 0, "it can be read");
}

#[test]
fn a_trail_that_others_may_write_or_that_is_a_link_is_not_written() {
    for_each_user(|world| {
        world.prepare("mkdir $RINGFENCE_STATE_DIR/audit");
        let trail = world.state().join("audit");
        fs::set_permissions(&trail, fs::Permissions::from_mode(0o777)).unwrap();
        assert_unrecorded(world);
        assert!(names(&trail).is_empty());
        world
            .prepare("rmdir $RINGFENCE_STATE_DIR/audit; mkdir $OUT/there; ln -s $OUT/there $RINGFENCE_STATE_DIR/audit");
        assert_unrecorded(world);
        assert!(names(world.outside("there")).is_empty());
    });
}

#[test]
fn a_segment_that_is_no_file_is_not_waited_for() {
    for_each_user(|world| {
        world.prepare(
            "mkdir -m 700 $RINGFENCE_STATE_DIR/audit; mkfifo $RINGFENCE_STATE_DIR/audit/0000000000000001.jsonl",
        );
        assert_unrecorded(world);
        assert_ne!(audit(world, &["verify"]).status(), 0);
    });
}

#[test]
fn a_full_disk_loses_the_newest_records_and_no_other() {
    let Some(world) = World::of_root("a_full_disk_loses_the_newest_records_and_no_other") else {
        return;
    };
    // The directory has its pages already; then there is room for some records and not for all.
    let script = "mount -t tmpfs -o size=96k,mode=700 t \"$RINGFENCE_STATE_DIR\"; \
        for n in {1..40}; do \"$BIN\" run -m workspace-write -- true 2>> $OUT/said; done; \
        \"$BIN\" audit verify --json > $OUT/verdict; \
        dd if=/dev/zero of=\"$RINGFENCE_STATE_DIR/fill\" 2> /dev/null || :; \
        \"$BIN\" run -m workspace-write --audit required -- touch ran && exit 9; \
        rm \"$RINGFENCE_STATE_DIR/fill\"; rm -rf \"$RINGFENCE_STATE_DIR/runs\"; \
        \"$BIN\" run -m workspace-write -- true; \"$BIN\" audit verify --json > $OUT/after";
    let mut command = world.command("unshare");
    command.args(["--mount", "bash", "-euc", script]);
    let outcome = world.outcome(command);
    assert_eq!(outcome.status(), 0, "{outcome}");
    let verdict = |name: &str| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(world.outside(name)).unwrap()).unwrap()
    };
    for name in ["verdict", "after"] {
        let verdict = verdict(name);
        assert_eq!(
            (&verdict["verified"], &verdict["tornBytes"]),
            (&true.into(), &0.into()),
            "{verdict}"
        );
    }
    assert!(verdict("after")["last"].as_u64() > verdict("verdict")["last"].as_u64());
    assert!(!world.inside("ran").exists());
    assert!(
        fs::read_to_string(world.outside("said"))
            .unwrap()
            .contains("audit trail")
    );
}

#[test]
fn a_lock_that_is_never_let_go_of_keeps_nobody_for_ever() {
    for_each_user(|world| {
        run(world, "true");
        let before = fs::read(segment(world)).unwrap();
        let lock = fs::File::options().write(true).open(world.state().join("audit/lock"));
        // As another user than root the file is the other's alone.
        let Ok(lock) = lock else {
            panic!("the harness cannot open the lock")
        };
        let whole = nix::libc::flock {
            l_type: i16::try_from(nix::libc::F_WRLCK).unwrap(),
            l_whence: i16::try_from(nix::libc::SEEK_SET).unwrap(),
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        fcntl(&lock, FcntlArg::F_OFD_SETLK(&whole)).unwrap();
        let report = Case::new(WorkspaceWrite)
            .options(["--audit", "required"])
            .shell("echo x > done")
            .run_in(world);
        report.assert_error("AUDIT_UNWRITABLE");
        assert!(report.text("/error/message").contains("lock"), "{report}");
        assert_eq!(fs::read(segment(world)).unwrap(), before);
        drop(lock);
        run(world, "true");
        assert_eq!(audit(world, &["verify"]).status(), 0);
    });
}

#[test]
fn a_limit_on_the_size_of_files_is_told_and_kills_nobody() {
    for_each_user(|world| {
        run(world, "true");
        let before = fs::read(segment(world)).unwrap();
        let script = "ulimit -f 1; \"$BIN\" run -m workspace-write --audit required -- touch ran";
        let outcome = world.bash(script);
        outcome.assert_refused(&["AUDIT_UNWRITABLE", "ulimit -f"]);
        assert!(!world.inside("ran").exists());
        assert_eq!(fs::read(segment(world)).unwrap(), before);
    });
}
