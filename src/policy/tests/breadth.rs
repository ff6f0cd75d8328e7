//! Roots that are too broad to be written.

use std::fs;
use std::path::{Path, PathBuf};

use ringfence_backend::{PinnedPath, SandboxMode, Temp};

use super::{World, mode, writable};
use crate::policy::{ApprovedChange, Breadth, Deployment, Field, PolicyError, Surroundings, open_root, resolve};

use SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};

/// What is said of `root` as workspace, as added root and as approved root of `workspace-write`.
fn breadths(world: &World, root: &Path, surroundings: &Surroundings) -> [Option<Breadth>; 3] {
    let pinned = PinnedPath::open(root).unwrap();
    let workspace = Deployment {
        root: Some(open_root(root).unwrap()),
        ..mode(WorkspaceWrite)
    };
    let added = Deployment {
        writable: vec![pinned.clone()],
        ..mode(WorkspaceWrite)
    };
    let plain = Deployment {
        root: Some(world.root("work")),
        ..mode(WorkspaceWrite)
    };
    let grant = ApprovedChange::Write(pinned);
    let fields = [Field::WorkspaceRoot, Field::WritableRoot, Field::ApprovedRoot];
    [
        (&workspace, None, fields[0]),
        (&added, None, fields[1]),
        (&plain, Some(&grant), fields[2]),
    ]
    .map(
        |(deployment, grant, expected)| match resolve(deployment, None, grant, surroundings) {
            Ok(_) => None,
            Err(PolicyError::TooBroad { field, path, breadth }) => {
                assert_eq!((field, path.as_path()), (expected, root));
                Some(breadth)
            }
            Err(other) => panic!("{other}"),
        },
    )
}

#[test]
fn the_whole_file_system_the_home_and_what_holds_it_or_the_records_are_too_broad() {
    let world = World::new();
    let mut surroundings = world.surroundings();
    surroundings.home = Some(world.path("home/project").join("user"));
    surroundings.state_dir = Some(world.path("cache/deep").join("state/ringfence"));
    fs::create_dir_all(world.path("home/project").join("user/code")).unwrap();
    for (root, expected) in [
        (PathBuf::from("/"), Some(Breadth::WholeFileSystem)),
        (world.path("home/project/user"), Some(Breadth::Home)),
        (world.path("home/project"), Some(Breadth::AboveHome)),
        (world.path("home"), Some(Breadth::AboveHome)),
        (world.path("cache/deep"), Some(Breadth::HoldsState)),
        (world.path("cache"), Some(Breadth::HoldsState)),
        (world.path("home/project/user/code"), None),
        (world.path("other"), None),
    ] {
        assert_eq!(
            breadths(&world, &root, &surroundings),
            [expected; 3],
            "{}",
            root.display()
        );
        let insisting = Surroundings {
            allow_broad_root: true,
            ..surroundings.clone()
        };
        assert_eq!(breadths(&world, &root, &insisting), [None; 3], "{}", root.display());
    }
}

#[test]
fn the_state_directory_itself_is_too_broad_and_a_name_that_only_begins_alike_is_not() {
    let world = World::new();
    let surroundings = Surroundings {
        state_dir: Some(world.path("cache/deep")),
        ..world.surroundings()
    };
    assert_eq!(
        breadths(&world, &world.path("cache/deep"), &surroundings),
        [Some(Breadth::HoldsState); 3]
    );
    let surroundings = Surroundings {
        home: Some(world.path("").join("otherwise")),
        ..world.surroundings()
    };
    assert_eq!(breadths(&world, &world.path("other"), &surroundings), [None; 3]);
}

#[test]
fn breadth_matters_only_where_roots_are_written() {
    let world = World::new();
    for each in [ReadOnly, DangerFullAccess] {
        let deployment = Deployment {
            root: Some(open_root(Path::new("/")).unwrap()),
            ..mode(each)
        };
        assert_eq!(world.of(&deployment).unwrap().workspace_root().path(), Path::new("/"));
    }
    let read_only = Deployment {
        root: Some(world.root("home")),
        ..mode(ReadOnly)
    };
    let grant = ApprovedChange::Mode(WorkspaceWrite);
    let error = resolve(&read_only, None, Some(&grant), &world.surroundings()).unwrap_err();
    assert!(
        matches!(
            error,
            PolicyError::TooBroad {
                breadth: Breadth::Home,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn the_temp_area_may_hold_the_home_but_may_not_be_it() {
    let world = World::new();
    let with = |temp: PinnedPath, home: PathBuf| {
        let surroundings = Surroundings {
            host_temp: vec![temp],
            state_dir: Some(home.join("state")),
            home: Some(home),
            ..world.surroundings()
        };
        resolve(&mode(WorkspaceWrite), None, None, &surroundings)
    };
    let policy = with(world.pin("temp"), world.path("temp").join("h")).unwrap();
    assert_eq!(writable(&policy), [world.path("temp"), world.path("work")]);

    for (temp, home, expected) in [
        (world.pin("temp"), world.path("temp"), Breadth::Home),
        (
            PinnedPath::open(Path::new("/")).unwrap(),
            world.path("home"),
            Breadth::WholeFileSystem,
        ),
    ] {
        let error = with(temp, home).unwrap_err();
        let expected = matches!(error, PolicyError::TooBroad { field: Field::TempDirectory, breadth, .. }
            if breadth == expected);
        assert!(expected, "{error}");
    }
}

#[test]
fn a_temp_directory_that_has_to_do_with_the_records_is_refused_and_one_of_everybodys_is_not() {
    let world = World::new();
    let with = |temp: PinnedPath, state: PathBuf| {
        let surroundings = Surroundings {
            host_temp: vec![temp],
            state_dir: Some(state),
            ..world.surroundings()
        };
        resolve(&mode(WorkspaceWrite), None, None, &surroundings)
    };
    let place = crate::state::tests::place();
    let state = place.path().join("state");
    fs::create_dir_all(state.join("approvals")).unwrap();
    for temp in [place.path(), state.as_path(), &state.join("approvals")] {
        let error = with(PinnedPath::open(temp).unwrap(), state.clone()).unwrap_err();
        let expected = matches!(
            error,
            PolicyError::TooBroad {
                field: Field::TempDirectory,
                breadth: Breadth::HoldsState,
                ..
            }
        );
        assert!(expected, "{error}");
        assert!(!error.hint().contains("--workspace"), "{}", error.hint());
    }
    // A state directory in the temp area of everybody is not used.
    assert!(with(world.pin("temp"), PathBuf::from("/tmp/records")).is_ok());
}

#[test]
fn a_temp_area_that_is_too_broad_matters_only_when_it_is_used() {
    let world = World::new();
    let surroundings = Surroundings {
        host_temp: vec![world.pin("home")],
        ..world.surroundings()
    };
    let private = Deployment {
        temp: Some(Temp::Private),
        ..mode(WorkspaceWrite)
    };
    let policy = resolve(&private, None, None, &surroundings).unwrap();
    assert_eq!(writable(&policy), [world.path("work")]);
    assert!(resolve(&mode(WorkspaceWrite), None, None, &surroundings).is_err());
}
