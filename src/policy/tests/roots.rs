//! What each mode may write, and which temp area it has.

use std::path::Path;

use ringfence_backend::{SandboxMode, Temp};

use super::{World, mode, writable};
use crate::policy::{Deployment, PolicyError, open_writable, resolve};

use SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};

#[test]
fn workspace_write_may_write_its_root_the_added_roots_and_the_hosts_temp_area() {
    let world = World::new();
    let deployment = Deployment {
        writable: vec![world.pin("cache")],
        ..mode(WorkspaceWrite)
    };
    let policy = world.of(&deployment).unwrap();
    assert_eq!(policy.temp(), Temp::Host);
    assert_eq!(
        writable(&policy),
        [world.path("cache"), world.path("temp"), world.path("work")]
    );
}

#[test]
fn a_single_file_may_be_a_writable_root() {
    let world = World::new();
    let file = open_writable(&world.path("work"), Path::new("../cache/file")).unwrap();
    let policy = world
        .of(&Deployment {
            writable: vec![file],
            ..mode(WorkspaceWrite)
        })
        .unwrap();
    assert_eq!(
        writable(&policy),
        [world.path("cache/file"), world.path("temp"), world.path("work")]
    );
}

#[test]
fn a_root_given_twice_or_beneath_another_counts_once() {
    let world = World::new();
    let roots = ["cache", "cache/deep", "cache", "work/sub"].map(|name| world.pin(name));
    let policy = world
        .of(&Deployment {
            writable: roots.into(),
            ..mode(WorkspaceWrite)
        })
        .unwrap();
    assert_eq!(
        writable(&policy),
        [world.path("cache"), world.path("temp"), world.path("work")]
    );
}

#[test]
fn a_chosen_temp_area_stands_above_the_one_of_the_mode() {
    let world = World::new();
    for (each, temp) in [
        (ReadOnly, Temp::None),
        (ReadOnly, Temp::Private),
        (WorkspaceWrite, Temp::None),
        (WorkspaceWrite, Temp::Private),
        (WorkspaceWrite, Temp::Host),
        (DangerFullAccess, Temp::Host),
    ] {
        let policy = world
            .of(&Deployment {
                temp: Some(temp),
                ..mode(each)
            })
            .unwrap();
        assert_eq!(policy.temp(), temp);
        let open = policy.writable().contains(&world.pin("temp"));
        assert_eq!(
            open,
            each == WorkspaceWrite && temp == Temp::Host,
            "{each} with {temp:?}"
        );
    }
}

#[test]
fn full_access_has_the_hosts_temp_area_and_no_roots() {
    let world = World::new();
    let policy = world.of(&mode(DangerFullAccess)).unwrap();
    assert_eq!(policy.temp(), Temp::Host);
    assert!(policy.writable().is_empty());
}

#[test]
fn a_temp_area_that_the_mode_cannot_have_is_refused_by_name() {
    let world = World::new();
    for (each, temp, word) in [
        (ReadOnly, Temp::Host, "`host`"),
        (DangerFullAccess, Temp::Private, "`private`"),
        (DangerFullAccess, Temp::None, "`none`"),
    ] {
        let error = world
            .of(&Deployment {
                temp: Some(temp),
                ..mode(each)
            })
            .unwrap_err();
        assert!(matches!(error, PolicyError::TempInMode { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains(word) && message.contains(each.name()), "{message}");
    }
}

#[test]
fn a_root_beside_a_mode_without_roots_is_refused_and_the_first_is_named() {
    let world = World::new();
    let roots = vec![world.pin("cache/deep"), world.pin("other")];
    for each in [ReadOnly, DangerFullAccess] {
        let error = world
            .of(&Deployment {
                writable: roots.clone(),
                ..mode(each)
            })
            .unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("cache/deep") && message.contains("has no writable roots"),
            "{message}"
        );
    }
}

#[test]
fn a_session_switched_to_read_only_is_not_given_roots_either() {
    let world = World::new();
    let deployment = Deployment {
        writable: vec![world.pin("cache")],
        ..mode(WorkspaceWrite)
    };
    let session = world.session("s", Some(ReadOnly), "work");
    let error = resolve(&deployment, Some(&session), None, &world.surroundings()).unwrap_err();
    assert!(
        matches!(error, PolicyError::NoWritableRoots { mode: ReadOnly, .. }),
        "{error}"
    );
}
