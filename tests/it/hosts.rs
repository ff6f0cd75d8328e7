//! Hosts that give less, and hosts that fail: named, or refused, never silently open.

use std::fs;
use std::os::unix::fs::MetadataExt;

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use crate::support::{CONTAINER, Case, World, for_each_user, names, text};

/// Nobody watches the calls, so that only the kernel's own layers govern metadata.
const UNWATCHED: [&str; 2] = ["--evidence", "off"];

/// What was proved on this boot is not remembered: a kernel that lies from the start on.
const FORGETFUL: &str = "inject=keyctl:error=ENOSYS";

/// A kernel that answers a system call of every process with an error.
fn kernel_failing(call: &str, errno: &str) -> [String; 9] {
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:error={errno}"));
    ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject].map(str::to_owned)
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

// --- kernels that fail ------------------------------------------------------------------------

#[test]
fn a_kernel_without_landlock_is_a_refusal() {
    for errno in ["ENOSYS", "EOPNOTSUPP"] {
        for mode in [ReadOnly, WorkspaceWrite] {
            Case::new(mode)
                .inside(kernel_failing("landlock_create_ruleset", errno))
                .setup(KEEP)
                .shell(ATTACK)
                .run_as_each_user(|world, report| {
                    report.assert_error("SANDBOX_UNAVAILABLE");
                    assert_eq!(report.field("/error/tried/0/backend"), "landlock");
                    assert_nothing_ran(world);
                });
        }
    }
}

#[test]
fn a_boundary_that_cannot_be_set_up_is_a_refusal() {
    for (call, errno) in [
        ("landlock_restrict_self", "E2BIG"),
        ("landlock_add_rule", "EINVAL"),
        ("seccomp", "EINVAL"),
    ] {
        Case::new(WorkspaceWrite)
            .inside(kernel_failing(call, errno))
            .setup(KEEP)
            .shell(ATTACK)
            .run_as_each_user(|world, report| {
                report.assert_error("SANDBOX_UNAVAILABLE");
                assert_nothing_ran(world);
            });
    }
}

#[test]
fn a_boundary_that_only_pretends_to_stand_is_found_out() {
    // The call says that it succeeded, and did nothing.
    let (trace, inject) = (
        "trace=landlock_restrict_self,keyctl",
        "inject=landlock_restrict_self:retval=0",
    );
    for mode in [ReadOnly, WorkspaceWrite] {
        Case::new(mode)
            .inside([
                "strace",
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                trace,
                "-e",
                inject,
                "-e",
                FORGETFUL,
            ])
            .setup(KEEP)
            .shell(ATTACK)
            .run_as_each_user(|world, report| {
                report.assert_error("SANDBOX_UNAVAILABLE");
                assert_nothing_ran(world);
            });
    }
}

#[test]
fn mounts_that_cannot_be_made_read_only_are_named() {
    for (call, errno) in [
        ("mount_setattr", "ENOSYS"),
        ("mount_setattr", "EPERM"),
        ("open_tree", "ENOSYS"),
    ] {
        Case::new(WorkspaceWrite)
            .options(UNWATCHED)
            .inside(kernel_failing(call, errno))
            .setup(KEEP)
            .shell(ATTACK)
            .run_as_each_user(|world, report| {
                report.assert_exit(0).assert_partial(&["devices", "metadata"]);
                assert_content_is_kept(world);
            });
    }
}

#[test]
fn mounts_that_only_pretend_to_be_read_only_are_found_out() {
    let (trace, inject) = ("trace=mount_setattr,keyctl", "inject=mount_setattr:retval=0");
    Case::new(WorkspaceWrite)
        .options(UNWATCHED)
        .inside([
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            trace,
            "-e",
            inject,
            "-e",
            FORGETFUL,
        ])
        .setup(KEEP)
        .shell(ATTACK)
        .run_as_each_user(|world, report| {
            if report.has("/sandbox") {
                report.assert_partial(&["devices", "metadata"]);
                assert_content_is_kept(world);
            } else {
                report.assert_error("SANDBOX_UNAVAILABLE");
                assert_nothing_ran(world);
            }
        });
}

