//! The file that gets all of a stream when its end is not all.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringfence::SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};
use serde_json::json;

use crate::support::{Case, Report, for_each_user, names, text};

/// What seq(1) prints.
pub(super) fn numbers(last: u32) -> String {
    let numbers: Vec<_> = (1..=last).map(|number| number.to_string()).collect();
    numbers.join("\n") + "\n"
}

/// Where a report says that a stream's file is.
pub(super) fn file(report: &Report, stream: &str) -> PathBuf {
    report.text(&format!("/{stream}/spillPath")).into()
}

/// Asserts that a stream has no file, for a reason that holds this word.
fn assert_none(report: &Report, word: &str) {
    assert!(report.field("/stdout/spillPath").is_null(), "{report}");
    assert_eq!(report.field("/stdout/spill/state"), "none");
    let reason = report.text("/stdout/spill/reason");
    assert!(reason.contains(word), "{reason}");
}

/// Asserts that a stream's file failed for this reason, and that the end of the stream is there all the same.
fn assert_failed(report: &Report, errno: &str) {
    report.assert_exit(0);
    assert_eq!(report.field("/stdout/spill/state"), "failed", "{report}");
    assert_eq!(report.field("/stdout/spill/errno"), errno);
    assert_eq!(report.field("/stdout/truncated"), true);
    assert!(report.stdout().ends_with("99999\n100000\n"));
    assert_eq!(report.stdout().len(), 64_000);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_file_holds_every_byte_of_a_stream_whose_end_is_kept() {
    for mode in [ReadOnly, WorkspaceWrite, DangerFullAccess] {
        Case::new(mode)
            .shell("seq 1 200000; echo LAST")
            .run_as_each_user(|world, report| {
                let whole = numbers(200_000) + "LAST\n";
                let path = file(report, "stdout");
                assert!(text(&path) == whole, "{} bytes", fs::metadata(&path).unwrap().len());
                assert_eq!(report.stdout(), &whole[whole.len() - 64_000..]);
                assert_eq!(report.field("/stdout/bytes"), 1_288_900);
                assert_eq!(
                    report.field("/stdout/spill"),
                    &json!({"state": "complete", "bytes": 1_288_900})
                );
                let run = world.state().join("output").join(report.text("/runId"));
                assert_eq!(path, run.join("stdout"));
                assert_eq!(names(&run), ["stdout"], "stderr needed no file");
                assert!(report.field("/stderr/spill").is_null() && report.field("/stderr/spillPath").is_null());
            });
    }
}

#[test]
fn the_file_is_its_owners_alone() {
    Case::new(WorkspaceWrite)
        .inside(["bash", "-c", "umask 0; exec \"$@\"", "-"])
        .shell("seq 1 50000; seq 1 60000 >&2")
        .run_as_each_user(|world, report| {
            for stream in ["stdout", "stderr"] {
                let path = file(report, stream);
                assert_eq!(mode(&path), 0o600);
                assert_eq!(fs::metadata(&path).unwrap().uid(), world.uid());
                assert_eq!(mode(path.parent().unwrap()), 0o700);
            }
            assert_eq!(mode(&world.state().join("output")), 0o700);
        });
}

#[test]
fn output_of_exactly_the_limit_is_whole_and_makes_no_file() {
    Case::new(WorkspaceWrite)
        .options(["--max-output", "5000"])
        .shell("head -c 5000 /dev/zero | tr '\\0' x; head -c 5001 /dev/zero | tr '\\0' y >&2")
        .run_as_each_user(|_, report| {
            assert_eq!(report.stdout(), "x".repeat(5000));
            assert_eq!(report.field("/stdout/truncated"), false);
            assert!(report.field("/stdout/spill").is_null() && report.field("/stdout/spillPath").is_null());
            let path = file(report, "stderr");
            assert_eq!(report.stderr(), "y".repeat(5000));
            assert_eq!(report.field("/stderr/truncated"), true);
            assert_eq!(text(&path), "y".repeat(5001));
            assert_eq!(names(path.parent().unwrap()), ["stderr"]);
        });
}

#[test]
fn short_output_makes_nothing_at_all() {
    Case::new(WorkspaceWrite)
        .shell("echo hi")
        .run_as_each_user(|world, report| {
            report.assert_exit(0);
            assert!(!world.state().join("output").exists());
        });
}

#[test]
fn a_file_beyond_its_limit_keeps_the_beginning_and_the_report_says_so() {
    for limit in [1_u64, 63_999, 100_000, 588_893] {
        Case::new(WorkspaceWrite)
            .options([format!("--max-spill={limit}")])
            .shell("seq 1 100000")
            .run_as_each_user(|_, report| {
                let whole = numbers(100_000);
                let length = usize::try_from(limit).unwrap();
                assert_eq!(whole.len(), 588_895);
                assert_eq!(text(file(report, "stdout")), whole[..length]);
                assert_eq!(report.field("/stdout/spill"), &json!({"state": "head", "bytes": limit}));
                assert_eq!(report.stdout(), &whole[whole.len() - 64_000..]);
            });
    }
}

#[test]
fn a_file_of_exactly_its_limit_is_complete() {
    Case::new(WorkspaceWrite)
        .options(["--max-spill", "588895"])
        .shell("seq 1 100000")
        .run_as_each_user(|_, report| {
            assert_eq!(
                report.field("/stdout/spill"),
                &json!({"state": "complete", "bytes": 588_895})
            );
        });
}

#[test]
fn bytes_that_are_no_text_are_in_the_file_as_they_were() {
    Case::new(WorkspaceWrite)
        .setup("head -c 3000000 /dev/urandom > random")
        .shell("cat random")
        .run_as_each_user(|world, report| {
            let (came, were) = (fs::read(file(report, "stdout")), fs::read(world.inside("random")));
            assert!(came.unwrap() == were.unwrap());
            assert_eq!(report.field("/stdout/binary"), true);
        });
}

#[test]
fn merged_streams_have_one_file() {
    Case::new(ReadOnly)
        .options(["--merge"])
        .shell("seq 1 20000; seq 20001 40000 >&2")
        .run_as_each_user(|_, report| {
            let whole = numbers(40_000);
            let path = file(report, "stdout");
            assert!(text(&path) == whole);
            assert_eq!(names(path.parent().unwrap()), ["stdout"]);
        });
}

#[test]
fn no_file_is_made_where_none_was_asked_for() {
    Case::new(WorkspaceWrite)
        .options(["--max-spill", "0"])
        .shell("seq 1 100000")
        .run_as_each_user(|world, report| {
            assert_none(report, "limit is 0");
            assert!(!world.state().join("output").exists());
        });
}

#[test]
fn no_file_is_made_where_the_command_could_reach_it() {
    for_each_user(|world| {
        let case = |mode, state: &str| {
            Case::new(mode)
                .options(["--allow-broad-root"])
                .env("RINGFENCE_STATE_DIR", state)
                .shell("seq 1 100000")
                .run_in(world)
        };
        assert_none(&case(ReadOnly, "/tmp/ringfence-state"), "temp area");
        assert_none(&case(WorkspaceWrite, "$W/state"), "where this run works");
        assert!(!world.inside("state").exists());
        let inner = format!("{}/output", world.state().display());
        world.prepare(&format!("mkdir '{inner}'"));
        let report = Case::new(WorkspaceWrite)
            .options(["--write", &inner, "--allow-broad-root"])
            .shell("seq 1 100000")
            .run_in(world);
        assert_none(&report, "where this run works");
        assert_eq!(names(&inner), [""; 0]);
    });
}

#[test]
fn no_file_is_made_behind_a_link() {
    for_each_user(|world| {
        world.prepare("ln -s $OUT $W/../state/output");
        let report = Case::new(ReadOnly).shell("seq 1 100000").run_in(world);
        assert_failed(&report, "ENOTDIR");
        assert_eq!(names(world.beside()), [""; 0]);
    });
}

#[test]
fn a_state_directory_that_is_missing_is_made() {
    Case::new(ReadOnly)
        .env("RINGFENCE_STATE_DIR", "$OUT/not/yet")
        .shell("seq 1 100000")
        .run_as_each_user(|world, report| {
            assert!(file(report, "stdout").starts_with(world.outside("not/yet/output")));
            assert_eq!(fs::metadata(file(report, "stdout")).unwrap().len(), 588_895);
        });
}

#[test]
fn a_relative_state_directory_is_refused_and_nothing_runs() {
    Case::new(WorkspaceWrite)
        .env("RINGFENCE_STATE_DIR", "state")
        .shell("echo ran > ran")
        .run_as_each_user(|world, report| {
            report.assert_error("INPUT_INVALID");
            assert_eq!(report.text("/error/message").matches("RINGFENCE_STATE_DIR").count(), 1);
            assert!(!world.inside("ran").exists() && !world.inside("state").exists());
        });
}

#[test]
fn a_state_directory_whose_name_is_no_utf8_is_shown_twice() {
    Case::new(ReadOnly)
        .env("RINGFENCE_STATE_DIR", OsString::from_vec(b"$OUT/\xff".to_vec()))
        .shell("seq 1 100000")
        .run_as_each_user(|world, report| {
            assert!(report.text("/stdout/spillPath").contains("/\u{fffd}/output/"));
            let bytes = STANDARD.decode(report.text("/stdout/spillPathBytes")).unwrap();
            let path = PathBuf::from(OsString::from_vec(bytes));
            assert!(path.starts_with(world.beside()));
            assert_eq!(text(path), numbers(100_000));
        });
}

#[test]
fn a_state_directory_that_cannot_be_made_is_a_fact_and_no_failure() {
    Case::new(ReadOnly)
        .env("RINGFENCE_STATE_DIR", "/proc/nowhere")
        .shell("seq 1 100000")
        .run_as_each_user(|_, report| {
            report.assert_exit(0);
            assert_none(report, "cannot be opened");
            assert_eq!(report.stdout().len(), 64_000);
        });
}

#[test]
fn a_disk_that_is_full_is_a_fact_and_loses_no_end() {
    // A small file system of the run's own, in a user namespace, which every user can have.
    let small = "mount -t tmpfs -o size=300k,mode=700 t \"$RINGFENCE_STATE_DIR\"; \"$@\"; status=$?; \
                 cp -r \"$RINGFENCE_STATE_DIR/output\" $OUT; exit $status";
    Case::new(ReadOnly)
        .inside(["unshare", "-rm", "bash", "-c", small, "-"])
        .shell("seq 1 100000")
        .run_as_each_user(|world, report| {
            assert_failed(report, "ENOSPC");
            let whole = numbers(100_000);
            let run = world.outside("output").join(report.text("/runId"));
            let head = text(run.join("stdout"));
            assert!(!head.is_empty() && whole.starts_with(&head));
            assert_eq!(report.field("/stdout/spill/bytes"), head.len());
        });
}

#[test]
fn a_read_only_disk_is_a_fact_and_no_failure() {
    let closed = "mount -t tmpfs -o ro,mode=700 t \"$RINGFENCE_STATE_DIR\"; exec \"$@\"";
    Case::new(ReadOnly)
        .inside(["unshare", "-rm", "bash", "-c", closed, "-"])
        .shell("seq 1 100000")
        .run_as_each_user(|_, report| {
            assert_failed(report, "EROFS");
            assert!(report.field("/stdout/spillPath").is_null());
            assert_eq!(report.field("/stdout/spill/bytes"), 0);
        });
}

#[test]
fn a_limit_on_the_size_of_files_ends_the_file_and_not_the_run() {
    Case::new(ReadOnly)
        .inside(["prlimit", "--fsize=100000"])
        .shell("seq 1 100000")
        .run_as_each_user(|_, report| {
            assert_failed(report, "EFBIG");
            assert_eq!(report.field("/stdout/spill/bytes"), 100_000);
            assert_eq!(fs::metadata(file(report, "stdout")).unwrap().len(), 100_000);
        });
}

#[test]
fn a_size_that_makes_no_sense_starts_nothing() {
    for_each_user(|world| {
        for size in ["-1", "", "many", "2g"] {
            let case = Case::new(WorkspaceWrite).options(["--max-spill", size]);
            case.shell("echo ran > ran").run_in(world).assert_error("INPUT_INVALID");
        }
        assert!(!world.inside("ran").exists());
    });
}
