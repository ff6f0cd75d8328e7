use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ringfence_backend::{
    Coverage, Enforcement, Observe, PolicyParts, Protected, Require, SandboxMode, Temp, WorkspaceRoot,
};

use super::*;

/// What a host is said to govern on which every trial went well.
fn proved() -> HostSupport {
    HostSupport {
        coverage: Coverage::PROMISED
            .into_iter()
            .fold(Coverage::none(), |sum, effect| sum.with(effect, true)),
        ..HostSupport::default()
    }
}

fn policy(mode: SandboxMode, root: &Path, protected: Vec<Protected>, closed: &[Door]) -> SandboxExecutionPolicy {
    let root = WorkspaceRoot::open(root).unwrap();
    SandboxExecutionPolicy::seal(PolicyParts {
        mode,
        writable: if mode == SandboxMode::WorkspaceWrite {
            vec![root.pinned().clone()]
        } else {
            Vec::new()
        },
        workspace_root: root,
        protected,
        temp: Temp::None,
        closed: closed.iter().copied().collect(),
        require: Require::Partial,
        session: None,
    })
    .unwrap()
}

fn command(stdio: StdioKind) -> CommandSpec {
    CommandSpec {
        argv: vec!["true".into()],
        env: Vec::new(),
        workdir: PinnedPath::open(Path::new("/")).unwrap(),
        scratch: None,
        stdio: [StdioKind::Stream, stdio, StdioKind::Stream],
        observe: Observe::No,
        log: false,
        accelerator: None,
    }
}

fn protected(path: &Path, root: &Path) -> Protected {
    let above: Vec<_> = path
        .ancestors()
        .skip(1)
        .take_while(|above| above.starts_with(root))
        .collect();
    Protected {
        path: path.to_owned(),
        target: PinnedPath::open(path).ok(),
        above: above
            .into_iter()
            .rev()
            .filter_map(|above| PinnedPath::open(above).ok())
            .collect(),
        linked: false,
    }
}

