//! Kernels that fail, or lie about what they did.

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use super::{ATTACK, KEEP, UNWATCHED, assert_content_is_kept, assert_nothing_ran, kernel_failing, kernel_with};
use crate::support::Case;

/// What was proved on this boot is not remembered: a kernel that lies from the start on.
const FORGETFUL: &str = "keyctl:error=ENOSYS";

/// The backend and no other.
const LANDLOCK: [&str; 2] = ["--backend", "landlock"];

#[test]
fn a_kernel_without_landlock_is_a_refusal() {
    for errno in ["ENOSYS", "EOPNOTSUPP"] {
        for mode in [ReadOnly, WorkspaceWrite] {
            Case::new(mode)
                .inside(kernel_failing("landlock_create_ruleset", errno))
                .options(LANDLOCK)
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
            .options(LANDLOCK)
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
    let lying = kernel_with(["landlock_restrict_self:retval=0", FORGETFUL]);
    for mode in [ReadOnly, WorkspaceWrite] {
        Case::new(mode)
            .inside(lying.clone())
            .options(LANDLOCK)
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
    Case::new(WorkspaceWrite)
        .options(UNWATCHED)
        .inside(kernel_with(["mount_setattr:retval=0", FORGETFUL]))
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
