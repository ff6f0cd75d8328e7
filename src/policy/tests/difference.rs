//! Which policies are looser than which, and in what.

use std::collections::BTreeSet;

use ringfence_backend::{Door, Require};

use super::super::{ApprovedChange, Difference, NotLooser, open_protected};
use super::*;

/// What makes one deployment of another.
type Change<'a> = &'a dyn Fn(&mut Deployment);

fn between(standing: &SandboxExecutionPolicy, looser: &SandboxExecutionPolicy) -> Result<Difference, NotLooser> {
    Difference::between(standing, looser)
}

#[test]
fn a_mode_is_looser_than_the_stricter_ones_and_than_none_else() {
    let world = World::new();
    let modes = [ReadOnly, WorkspaceWrite, DangerFullAccess];
    for (from, standing) in modes.iter().enumerate() {
        for (to, looser) in modes.iter().enumerate() {
            let found = between(&world.of(&mode(*standing)).unwrap(), &world.of(&mode(*looser)).unwrap());
            match to.cmp(&from) {
                std::cmp::Ordering::Greater => assert_eq!(found.unwrap().mode, Some((*standing, *looser))),
                std::cmp::Ordering::Equal => assert_eq!(found, Err(NotLooser::Same)),
                std::cmp::Ordering::Less => assert_eq!(found, Err(NotLooser::Stricter("its mode"))),
            }
        }
    }
}

#[test]
fn everything_that_a_mode_opens_is_told() {
    let world = World::new();
    let found = between(
        &world.of(&mode(ReadOnly)).unwrap(),
        &world.of(&mode(WorkspaceWrite)).unwrap(),
    )
    .unwrap();
    assert_eq!(found.opened, [world.path("work"), world.path("temp")]);
    assert_eq!(found.temp, Some((Temp::Private, Temp::Host)));
    assert_eq!(
        found.document()["mode"],
        serde_json::json!({"from": "read-only", "to": "workspace-write"})
    );
    assert!(found.to_string().contains("+ write"), "{found}");
}

#[test]
fn one_root_more_is_that_root_and_nothing_else() {
    let world = World::new();
    let deployment = mode(WorkspaceWrite);
    let grant = ApprovedChange::Write(world.pin("cache"));
    let standing = world.of(&deployment).unwrap();
    let looser = resolve(&deployment, None, Some(&grant), &world.surroundings()).unwrap();
    let found = between(&standing, &looser).unwrap();
    assert_eq!(found.only_root(), Some(world.path("cache").as_path()));
    assert_eq!(found.document(), serde_json::json!({"addWrite": world.path("cache")}));
}

#[test]
fn a_root_that_is_open_already_changes_nothing() {
    let world = World::new();
    let deployment = mode(WorkspaceWrite);
    let grant = ApprovedChange::Write(world.pin("work/sub"));
    let looser = resolve(&deployment, None, Some(&grant), &world.surroundings()).unwrap();
    assert_eq!(between(&world.of(&deployment).unwrap(), &looser), Err(NotLooser::Same));
}

#[test]
fn what_opens_here_and_closes_there_is_no_loosening() {
    let world = World::new();
    let policy = |change: &dyn Fn(&mut Deployment)| {
        let mut deployment = mode(WorkspaceWrite);
        deployment.writable = vec![world.pin("cache")];
        change(&mut deployment);
        world.of(&deployment).unwrap()
    };
    let standing = policy(&|_| {});
    let stricter: [(&str, Change<'_>); 4] = [
        ("its writable roots", &|it| it.writable = vec![world.pin("other")]),
        ("its protected paths", &|it| {
            it.writable.push(world.pin("other"));
            it.protected = vec![open_protected(&world.path("work"), "sub".as_ref()).unwrap()];
        }),
        ("its doors", &|it| {
            it.writable.push(world.pin("other"));
            it.closed = BTreeSet::from([Door::Network]);
        }),
        ("how complete enforcement must be", &|it| {
            it.writable.push(world.pin("other"));
            it.require = Require::Full;
        }),
    ];
    for (what, change) in stricter {
        assert_eq!(between(&standing, &policy(change)), Err(NotLooser::Stricter(what)));
    }
}

#[test]
fn doors_protected_paths_and_a_requirement_that_fall_away_are_told() {
    let world = World::new();
    let mut deployment = mode(WorkspaceWrite);
    let looser = world.of(&deployment).unwrap();
    deployment.closed = BTreeSet::from([Door::Network]);
    deployment.require = Require::Full;
    deployment.protected = vec![open_protected(&world.path("work"), "sub".as_ref()).unwrap()];
    let found = between(&world.of(&deployment).unwrap(), &looser).unwrap();
    assert_eq!(found.doors, BTreeSet::from([Door::Network]));
    assert_eq!(found.unprotected, [world.path("work/sub")]);
    assert!(found.full_no_longer);
}

#[test]
fn another_workspace_or_session_is_something_else() {
    let world = World::new();
    let of = |id: &str, root: &str| {
        let session = world.session(id, Some(WorkspaceWrite), root);
        resolve(&mode(ReadOnly), Some(&session), None, &world.surroundings()).unwrap()
    };
    assert_eq!(
        between(&of("a", "work"), &of("a", "other")),
        Err(NotLooser::Other("workspace root"))
    );
    assert_eq!(
        between(&of("a", "work"), &of("b", "work")),
        Err(NotLooser::Other("session"))
    );
}
