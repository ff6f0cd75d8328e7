//! Hosts that give less, and hosts that fail: named, or refused, never silently open.

mod bubblewrap;
mod containers;
pub(crate) mod given;
mod kernels;
mod launcher;
mod lies;
mod mounts;
mod nested;
mod verdicts;
mod without_landlock;

use std::fs;
use std::os::unix::fs::MetadataExt;

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use crate::support::{CONTAINER, Case, World, for_each_user, names, text};

/// Nobody watches the calls, so that only the kernel's own layers govern metadata.
const UNWATCHED: [&str; 2] = ["--evidence", "off"];

/// A kernel that answers these calls of every process otherwise than it should, as strace(1) writes it.
fn kernel_with<const N: usize>(changes: [&str; N]) -> Vec<String> {
    let calls = changes.map(|change| change.split(':').next().unwrap_or_default());
    let mut words: Vec<_> = ["strace", "-f", "-qq", "-o", "/dev/null", "-e"]
        .map(str::to_owned)
        .into();
    words.push(format!("trace={}", calls.join(",")));
    for change in changes {
        words.extend(["-e".to_owned(), format!("inject={change}")]);
    }
    words
}

/// A kernel that answers a system call of every process with an error.
fn kernel_failing(call: &str, errno: &str) -> Vec<String> {
    kernel_with([&format!("{call}:error={errno}")])
}

/// A file beside the workspace, and an attempt to write it and to change its metadata.
const KEEP: &str = "echo keep > $OUT/f; chmod 644 $OUT/f";
const ATTACK: &str = "echo x > $OUT/f; echo x > $OUT/new; rm -f $OUT/f; chmod 600 $OUT/f; echo ran > $W/ran; exit 0";

fn assert_content_is_kept(world: &World) {
    assert_eq!(text(world.outside("f")), "keep\n");
    assert_eq!(names(world.beside()), ["f"]);
}

fn mode_bits(world: &World) -> u32 {
    fs::metadata(world.outside("f")).unwrap().mode() & 0o777
}

fn assert_nothing_ran(world: &World) {
    assert_content_is_kept(world);
    assert_eq!(mode_bits(world), 0o644);
    assert!(!world.inside("ran").exists(), "the command ran");
}

// --- one inside another -----------------------------------------------------------------------

#[test]
fn a_run_inside_a_run_works_and_the_outer_one_still_holds() {
    for inner in ["read-only", "workspace-write"] {
        Case::new(WorkspaceWrite)
            .setup(KEEP)
            .shell(&format!("\"$BIN\" run -m {inner} -c '{ATTACK}'; echo after > after"))
            .run_as_each_user(|world, report| {
                report.assert_exit(0);
                assert_content_is_kept(world);
                assert_eq!(mode_bits(world), 0o644, "{report}");
                assert_eq!(world.inside("ran").exists(), inner == "workspace-write", "{report}");
                assert_eq!(text(world.inside("after")), "after\n");
            });
    }
}

#[test]
fn a_run_inside_a_run_says_what_its_own_boundary_leaves_open() {
    Case::new(WorkspaceWrite)
        .shell("\"$BIN\" run --json -m workspace-write -- true > inner")
        .run_as_each_user(|world, report| {
            report.assert_exit(0);
            let inner: serde_json::Value = serde_json::from_str(&text(world.inside("inner"))).unwrap();
            // Mounts are refused inside a Landlock domain.
            assert_eq!(inner["sandbox"]["enforcement"], "partial", "{inner:#}");
            assert_eq!(
                inner["sandbox"]["ungoverned"],
                serde_json::json!(["devices", "metadata"]),
                "{inner:#}"
            );
        });
}

#[test]
fn a_verdict_that_the_inner_run_cannot_forget_does_not_stop_it() {
    for_each_user(|world| {
        // The state directory is where it ordinarily is: the inner run sees the verdict of the outer one.
        let case = Case::new(WorkspaceWrite).env("RINGFENCE_STATE_DIR", "");
        case.clone().argv(["true"]).run_in(world).assert_exit(0).assert_full();
        assert!(
            world.home().join(".local/state/ringfence").is_dir(),
            "nothing was remembered"
        );
        let inner = "\"$BIN\" run --json -m workspace-write -c 'echo in > in' > inner";
        case.shell(inner).run_in(world).assert_exit(0);
        let inner: serde_json::Value = serde_json::from_str(&text(world.inside("inner"))).unwrap();
        assert_eq!(inner["sandbox"]["enforcement"], "partial", "{inner:#}");
        assert_eq!(text(world.inside("in")), "in\n");
    });
}

