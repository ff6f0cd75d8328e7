//! What the user's file and the workspace's do to runs and sessions.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ringfence::SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};

use super::{of_the_user, of_the_workspace, users};
use crate::session::{document, make, session};
use crate::support::{Case, World, for_each_user};

fn mode(world: &World, case: &Case) -> String {
    let report = case.clone().argv(["true"]).run_in(world);
    report.assert_exit(0).text("/sandbox/mode").to_owned()
}

#[test]
fn the_default_mode_is_the_files_when_nothing_else_says_one() {
    for_each_user(|world| {
        let unsaid = Case::without_a_mode();
        assert_eq!(mode(world, &unsaid), "read-only");
        of_the_user(world, "mode = \"workspace-write\"\n");
        assert_eq!(mode(world, &unsaid), "workspace-write");
        assert_eq!(mode(world, &Case::new(ReadOnly)), "read-only");
        assert_eq!(mode(world, &unsaid.clone().options(["-p", "read-only"])), "read-only");
        of_the_workspace(world, "mode = \"read-only\"\n");
        assert_eq!(mode(world, &unsaid), "read-only");
        fs::remove_file(world.inside(".ringfence.toml")).unwrap();
        make(world, "a", Some("read-only"));
        assert_eq!(mode(world, &unsaid.clone().options(["--session", "a"])), "read-only");
        make(world, "b", None);
        let in_session = unsaid.options(["--session", "b"]);
        assert_eq!(mode(world, &in_session), "workspace-write", "it follows the default");
        of_the_user(world, "");
        assert_eq!(mode(world, &in_session), "read-only", "and goes on following it");
    });
}

#[test]
fn the_configuration_directory_is_the_one_that_is_named() {
    for_each_user(|world| {
        world.prepare("mkdir -p $OUT/xdg/ringfence; printf 'schema = 1\\nmode = \"workspace-write\"\\n' > $OUT/xdg/ringfence/config.toml");
        let there = Case::without_a_mode().env("XDG_CONFIG_HOME", "$OUT/xdg");
        assert_eq!(mode(world, &there), "workspace-write");
        let relative = Case::without_a_mode().env("XDG_CONFIG_HOME", "../out/xdg");
        assert_eq!(mode(world, &relative), "read-only", "one that is relative is none");
    });
}

#[test]
fn nothing_gets_beyond_the_ceiling_and_the_file_that_sets_it_is_named() {
    for_each_user(|world| {
        make(world, "full", Some("danger-full-access"));
        of_the_user(world, "ceiling = \"workspace-write\"\n");
        let named = format!("{}, line 2", users(world).display());
        let asks = [
            Case::new(DangerFullAccess),
            Case::without_a_mode().options(["-p", "danger-full-access"]),
            Case::without_a_mode().options(["--session", "full"]),
            Case::new(DangerFullAccess).options(["--session", "full"]),
        ];
        for case in asks {
            let report = case.shell("echo x > $W/ran").run_in(world);
            report.assert_error("POLICY_INVALID");
            assert!(report.text("/error/message").contains(&named), "{report}");
            assert!(!world.inside("ran").exists());
        }
        let stricter = Case::new(WorkspaceWrite).options(["--session", "full"]);
        assert_eq!(mode(world, &stricter), "workspace-write");
        for words in [
            &["mode", "full", "danger-full-access"][..],
            &["new", "-m", "danger-full-access"],
        ] {
            let (status, refused) = document(world, words);
            assert_eq!((status, &refused["error"]["code"]), (2, &"POLICY_INVALID".into()));
            assert!(
                refused["error"]["message"].as_str().unwrap().contains(&named),
                "{refused}"
            );
        }
        let (_, shown) = document(world, &["show", "full"]);
        assert!(
            shown["effectiveMode"].is_null() && shown["problem"].as_str().unwrap().contains(&named),
            "{shown}"
        );
        assert_eq!(session(world, ["mode", "full", "workspace-write"]).status(), 0);
        assert_eq!(
            mode(world, &Case::without_a_mode().options(["--session", "full"])),
            "workspace-write"
        );
    });
}

