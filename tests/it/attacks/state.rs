//! A state directory that an earlier run could write, and the notes that no run can.

use std::os::unix::fs::chown;

use nix::unistd::geteuid;
use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};
use tempfile::TempDir;

use crate::support::{Case, Report, World, for_each_user, names};

use super::{compile_calls, unconfined};

const LIBRARY: &str = "$(realpath /lib/x86_64-linux-gnu/libc.so.6)";

/// What an earlier run leaves in a state directory: copies of the library that are not the library,
/// and notes that vouch for them.
const FORGE: &str = "\
    mkdir -p \"$S\"; for n in 1111222233334444 0000000000000000; do \
    (cat \"$LIB\"; echo forged) > \"$S/accelerator-$n.so\"; chmod 555 \"$S/accelerator-$n.so\"; done; \
    for n in accelerator verdict notes; do printf '1 forged\\n1111222233334444\\nforged\\n' > \"$S/$n\"; done; ls \"$S\" | wc -l";

/// Tells which library a run was shown, and tries to write outside.
const LOOK: &str = "sha256sum < \"$LIB\"; grep -c accelerator- /proc/self/maps; echo x > \"$OUT/new\"; exit 0";

/// A directory of the user's in the temp area.
fn in_temp(world: &World) -> TempDir {
    let place = TempDir::with_prefix_in("ringfence-test-", "/tmp").unwrap();
    if geteuid().is_root() {
        chown(place.path(), Some(world.uid()), Some(world.uid())).unwrap();
    }
    place
}

fn library(world: &World) -> (String, String) {
    let path = world.prepare(&format!("echo -n {LIBRARY}"));
    let sum = world.prepare(&format!("sha256sum < {LIBRARY}"));
    (path, sum)
}

/// Asserts that a run watched every call and was shown the host's own library.
fn assert_uninfluenced(world: &World, report: &Report, sum: &str) {
    report.assert_exit(0).assert_full().assert_denied(true);
    assert_eq!(report.field("/sandbox/evidenceSource"), "notify", "{report}");
    assert_eq!(report.stdout(), format!("{sum}0\n"), "{report}");
    assert!(!world.outside("new").exists());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn files_forged_in_a_state_directory_in_the_temp_area_influence_no_later_run() {
    for_each_user(|world| {
        let place = in_temp(world);
        let (lib, sum) = library(world);
        let state = place.path().join("state");
        let case = Case::new(WorkspaceWrite)
            .env("LIB", &lib)
            .env("S", &state)
            .env("RINGFENCE_STATE_DIR", &state);
        let forged = case.clone().shell(FORGE).run_in(world);
        assert_eq!(forged.assert_exit(0).stdout(), "5\n", "{forged}");
        for _ in 0..2 {
            assert_uninfluenced(world, &case.clone().shell(LOOK).run_in(world), &sum);
        }
        assert_eq!(names(&state).len(), 5, "the program touched what it does not use");
        // Where no run can write, the same run is shown a library of its own.
        let report = Case::new(WorkspaceWrite).env("LIB", &lib).shell(LOOK).run_in(world);
        assert_eq!(
            report.assert_full().field("/sandbox/evidenceSource"),
            "retry",
            "{report}"
        );
        assert!(!report.stdout().starts_with(&sum), "{report}");
    });
}

#[test]
#[cfg(target_arch = "x86_64")]
fn files_forged_in_a_proper_state_directory_are_not_shown_either() {
    for_each_user(|world| {
        let (lib, _) = library(world);
        let case = Case::new(WorkspaceWrite)
            .env("LIB", &lib)
            .shell("stat -c %s \"$LIB\"; tail -c 7 \"$LIB\" | grep -c forged; echo x > \"$OUT/new\"; exit 0");
        let size = world.prepare(&format!("stat -c %s {lib}"));
        let spoil =
            "for f in \"$S\"/accelerator-*.so; do chmod u+w \"$f\"; echo forged >> \"$f\"; chmod 555 \"$f\"; done";
        for spoil in ["true", FORGE, spoil] {
            world.prepare(&format!("LIB={lib}; S=$RINGFENCE_STATE_DIR; {spoil}"));
            let report = case.run_in(world);
            report.assert_exit(0).assert_full().assert_denied(true);
            assert_eq!(report.field("/sandbox/evidenceSource"), "retry", "{report}");
            assert_eq!(report.stdout(), format!("{size}0\n"), "{report}");
            assert!(names(world.beside()).is_empty());
        }
    });
}

#[test]
fn nothing_is_made_through_a_link_that_a_run_planted_in_a_home() {
    for_each_user(|world| {
        let place = in_temp(world);
        let (lib, sum) = library(world);
        let home = place.path().join("home");
        let case = Case::new(WorkspaceWrite)
            .env("LIB", &lib)
            .env("HOME", &home)
            .env("RINGFENCE_STATE_DIR", "");
        for name in [".local", ".local/state", ".local/state/ringfence"] {
            let plant = format!(
                "rm -rf \"$HOME\"; mkdir -p \"$HOME/{name}\"; rmdir \"$HOME/{name}\"; ln -s \"$OUT\" \"$HOME/{name}\""
            );
            case.clone().shell(&plant).run_in(world).assert_exit(0);
            for mode in [ReadOnly, WorkspaceWrite] {
                let case = Case::new(mode).env("LIB", &lib).env("HOME", &home);
                let report = case.env("RINGFENCE_STATE_DIR", "").shell(LOOK).run_in(world);
                assert_uninfluenced(world, &report, &sum);
                assert!(names(world.beside()).is_empty(), "{report}");
            }
            let mut doctor = world.command(world.program());
            doctor
                .arg("doctor")
                .env("HOME", &home)
                .env_remove("RINGFENCE_STATE_DIR");
            let outcome = world.outcome(doctor);
            outcome.assert_no_panic();
            assert!(names(world.beside()).is_empty(), "{outcome}");
        }
    });
}

#[test]
fn the_users_keyring_is_closed_to_the_command() {
    for_each_user(|world| {
        compile_calls(world);
        let free = unconfined(world, "keys");
        assert!(free.contains("done"), "{free}");
        for mode in [ReadOnly, WorkspaceWrite] {
            let report = Case::new(mode).shell("\"$HOME/calls\" keys").run_in(world);
            report.assert_exit(0);
            assert_eq!(report.stdout(), "1\n1\n1\n1\n", "{report}");
        }
    });
}

#[test]
fn a_state_directory_behind_a_link_is_not_used() {
    for_each_user(|world| {
        world.prepare("mkdir $OUT/real; ln -s $OUT/real $OUT/link");
        let case = Case::new(WorkspaceWrite)
            .env("RINGFENCE_STATE_DIR", "$OUT/link/state")
            .shell("echo x > \"$OUT/new\"; exit 0");
        let report = case.run_in(world);
        report.assert_exit(0).assert_full().assert_denied(true);
        assert_eq!(report.field("/sandbox/evidenceSource"), "notify", "{report}");
        assert!(names(world.outside("real")).is_empty());
    });
}
