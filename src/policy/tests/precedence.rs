//! Which layer decides, and what a grant changes.

use ringfence_backend::{Require, SandboxMode, Temp};

use super::{World, mode, writable};
use crate::policy::{ApprovedChange, Deployment, Field, PolicyError, resolve};
use crate::profile::Profile;

use SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};

#[test]
fn nothing_configured_is_read_only_in_the_callers_directory_with_a_temp_directory_of_its_own() {
    let world = World::new();
    let policy = world.of(&Deployment::default()).unwrap();
    assert_eq!(policy.mode(), ReadOnly);
    assert_eq!(policy.workspace_root().path(), world.path("work"));
    assert_eq!(policy.temp(), Temp::Private);
    assert_eq!(policy.require(), Require::Partial);
    assert_eq!(policy.session(), None);
    assert!(policy.writable().is_empty());
}

#[test]
fn a_grant_stands_above_the_session_and_the_session_above_the_deployment() {
    let world = World::new();
    let surroundings = world.surroundings();
    let session = world.session("s", Some(WorkspaceWrite), "work");
    let silent = world.session("s", None, "work");
    let grant = ApprovedChange::Mode(DangerFullAccess);
    let of = |session, grant| resolve(&mode(ReadOnly), session, grant, &surroundings).unwrap().mode();
    assert_eq!(of(None, None), ReadOnly);
    assert_eq!(of(Some(&silent), None), ReadOnly);
    assert_eq!(of(Some(&session), None), WorkspaceWrite);
    assert_eq!(of(Some(&session), Some(&grant)), DangerFullAccess);
}

#[test]
fn the_sessions_root_stands_above_the_deployments_and_that_above_the_callers_directory() {
    let world = World::new();
    let surroundings = world.surroundings();
    let session = world.session("s", None, "work/sub");
    let rooted = Deployment {
        root: Some(world.root("other")),
        ..mode(WorkspaceWrite)
    };
    let of = |deployment: &Deployment, session| resolve(deployment, session, None, &surroundings).unwrap();
    let unrooted = mode(WorkspaceWrite);
    assert_eq!(of(&unrooted, None).workspace_root().path(), world.path("work"));
    assert_eq!(of(&rooted, None).workspace_root().path(), world.path("other"));
    let policy = of(&rooted, Some(&session));
    assert_eq!(policy.workspace_root().path(), world.path("work/sub"));
    assert_eq!(writable(&policy), [world.path("temp"), world.path("work/sub")]);
}

#[test]
fn every_mode_carries_the_root_and_the_session() {
    let world = World::new();
    let session = world.session("s", None, "other");
    for each in SandboxMode::ALL {
        let policy = resolve(&mode(each), Some(&session), None, &world.surroundings()).unwrap();
        assert_eq!(policy.workspace_root().path(), world.path("other"));
        assert_eq!(policy.session(), Some("s"));
    }
}

#[test]
fn an_approved_root_is_refused_where_the_mode_has_none() {
    let world = World::new();
    let grant = ApprovedChange::Write(world.pin("cache"));
    for each in [ReadOnly, DangerFullAccess] {
        let error = resolve(&mode(each), None, Some(&grant), &world.surroundings()).unwrap_err();
        let expected = matches!(&error, PolicyError::NoWritableRoots { field: Field::ApprovedRoot, path, mode }
            if *path == world.path("cache") && *mode == each);
        assert!(expected, "{error}");
    }
}

#[test]
fn an_approved_root_is_added_and_nothing_else_changes() {
    let world = World::new();
    let before = world.of(&mode(WorkspaceWrite)).unwrap();
    let grant = ApprovedChange::Write(world.pin("cache/file"));
    let after = resolve(&mode(WorkspaceWrite), None, Some(&grant), &world.surroundings()).unwrap();
    assert_eq!(writable(&before), [world.path("temp"), world.path("work")]);
    assert_eq!(
        writable(&after),
        [world.path("cache/file"), world.path("temp"), world.path("work")]
    );
    assert_eq!(
        (after.mode(), after.temp(), after.require()),
        (before.mode(), before.temp(), before.require())
    );
}

#[test]
fn an_approved_mode_keeps_the_sessions_root_and_the_chosen_temp_area() {
    let world = World::new();
    let deployment = Deployment {
        temp: Some(Temp::Private),
        require: Require::Full,
        ..mode(ReadOnly)
    };
    let session = world.session("s", None, "other");
    let grant = ApprovedChange::Mode(WorkspaceWrite);
    let policy = resolve(&deployment, Some(&session), Some(&grant), &world.surroundings()).unwrap();
    assert_eq!(writable(&policy), [world.path("other")]);
    assert_eq!(
        (policy.temp(), policy.require(), policy.session()),
        (Temp::Private, Require::Full, Some("s"))
    );
}

#[test]
fn approved_full_access_is_not_held_up_by_what_was_chosen_for_the_narrower_mode() {
    let world = World::new();
    let deployment = Deployment {
        writable: vec![world.pin("cache")],
        temp: Some(Temp::Private),
        ..mode(WorkspaceWrite)
    };
    let grant = ApprovedChange::Mode(DangerFullAccess);
    let policy = resolve(&deployment, None, Some(&grant), &world.surroundings()).unwrap();
    assert_eq!((policy.mode(), policy.temp()), (DangerFullAccess, Temp::Host));
    assert!(policy.writable().is_empty());
}

#[test]
fn a_grant_does_not_mend_a_policy_that_is_refused_without_it() {
    let world = World::new();
    let deployment = Deployment {
        writable: vec![world.pin("cache")],
        ..mode(ReadOnly)
    };
    for granted in [WorkspaceWrite, DangerFullAccess] {
        let grant = ApprovedChange::Mode(granted);
        assert!(resolve(&deployment, None, Some(&grant), &world.surroundings()).is_err());
    }
}

#[test]
fn a_profile_named_after_a_mode_resolves_as_the_mode_itself() {
    let world = World::new();
    for each in SandboxMode::ALL {
        let profile = Profile::built_in(each.name()).unwrap();
        let named = Deployment {
            temp: profile.temp,
            ..mode(profile.mode)
        };
        let named = Deployment {
            require: profile.require.unwrap_or_default(),
            ..named
        };
        assert_eq!(world.of(&named).unwrap(), world.of(&mode(each)).unwrap());
    }
}

#[test]
fn no_layer_gets_beyond_the_ceiling_a_grant_included() {
    let world = World::new();
    let surroundings = world.surroundings();
    let below = |default| Deployment {
        ceiling: WorkspaceWrite,
        ..mode(default)
    };
    let session = world.session("s", Some(DangerFullAccess), "work");
    let (write, full) = (
        ApprovedChange::Mode(WorkspaceWrite),
        ApprovedChange::Mode(DangerFullAccess),
    );
    let of = |default, session, grant| resolve(&below(default), session, grant, &surroundings).map(|it| it.mode());
    assert_eq!(of(ReadOnly, None, Some(&write)).unwrap(), WorkspaceWrite);
    for refused in [
        of(ReadOnly, None, Some(&full)),
        of(ReadOnly, Some(&session), None),
        of(DangerFullAccess, None, None),
    ] {
        let error = refused.unwrap_err();
        assert!(
            matches!(
                error,
                PolicyError::AboveCeiling {
                    mode: DangerFullAccess,
                    ceiling: WorkspaceWrite
                }
            ),
            "{error}"
        );
        assert!(error.hint().contains("workspace-write"), "{}", error.hint());
    }
}
