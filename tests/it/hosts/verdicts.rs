//! What was proved of a host, and how long it is believed.

use std::fs;

use ringfence::SandboxMode::WorkspaceWrite;

use super::{ATTACK, KEEP, UNWATCHED, assert_content_is_kept, assert_nothing_ran, kernel_failing, mode_bits};
use crate::support::{CONTAINER, Case, for_each_user};

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
            let case = Case::new(WorkspaceWrite)
                .options(["--backend", "landlock"])
                .shell(ATTACK);
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