// --- containers -------------------------------------------------------------------------------

#[test]
fn a_container_without_namespaces_leaves_metadata_open_and_says_so() {
    Case::new(WorkspaceWrite)
        .options(UNWATCHED)
        .inside(CONTAINER)
        .setup(KEEP)
        .shell(ATTACK)
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_partial(&["devices", "metadata"]);
            assert_content_is_kept(world);
            assert!(world.inside("ran").exists());
        });
}

#[test]
fn metadata_is_changed_for_the_command_where_nothing_else_governs_it() {
    let inside = "echo a > f; chmod 600 f && touch -d 2001-01-01 f && mv f g && stat -c '%a %Y' g";
    let outside = "chmod 777 $OUT/f; touch -d 2001-01-01 $OUT/f; chgrp 0 $OUT/f";
    Case::new(WorkspaceWrite)
        .setup(KEEP)
        .inside(CONTAINER)
        .shell(&format!("{inside}; {outside}; exit 0"))
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_partial(&["devices"]).assert_denied(true);
            assert_eq!(report.stdout(), "600 978307200\n", "{report}");
            assert_eq!(mode_bits(world), 0o644, "{report}");
            assert!(
                fs::metadata(world.outside("f")).unwrap().mtime() > 1_000_000_000,
                "{report}"
            );
        });
}

#[test]
fn a_path_that_flips_between_inside_and_outside_never_changes_what_is_outside() {
    let flip = "mkdir real; echo a > real/f; ln -s real d; \
        (for i in $(seq 400); do ln -sfn $OUT d; ln -sfn real d; done) & \
        for i in $(seq 400); do chmod 777 d/f 2>/dev/null; done; wait; exit 0";
    Case::new(WorkspaceWrite)
        .setup(KEEP)
        .inside(CONTAINER)
        .shell(flip)
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_partial(&["devices"]);
            assert_eq!(mode_bits(world), 0o644, "{report}");
        });
}

#[test]
fn a_container_without_namespaces_still_gives_the_whole_of_read_only() {
    Case::new(ReadOnly)
        .inside(CONTAINER)
        .setup(KEEP)
        .shell(ATTACK)
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_full();
            assert_nothing_ran(world);
        });
}

#[test]
fn a_neighbour_in_the_same_container_is_out_of_reach() {
    let beside = "(exec 7>> $OUT/f; exec sleep 600) & echo $! > $OUT/pid; \"$@\"; status=$?; kill %1; exit $status";
    for mode in [ReadOnly, WorkspaceWrite] {
        Case::new(mode)
            .inside(CONTAINER.into_iter().chain(["bash", "-c", beside, "-"]))
            .setup(KEEP)
            .shell("p=/proc/$(cat $OUT/pid); echo x > $p/fd/7; echo x > $p/root$OUT/new; echo x > $p/cwd/new; exit 3")
            .run_as_each_user(|world, report| {
                report.assert_exit(3);
                assert_eq!(text(world.outside("f")), "keep\n");
                assert_eq!(names(world.beside()), ["f", "pid"]);
                assert!(names(world.workspace()).is_empty());
            });
    }
}

#[test]
fn ordinary_work_goes_on_in_a_container() {
    Case::new(WorkspaceWrite).options(UNWATCHED)
        .inside(CONTAINER)
        .shell(
            "set -e; git init -q .; echo a > a; git add a; git -c user.name=a -c user.email=a@b commit -qm one; \
             mkdir d; mv a d/a; ln d/a b; chmod 600 b; touch -d 2001-01-01 b; f=$(mktemp); rm $f; git log --oneline | wc -l",
        )
        .run_as_each_user(|_, report| {
            report.assert_exit(0).assert_partial(&["devices", "metadata"]).assert_denied(false);
            assert_eq!(report.stdout(), "1\n");
        });
}

#[test]
fn a_host_that_gives_less_does_not_meet_a_demand_for_everything() {
    Case::new(WorkspaceWrite)
        .options(UNWATCHED)
        .inside(CONTAINER)
        .options(["--require", "full"])
        .setup(KEEP)
        .shell(ATTACK)
        .run_as_each_user(|world, report| {
            report.assert_error("SANDBOX_UNAVAILABLE");
            assert!(report.text("/error/message").contains("metadata"), "{report}");
            assert_nothing_ran(world);
        });
}
