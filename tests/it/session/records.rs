//! What happens to a session is recorded, or where that is required does not happen.

use serde_json::Value;

use super::{document, log, make, session};
use crate::config::of_the_user;
use crate::support::{World, for_each_user};

/// A trail that cannot be written: a file has its name.
fn block_the_trail(world: &World) {
    world.prepare(&format!("rm -rf {0}/audit; touch {0}/audit", world.state().display()));
}

#[test]
fn the_making_of_a_session_and_each_switch_are_in_the_trail() {
    for_each_user(|world| {
        make(world, "a", Some("read-only"));
        session(world, ["mode", "a", "workspace-write"]);
        session(world, ["mode", "b", "workspace-write"]);
        let trail = world.prepare(&format!("cat {}/audit/*.jsonl", world.state().display()));
        let records: Vec<Value> = trail.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [made, switched] = &records[..] else {
            panic!("two records: {trail}")
        };
        assert_eq!(
            (&made["type"], &made["session"]),
            (&"session.created".into(), &"a".into())
        );
        assert_eq!(made["cwd"], world.workspace().to_str().unwrap());
        assert_eq!(made["mode"], "read-only");
        assert_eq!(
            (&switched["type"], &switched["session"]),
            (&"mode.changed".into(), &"a".into())
        );
        assert_eq!(
            (&switched["from"], &switched["to"]),
            (&"read-only".into(), &"workspace-write".into())
        );
    });
}

#[test]
fn a_switch_that_cannot_be_recorded_is_not_made_where_recording_is_required() {
    for_each_user(|world| {
        make(world, "a", None);
        let before = log(world, "a");
        of_the_user(world, "audit = \"required\"\n");
        block_the_trail(world);
        let (status, refused) = document(world, &["mode", "a", "workspace-write"]);
        assert_eq!((status, &refused["error"]["code"]), (5, &"AUDIT_UNWRITABLE".into()));
        let (status, refused) = document(world, &["new", "--id", "b"]);
        assert_eq!((status, &refused["error"]["code"]), (5, &"AUDIT_UNWRITABLE".into()));
        assert_eq!(log(world, "a"), before);
        assert!(!world.state().join("sessions/b.jsonl").exists());
    });
}

#[test]
fn elsewhere_it_is_made_and_said_not_to_be_recorded() {
    for_each_user(|world| {
        make(world, "a", None);
        block_the_trail(world);
        let outcome = session(world, ["mode", "a", "workspace-write"]);
        assert_eq!(outcome.status(), 0);
        assert!(outcome.stderr().contains("not recorded"), "{outcome}");
        of_the_user(world, "audit = \"off\"\n");
        let outcome = session(world, ["mode", "a", "read-only"]);
        assert_eq!((outcome.status(), outcome.stderr()), (0, String::new()));
        assert_eq!(log(world, "a").lines().count(), 3);
    });
}