#[test]
fn a_workspace_tightens_the_runs_in_it_and_loosens_none() {
    for_each_user(|world| {
        of_the_workspace(world, "ceiling = \"read-only\"\n");
        let report = Case::new(WorkspaceWrite).shell("echo x > ran").run_in(world);
        report.assert_error("POLICY_INVALID");
        for looser in [
            "mode = \"workspace-write\"",
            "audit = \"off\"",
            "[approval]\nhook = [\"/bin/true\"]",
        ] {
            of_the_workspace(world, looser);
            let report = Case::new(ReadOnly).argv(["true"]).run_in(world);
            report.assert_error("POLICY_INVALID");
            let message = report.text("/error/message");
            assert!(message.contains(".ringfence.toml, line "), "{report}");
        }
        // It counts for its own workspace alone.
        Case::new(ReadOnly)
            .options(["-C", "$OUT"])
            .argv(["true"])
            .run_in(world)
            .assert_exit(0);
    });
}

#[test]
fn a_floor_for_enforcement_holds_for_runs_that_ask_for_less() {
    for_each_user(|world| {
        of_the_user(world, "require = \"full\"\n");
        for options in [&[][..], &["--require", "partial"]] {
            let report = Case::new(WorkspaceWrite)
                .inside(crate::support::CONTAINER)
                .options(options.iter().copied())
                .options(["--evidence", "off"])
                .shell("echo x > ran")
                .run_in(world);
            report.assert_error("SANDBOX_UNAVAILABLE");
            assert!(!world.inside("ran").exists());
        }
    });
}

#[test]
fn a_run_is_recorded_at_least_as_the_file_says() {
    for_each_user(|world| {
        let asks = |word: &str| {
            Case::new(ReadOnly)
                .options(["--audit", word])
                .argv(["true"])
                .run_in(world)
        };
        asks("off").assert_exit(0);
        of_the_user(world, "audit = \"on\"\n");
        let report = asks("off");
        report.assert_error("POLICY_INVALID");
        assert!(
            report.text("/error/message").contains("config.toml, line 2"),
            "{report}"
        );
        asks("on").assert_exit(0);
    });
}

#[test]
fn a_file_that_is_there_and_cannot_be_used_lets_nothing_run() {
    for_each_user(|world| {
        let path = users(world);
        let refused = || {
            let report = Case::new(ReadOnly).shell("echo x > ran").run_in(world);
            report.assert_error("POLICY_INVALID");
            assert!(report.text("/error/message").contains("config.toml"), "{report}");
            assert!(!report.text("/error/hint").is_empty());
        };
        of_the_user(world, "mod = \"read-only\"\n");
        refused();
        of_the_user(world, "mode = read-only\n");
        refused();
        of_the_user(world, "");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        refused();
        if world.uid() != 0 {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            refused();
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        refused();
        fs::remove_dir(&path).unwrap();
        Case::new(ReadOnly).argv(["true"]).run_in(world).assert_exit(0);
    });
}

#[test]
fn a_home_that_cannot_be_entered_has_no_file_for_this_user() {
    for_each_user(|world| {
        fs::create_dir(world.outside("closed")).unwrap();
        fs::set_permissions(world.outside("closed"), fs::Permissions::from_mode(0o700)).unwrap();
        let case = Case::new(ReadOnly).env("HOME", "$OUT/closed");
        case.argv(["true"]).run_in(world).assert_exit(0);
    });
}

#[test]
fn explain_shows_the_ceiling_and_where_it_comes_from() {
    for_each_user(|world| {
        of_the_user(world, "mode = \"workspace-write\"\nceiling = \"workspace-write\"\n");
        let mut command = world.command(world.program());
        command.arg("explain");
        let said = world.outcome(command).stdout();
        let file = users(world).display().to_string();
        assert!(
            said.contains(&format!("workspace-write, from {file}, line 2")),
            "{said}"
        );
        assert!(
            said.contains(&format!("workspace-write, from {file}, line 3")),
            "{said}"
        );
        let mut command = world.command(world.program());
        command.args(["explain", "--json", "-m", "read-only"]);
        let document: serde_json::Value = serde_json::from_str(&world.outcome(command).stdout()).unwrap();
        assert_eq!(document["policy"]["modeFrom"], "--mode");
        assert_eq!(document["policy"]["ceiling"], "workspace-write");
        assert_eq!(document["policy"]["ceilingFrom"], format!("{file}, line 3"));
    });
}