fn profile_of(plan: &LaunchPlan) -> &str {
    match plan.steps.last() {
        Some(PlanStep::SeatbeltProfile(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_policy_becomes_rules_for_its_roots_its_scratch_and_what_it_protects() {
    let world = tempfile::tempdir().unwrap();
    let top = PinnedPath::open(world.path()).unwrap().path().to_owned();
    for name in ["w/.git/hooks", "scratch"] {
        fs::create_dir_all(top.join(name)).unwrap();
    }
    let root = top.join("w");
    let hooks = protected(&root.join(".git/hooks"), &root);
    let policy = policy(SandboxMode::WorkspaceWrite, &root, vec![hooks], &[]);
    let mut command = command(StdioKind::Stream);
    command.scratch = Some(PinnedPath::open(&top.join("scratch")).unwrap());
    let plan = plan(&proved(), &policy, &command).unwrap();
    let profile = profile_of(&plan);
    let shown = root.display();
    for rule in [
        format!("(allow file-write* file-link (subpath \"{shown}\"))"),
        format!(
            "(allow file-write* file-link (subpath \"{}\"))",
            top.join("scratch").display()
        ),
        format!("(deny file-write* file-link (literal \"{shown}/.git/hooks\") (subpath \"{shown}/.git/hooks\"))"),
        format!("(deny file-write-unlink file-write-create (literal \"{shown}/.git\"))"),
        format!("(deny file-write-unlink file-write-create (literal \"{shown}\"))"),
    ] {
        assert!(profile.lines().any(|line| line == rule), "no {rule} in\n{profile}");
    }
    assert_eq!(plan.protected().collect::<Vec<_>>(), [root.join(".git/hooks")]);
    assert_eq!(plan.enforcement, Some(Enforcement::Full));
}

#[test]
fn read_only_opens_nothing_but_the_scratch() {
    let plan = plan(
        &proved(),
        &policy(SandboxMode::ReadOnly, Path::new("/"), Vec::new(), &[]),
        &command(StdioKind::Stream),
    );
    let plan = plan.unwrap();
    assert!(!profile_of(&plan).contains("(subpath"), "{}", profile_of(&plan));
}

#[test]
fn only_what_a_trial_has_shown_is_said_to_be_governed() {
    let policy = policy(SandboxMode::ReadOnly, Path::new("/"), Vec::new(), &[]);
    let ungoverned = |host: &HostSupport, stdio| match plan(host, &policy, &command(stdio)).unwrap().enforcement {
        Some(Enforcement::Partial { ungoverned }) => ungoverned,
        other => panic!("{other:?}"),
    };
    let untried = ungoverned(&HostSupport::default(), StdioKind::Stream);
    assert_eq!(untried, BTreeSet::from(Coverage::PROMISED));
    let handed = ungoverned(&proved(), StdioKind::Handed);
    assert_eq!(handed, BTreeSet::from([Effect::InheritedDescriptors]));
}

#[test]
fn a_protected_path_that_does_not_exist_or_was_named_by_a_link_is_refused_and_named() {
    let world = tempfile::tempdir().unwrap();
    let root = PinnedPath::open(world.path()).unwrap().path().to_owned();
    fs::write(root.join("there"), "").unwrap();
    let missing = protected(&root.join("missing"), &root);
    let linked = Protected {
        linked: true,
        ..protected(&root.join("there"), &root)
    };
    for path in [missing, linked] {
        let name = path.path.clone();
        let policy = policy(SandboxMode::WorkspaceWrite, &root, vec![path], &[]);
        let plan = plan(&proved(), &policy, &command(StdioKind::Stream)).unwrap();
        let rule = format!("(deny file-write* file-link (literal \"{}\")", name.display());
        assert!(profile_of(&plan).contains(&rule));
        let ungoverned = BTreeSet::from([Effect::ProtectedPaths]);
        assert_eq!(plan.enforcement, Some(Enforcement::Partial { ungoverned }));
    }
}

#[test]
fn doors_that_stay_open_are_listed() {
    let open = |closed: &[Door]| {
        let policy = policy(SandboxMode::ReadOnly, Path::new("/"), Vec::new(), closed);
        plan(&proved(), &policy, &command(StdioKind::Stream))
            .unwrap()
            .not_confined
    };
    assert_eq!(open(&[]), OPEN);
    assert_eq!(
        open(&[Door::Network, Door::UnixSockets]),
        [Door::Signals, Door::ProcessVisibility, Door::MachServices]
    );
}

#[test]
fn a_mode_that_confines_nothing_is_refused() {
    let policy = policy(SandboxMode::DangerFullAccess, Path::new("/"), Vec::new(), &[]);
    let error = plan(&proved(), &policy, &command(StdioKind::Stream)).unwrap_err();
    assert!(matches!(error, PlanError::NothingToConfine { .. }), "{error:?}");
}

#[test]
fn a_run_that_insists_on_watched_calls_is_refused() {
    let policy = policy(SandboxMode::ReadOnly, Path::new("/"), Vec::new(), &[]);
    let mut command = command(StdioKind::Stream);
    command.observe = Observe::IfFree;
    assert!(plan(&proved(), &policy, &command).is_ok());
    command.observe = Observe::Required;
    let error = plan(&proved(), &policy, &command).unwrap_err();
    assert!(matches!(error, PlanError::CannotWatch { .. }), "{error:?}");
}

#[test]
fn a_path_that_no_rule_can_name_is_refused_with_its_field_its_value_and_a_way_out() {
    let world = tempfile::tempdir().unwrap();
    for name in [b"\xff".as_slice(), b"a\nb"] {
        let root = world.path().join(OsStr::from_bytes(name));
        fs::create_dir(&root).unwrap();
        let policy = policy(SandboxMode::WorkspaceWrite, &root, Vec::new(), &[]);
        let error = plan(&proved(), &policy, &command(StdioKind::Stream)).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("workspace root"), "{said}");
        assert!(said.contains("\\xFF") || said.contains("a\\nb"), "{said}");
        assert!(said.contains("rename it"), "{said}");
    }
}
