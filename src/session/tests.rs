mod damage;

use std::fs;
use std::path::{Path, PathBuf};

use ringfence_backend::{SandboxMode, WorkspaceRoot};

use super::{Event, New, Session, SessionError, Store};
use crate::error::{Error, ErrorCode};
use crate::policy::{Deployment, Surroundings, resolve};
use crate::state::tests::place;

/// A state directory, a directory to work in, and the sessions of the one.
struct Fixture {
    _place: tempfile::TempDir,
    state: PathBuf,
    work: PathBuf,
    store: Store,
}

impl Fixture {
    fn new() -> Self {
        let place = place();
        let (state, work) = (place.path().join("state"), place.path().join("w"));
        fs::create_dir(&work).unwrap();
        Self {
            store: Store::open(&state).unwrap(),
            state,
            work,
            _place: place,
        }
    }

    fn create(&self, id: &str, mode: Option<SandboxMode>) -> Result<Session, Error> {
        let cwd = WorkspaceRoot::open(&self.work).unwrap();
        let id = Some(id);
        self.store.create(New { cwd: &cwd, mode, id }, |_| Ok(()))
    }

    fn switch(&self, id: &str, to: SandboxMode) -> Result<Session, Error> {
        self.store.switch(id, to, |_| Ok(()))
    }

    fn log(&self, id: &str) -> PathBuf {
        self.state.join(format!("sessions/{id}.jsonl"))
    }

    fn append(&self, id: &str, text: &str) {
        let log = fs::read_to_string(self.log(id)).unwrap();
        fs::write(self.log(id), log + text).unwrap();
    }
}

fn session_error(error: Error) -> SessionError {
    match error {
        Error::Session(error) => error,
        other => panic!("an error of a session was expected, not {other:?}"),
    }
}

#[test]
fn a_session_is_what_its_last_event_says() {
    let fixture = Fixture::new();
    let made = fixture.create("a", None).unwrap();
    assert_eq!((made.mode(), made.cwd()), (None, fixture.work.as_path()));
    for mode in [
        SandboxMode::WorkspaceWrite,
        SandboxMode::DangerFullAccess,
        SandboxMode::ReadOnly,
    ] {
        assert_eq!(fixture.switch("a", mode).unwrap().mode(), Some(mode));
        let again = Store::open(&fixture.state).unwrap().load("a").unwrap();
        assert_eq!(again.mode(), Some(mode), "it survives whoever made it");
    }
    let events = fixture.store.load("a").unwrap().events().len();
    assert_eq!(events, 4, "each switch is one event");
}

#[test]
fn switching_one_session_changes_no_other() {
    let fixture = Fixture::new();
    fixture.create("a", Some(SandboxMode::ReadOnly)).unwrap();
    let other = fixture.create("b", None).unwrap();
    fixture.switch("a", SandboxMode::WorkspaceWrite).unwrap();
    assert_eq!(fixture.store.load("b").unwrap(), other);
    let listed = fixture.store.list().unwrap();
    let mode = |at: usize| listed[at].session.as_ref().unwrap().mode();
    assert_eq!([&listed[0].id, &listed[1].id], ["a", "b"]);
    assert_eq!([mode(0), mode(1)], [Some(SandboxMode::WorkspaceWrite), None]);
}

#[test]
fn a_session_keeps_the_order_of_grant_session_and_deployment() {
    let fixture = Fixture::new();
    let deployment = Deployment {
        mode: SandboxMode::WorkspaceWrite,
        ..Deployment::default()
    };
    let here = Surroundings::of(WorkspaceRoot::open(Path::new("/usr")).unwrap());
    fixture.create("a", None).unwrap();
    let mode = |id: &str| {
        let session = fixture.store.load(id).unwrap().policy().unwrap();
        let policy = resolve(&deployment, Some(&session), None, &here).unwrap();
        assert_eq!(policy.workspace_root().path(), fixture.work);
        assert_eq!(policy.session(), Some(id));
        policy.mode()
    };
    assert_eq!(
        mode("a"),
        SandboxMode::WorkspaceWrite,
        "the deployment's, as it has none"
    );
    fixture.switch("a", SandboxMode::ReadOnly).unwrap();
    assert_eq!(mode("a"), SandboxMode::ReadOnly);
}

#[test]
fn ids_that_no_session_can_have_are_refused_with_the_reason() {
    let fixture = Fixture::new();
    let long = "x".repeat(65);
    for id in [
        "", ".", "..", ".a", "-a", "a/b", "../a", "a b", "ä", "a\n", "a\0", &long,
    ] {
        let error = fixture.create(id, None).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InputInvalid);
        assert!(matches!(session_error(error), SessionError::Name { .. }), "{id:?}");
        assert!(
            matches!(fixture.store.load(id), Err(SessionError::Name { .. })),
            "{id:?}"
        );
    }
    fixture.create(&"x".repeat(64), None).unwrap();
    let taken = fixture
        .create(&"x".repeat(64), Some(SandboxMode::DangerFullAccess))
        .unwrap_err();
    assert!(matches!(session_error(taken), SessionError::Taken { .. }));
    assert_eq!(
        fixture.store.load(&"x".repeat(64)).unwrap().mode(),
        None,
        "it is as it was"
    );
}

