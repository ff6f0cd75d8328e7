//! `ringfence session`: what it makes, shows and switches, and what it refuses.

use std::fs;

use serde_json::Value;

use super::{document, log, make, session};
use crate::support::{for_each_user, names};

#[test]
fn a_session_is_made_shown_switched_and_listed() {
    for_each_user(|world| {
        let (status, made) = document(world, &["new"]);
        assert_eq!(status, 0);
        let id = made["id"].as_str().unwrap();
        assert_eq!(id.as_bytes()[14], b'7', "a UUID of version 7: {id}");
        assert_eq!(made["schema"], 1);
        assert_eq!(made["cwd"], world.workspace().to_str().unwrap());
        assert_eq!(
            (&made["mode"], &made["effectiveMode"]),
            (&Value::Null, &"read-only".into())
        );
        assert_eq!(made["createdAt"], made["events"][0]["time"]);
        assert_eq!(document(world, &["show", id]), (0, made.clone()));

        let (status, switched) = document(world, &["mode", id, "workspace-write"]);
        assert_eq!(status, 0);
        assert_eq!(switched["mode"], "workspace-write");
        assert_eq!(switched["effectiveMode"], "workspace-write");
        assert_eq!(switched["events"][1]["to"], "workspace-write");
        assert_eq!(switched["events"].as_array().unwrap().len(), 2);
        assert_eq!(switched["createdAt"], made["createdAt"]);

        make(world, "other", None);
        let (status, all) = document(world, &["list"]);
        let ids: Vec<_> = all
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["id"].as_str().unwrap())
            .collect();
        assert_eq!((status, ids), (0, vec![id, "other"]));
        assert_eq!(all[0], switched);

        let shown = session(world, ["show", id]).stdout();
        assert!(
            shown.contains(id) && shown.contains("switched to workspace-write"),
            "{shown}"
        );
        let listed = session(world, ["list"]).stdout();
        assert_eq!(listed.lines().count(), 2, "{listed}");
    });
}

#[test]
fn a_session_lies_where_no_other_user_can_look() {
    use std::os::unix::fs::PermissionsExt;
    for_each_user(|world| {
        make(world, "a", Some("read-only"));
        let mode = |path: &str| fs::metadata(world.state().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("sessions"), mode("sessions/a.jsonl")), (0o700, 0o600));
        assert!(
            names(world.workspace()).is_empty(),
            "nothing is written into a workspace"
        );
    });
}

#[test]
fn a_session_belongs_to_the_directory_that_was_named() {
    for_each_user(|world| {
        world.prepare("mkdir $OUT/real; ln -s real $OUT/link");
        let link = world.outside("link");
        let (status, made) = document(world, &["new", "-C", link.to_str().unwrap()]);
        assert_eq!(status, 0);
        assert_eq!(made["cwd"], world.outside("real").to_str().unwrap());
        let (status, refused) = document(world, &["new", "-C", "none"]);
        assert_eq!((status, &refused["error"]["code"]), (2, &"POLICY_INVALID".into()));
    });
}

#[test]
fn what_makes_no_sense_is_refused_with_a_code_and_a_way_out() {
    for_each_user(|world| {
        make(world, "a", None);
        let before = log(world, "a");
        for (words, code) in [
            (&["new", "--id", "a"][..], "INPUT_INVALID"),
            (&["new", "--id", ""], "INPUT_INVALID"),
            (&["new", "--id", "../a"], "INPUT_INVALID"),
            (&["new", "--id", ".a"], "INPUT_INVALID"),
            (&["show", "b"], "INPUT_INVALID"),
            (&["show", "../../etc/passwd"], "INPUT_INVALID"),
            (&["mode", "b", "read-only"], "INPUT_INVALID"),
        ] {
            let (status, refused) = document(world, words);
            assert_eq!(status, 2, "{words:?}");
            assert_eq!(refused["error"]["code"], code, "{words:?}");
            assert!(!refused["error"]["hint"].as_str().unwrap().is_empty(), "{words:?}");
        }
        let usage = session(world, ["mode", "a", "workspace_write"]);
        assert_eq!(usage.status(), 2);
        assert!(usage.stderr().contains("workspace-write"), "{usage}");
        assert_eq!(log(world, "a"), before);
        assert_eq!(names(world.state().join("sessions")), [".lock", "a.jsonl"]);
    });
}

#[test]
fn without_a_session_there_is_nothing_to_list() {
    for_each_user(|world| {
        assert_eq!(document(world, &["list"]), (0, serde_json::json!([])));
        assert_eq!(session(world, ["list"]).stdout(), "");
    });
}
