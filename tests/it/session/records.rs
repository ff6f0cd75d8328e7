//! What happens to a session is recorded, or where that is required does not happen.

use std::fs;

use super::{document, log, make, session};
use crate::support::{World, for_each_user};

/// A trail that cannot be written: a file has its name.
fn block_the_trail(world: &World) {
    world.prepare(&format!("rm -rf {0}/audit; touch {0}/audit", world.state().display()));
}

fn deploy(world: &World, text: &str) {
    let file = world.home().join(".config/ringfence/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, format!("schema = 1\n{text}")).unwrap();
}

#[test]
fn a_switch_that_cannot_be_recorded_is_not_made_where_recording_is_required() {
    for_each_user(|world| {
        make(world, "a", None);
        let before = log(world, "a");
        deploy(world, "audit = \"required\"\n");
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
        deploy(world, "audit = \"off\"\n");
        let outcome = session(world, ["mode", "a", "read-only"]);
        assert_eq!((outcome.status(), outcome.stderr()), (0, String::new()));
        assert_eq!(log(world, "a").lines().count(), 3);
    });
}
