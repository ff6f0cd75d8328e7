//! The system's file, in a mount namespace with an /etc of its own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use super::{of_the_user, of_the_workspace};
use crate::support::{Outcome, World, for_each_user};

/// An /etc with one directory more, and a script as the user.
const WITH_ETC: &str = "mount --make-rprivate /; mount -t overlay -o lowerdir=$1:/etc etc /etc; \
    exec setpriv --reuid $2 --regid $2 --clear-groups bash -uc \"$3\"";

/// Writes the system's file, in the /etc of [`with_etc`].
fn deploy(world: &World, text: &str) {
    let file = world.system().join("ringfence/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, format!("schema = 1\n{text}")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
}

/// What a script says on a machine with that file.
fn with_etc(world: &World, script: &str) -> Outcome {
    let mut command = world.command_of_harness("unshare");
    command.args(["-m", "bash", "-euc", WITH_ETC, "-"]);
    command.arg(world.system()).arg(world.uid().to_string()).arg(script);
    let outcome = world.outcome(command);
    eprintln!("{outcome}");
    outcome.assert_no_panic();
    outcome
}

/// For each user, where the harness is root.
fn for_each(test: &str, check: impl Fn(&World)) {
    if World::of_root(test).is_some() {
        for_each_user(check);
    }
}

#[test]
fn what_the_system_fixes_nobody_below_loosens() {
    for_each("what_the_system_fixes_nobody_below_loosens", |world| {
        deploy(
            world,
            "mode = \"workspace-write\"\nceiling = \"workspace-write\"\naudit = \"required\"\n",
        );
        let fixed = |outcome: &Outcome, line: u8| {
            let named = format!("/etc/ringfence/config.toml, line {line}");
            assert!(outcome.stderr().contains("POLICY_INVALID"), "{outcome}");
            assert!(outcome.stderr().contains(&named), "{outcome}");
            assert!(!world.inside("ran").exists());
        };
        let plain = with_etc(world, "$BIN run -c 'echo x > new; echo $RINGFENCE_MODE'");
        assert_eq!((plain.status(), plain.stdout()), (0, "workspace-write\n".to_owned()));
        let full = with_etc(world, "$BIN run -m danger-full-access -c 'echo x > ran'");
        assert_eq!(full.status(), 125);
        fixed(&full, 3);
        fixed(&with_etc(world, "$BIN run --audit off -c 'echo x > ran'"), 4);
        fixed(&with_etc(world, "$BIN session new -m danger-full-access"), 3);
        for (text, line) in [
            ("ceiling = \"danger-full-access\"\n", 3),
            ("mode = \"danger-full-access\"\n", 3),
            ("audit = \"on\"\n", 4),
        ] {
            of_the_user(world, text);
            let outcome = with_etc(world, "$BIN run -c 'echo x > ran'");
            fixed(&outcome, line);
            assert!(
                outcome.stderr().contains(".config/ringfence/config.toml, line 2"),
                "{outcome}"
            );
        }
        of_the_user(world, "mode = \"read-only\"\n");
        assert_eq!(
            with_etc(world, "$BIN run -c 'echo $RINGFENCE_MODE'").stdout(),
            "read-only\n"
        );
        of_the_workspace(world, "mode = \"workspace-write\"\n");
        let loosened = with_etc(world, "$BIN run -c 'echo x > ran'");
        assert!(loosened.stderr().contains(".ringfence.toml, line 2"), "{loosened}");
    });
}

#[test]
fn a_session_follows_a_ceiling_that_came_down() {
    for_each("a_session_follows_a_ceiling_that_came_down", |world| {
        deploy(world, "");
        assert_eq!(
            with_etc(world, "$BIN session new --id a -m danger-full-access").status(),
            0
        );
        deploy(world, "ceiling = \"read-only\"\n");
        let refused = with_etc(world, "$BIN run --session a -c 'echo x > ran'");
        assert!(
            refused.stderr().contains("the session a asks for danger-full-access"),
            "{refused}"
        );
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn a_systems_file_that_is_not_roots_alone_is_believed_by_nobody() {
    for_each(
        "a_systems_file_that_is_not_roots_alone_is_believed_by_nobody",
        |world| {
            deploy(world, "mode = \"workspace-write\"\n");
            let file = world.system().join("ringfence/config.toml");
            let refused = |word: &str| {
                let outcome = with_etc(world, "$BIN run -c 'echo x > ran'");
                assert_eq!(outcome.status(), 125);
                assert!(
                    outcome.stderr().contains("POLICY_INVALID") && outcome.stderr().contains(word),
                    "{outcome}"
                );
                assert!(!world.inside("ran").exists());
            };
            for mode in [0o664, 0o646] {
                fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
                refused("lets others than root write it");
            }
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            chown(&file, Some(65_534), None).unwrap();
            refused("does not belong to root");
            chown(&file, Some(0), None).unwrap();
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
            refused("no regular file");
            fs::remove_dir(&file).unwrap();
            assert_eq!(with_etc(world, "$BIN run true").status(), 0);
            if world.uid() != 0 {
                deploy(world, "");
                fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
                refused("cannot be read");
                fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
                refused("cannot be read");
            }
        },
    );
}