#[test]
fn a_verdict_that_is_no_longer_true_lets_nothing_through() {
    let changes = [
        ("landlock_restrict_self", "EPERM"),
        ("landlock_create_ruleset", "EOPNOTSUPP"),
        ("seccomp", "ENOSYS"),
    ];
    for (call, errno) in changes {
        for_each_user(|world| {
            world.prepare(KEEP);
            let case = Case::new(WorkspaceWrite).shell(ATTACK);
            case.run_in(world).assert_exit(0).assert_full();
            fs::remove_file(world.inside("ran")).unwrap();
            let worse = case.clone().inside(kernel_failing(call, errno)).run_in(world);
            worse.assert_error("SANDBOX_UNAVAILABLE");
            assert_nothing_ran(world);
            case.run_in(world).assert_exit(0).assert_full();
        });
    }
}

#[test]
fn a_mount_layer_that_is_lost_is_never_called_full() {
    for_each_user(|world| {
        world.prepare(KEEP);
        let case = Case::new(WorkspaceWrite).options(UNWATCHED).shell(ATTACK);
        case.run_in(world).assert_exit(0).assert_full();
        let worse = case
            .clone()
            .inside(kernel_failing("mount_setattr", "EPERM"))
            .run_in(world);
        if worse.has("/sandbox") {
            worse.assert_partial(&["devices", "metadata"]);
        } else {
            worse.assert_error("SANDBOX_UNAVAILABLE");
            assert_eq!(mode_bits(world), 0o644);
        }
        assert_content_is_kept(world);
    });
}

#[test]
fn a_partial_verdict_is_not_remembered_as_if_it_were_the_hosts() {
    for_each_user(|world| {
        world.prepare(KEEP);
        let case = Case::new(WorkspaceWrite)
            .options(UNWATCHED)
            .shell("chmod 600 $OUT/f; exit 0");
        case.clone()
            .inside(CONTAINER)
            .run_in(world)
            .assert_exit(0)
            .assert_partial(&["devices", "metadata"]);
        world.prepare("chmod 644 $OUT/f");
        case.run_in(world).assert_exit(0).assert_full();
        assert_eq!(mode_bits(world), 0o644);
    });
}

#[test]
fn a_verdict_of_the_hosts_is_not_taken_for_a_containers() {
    for_each_user(|world| {
        world.prepare(KEEP);
        let case = Case::new(WorkspaceWrite).options(UNWATCHED).shell(ATTACK);
        case.run_in(world).assert_exit(0).assert_full();
        // A container may share the state directory, and may be unable to write it.
        let state = world.state().into_os_string();
        let bind = ["--ro-bind".into(), state.clone(), state, "--".into()];
        let closed = CONTAINER[..8].iter().map(Into::into).chain(bind);
        for container in [
            closed.collect::<Vec<std::ffi::OsString>>(),
            CONTAINER.map(Into::into).to_vec(),
        ] {
            let report = case.clone().inside(container).run_in(world);
            report.assert_exit(0).assert_partial(&["devices", "metadata"]);
            assert_content_is_kept(world);
        }
    });
}

#[test]
fn a_forged_verdict_in_the_state_directory_is_not_believed_over_the_kernel() {
    for_each_user(|world| {
        world.prepare(KEEP);
        let case = Case::new(WorkspaceWrite).shell(ATTACK);
        case.run_in(world).assert_exit(0).assert_full();
        // Whatever stands in the files, nothing but a whole boundary is called full.
        for junk in ["", "{", "null", "full", "\u{0}\u{0}"] {
            world.prepare(&format!(
                "find $RINGFENCE_STATE_DIR -type f | while read f; do chmod u+w $f; printf '%s' '{}' > $f; done",
                junk.replace('\0', "")
            ));
            case.run_in(world).assert_exit(0).assert_full();
            assert_eq!(mode_bits(world), 0o644);
        }
    });
}

#[test]
fn the_state_of_one_user_is_closed_to_others() {
    Case::new(WorkspaceWrite)
        .argv(["true"])
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_full();
            let open = world.prepare("find $RINGFENCE_STATE_DIR -mindepth 1 -perm /022");
            assert_eq!(open, "", "others can write these");
        });
}