#[test]
fn a_session_that_is_not_there_is_unknown() {
    let fixture = Fixture::new();
    assert!(fixture.store.list().unwrap().is_empty());
    let unknown = |id: &str| matches!(fixture.store.load(id), Err(SessionError::Unknown { .. }));
    assert!(unknown("a"));
    fixture.create("b", None).unwrap();
    assert!(unknown("a"));
    let error = session_error(fixture.switch("a", SandboxMode::ReadOnly).unwrap_err());
    assert!(matches!(error, SessionError::Unknown { .. }));
    assert!(!fixture.log("a").exists(), "nothing was made by asking");
}

#[test]
fn another_directory_in_the_place_of_the_sessions_is_told_apart() {
    let fixture = Fixture::new();
    let session = fixture.create("a", None).unwrap();
    session.root().unwrap();
    let (work, aside) = (&fixture.work, fixture.work.with_extension("aside"));

    fs::remove_dir(work).unwrap();
    assert!(matches!(session.root(), Err(SessionError::Gone { .. })));
    fs::create_dir(work).unwrap();
    assert!(
        matches!(session.root(), Err(SessionError::Replaced { .. })),
        "made again"
    );
    let switched = fixture.switch("a", SandboxMode::WorkspaceWrite).unwrap_err();
    assert_eq!(switched.code(), ErrorCode::WorkdirUnusable);
    assert_eq!(fixture.store.load("a").unwrap().events().len(), 1);

    let moved = fixture.create("b", None).unwrap();
    fs::rename(work, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, work).unwrap();
    assert!(
        matches!(moved.root(), Err(SessionError::Replaced { .. })),
        "a link to the very same"
    );
    fs::remove_file(work).unwrap();
    fs::write(work, "").unwrap();
    assert!(matches!(moved.root(), Err(SessionError::Gone { .. })), "a file");
    fs::remove_file(work).unwrap();
    fs::rename(&aside, work).unwrap();
    moved.policy().expect("the directory came back");
}

#[test]
fn what_cannot_be_recorded_is_not_done() {
    let fixture = Fixture::new();
    let refused = || Err(Error::Aborted);
    fixture.create("a", None).unwrap();
    let cwd = WorkspaceRoot::open(&fixture.work).unwrap();
    let new = New {
        cwd: &cwd,
        mode: None,
        id: Some("b"),
    };
    assert!(matches!(fixture.store.create(new, |_| refused()), Err(Error::Aborted)));
    assert!(!fixture.log("b").exists());
    let switched = fixture.store.switch("a", SandboxMode::WorkspaceWrite, |_| refused());
    assert!(matches!(switched, Err(Error::Aborted)));
    assert_eq!(fixture.store.load("a").unwrap().mode(), None);
}

#[test]
fn a_policy_that_could_write_the_sessions_is_not_theirs() {
    let fixture = Fixture::new();
    let above = WorkspaceRoot::open(fixture.state.parent().unwrap()).unwrap();
    let beside = WorkspaceRoot::open(&fixture.work).unwrap();
    let policy = |root: &WorkspaceRoot, mode| {
        let deployment = Deployment {
            mode,
            ..Deployment::default()
        };
        resolve(&deployment, None, None, &Surroundings::of(root.clone())).unwrap()
    };
    let check = |root, mode| fixture.store.is_out_of_reach_of(&policy(root, mode));
    check(&beside, SandboxMode::WorkspaceWrite).unwrap();
    check(&above, SandboxMode::ReadOnly).unwrap();
    assert!(check(&above, SandboxMode::WorkspaceWrite).is_err());
    let inside = WorkspaceRoot::open(&fixture.state).unwrap();
    assert!(check(&inside, SandboxMode::WorkspaceWrite).is_err());
}

#[test]
fn events_are_told_as_they_are_kept() {
    let fixture = Fixture::new();
    fixture.create("a", Some(SandboxMode::ReadOnly)).unwrap();
    let session = fixture.switch("a", SandboxMode::WorkspaceWrite).unwrap();
    let told: Vec<_> = session
        .events()
        .iter()
        .map(|event| serde_json::to_string(event).unwrap())
        .collect();
    let kept = fs::read_to_string(fixture.log("a")).unwrap();
    assert_eq!(kept, told.join("\n") + "\n");
    assert!(matches!(session.events(), [Event::Created { .. }, Event::Mode { .. }]));
    assert!(
        told[1].starts_with("{\"type\":\"mode\",\"to\":\"workspace-write\",\"time\":\""),
        "{}",
        told[1]
    );
}

#[test]
fn a_directory_whose_name_is_no_text_is_kept_to_the_byte() {
    use std::os::unix::ffi::OsStrExt;
    let fixture = Fixture::new();
    let odd = fixture.work.join(std::ffi::OsStr::from_bytes(b"a\xff"));
    fs::create_dir(&odd).unwrap();
    let cwd = WorkspaceRoot::open(&odd).unwrap();
    let new = New {
        cwd: &cwd,
        mode: None,
        id: None,
    };
    let made = fixture.store.create(new, |_| Ok(())).unwrap();
    assert_eq!(made.id().len(), 36);
    let loaded = fixture.store.load(made.id()).unwrap();
    assert_eq!(loaded.cwd(), odd);
    loaded.root().unwrap();
}
