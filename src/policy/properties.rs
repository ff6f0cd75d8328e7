//! What holds for every policy, whatever it is made from.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use ringfence_backend::{PinnedPath, Require, SandboxExecutionPolicy, SandboxMode, Temp, WorkspaceRoot};

use super::{ApprovedChange, Deployment, Difference, SessionPolicy, Surroundings, open_root, open_writable, resolve};

const DIRECTORIES: [&str; 9] = ["a", "a/b", "a/b/c", "ab", "d", "d/e", "h", "h/w", "t"];
const FILES: [&str; 3] = ["a/b/f", "d/f", "f"];

/// One small tree for all cases, gone again once its parts are pinned: a policy is only about where its
/// roots lie to one another.
struct Tree {
    top: PathBuf,
    directories: Vec<WorkspaceRoot>,
    everything: Vec<PinnedPath>,
}

fn tree() -> &'static Tree {
    static TREE: OnceLock<Tree> = OnceLock::new();
    TREE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let top = open_root(dir.path()).unwrap().path().to_owned();
        for name in DIRECTORIES {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        for name in FILES {
            fs::write(top.join(name), "").unwrap();
        }
        let directories = DIRECTORIES.map(|name| open_root(&top.join(name)).unwrap()).into();
        let names = DIRECTORIES.into_iter().chain(FILES);
        let everything = names
            .map(|name| open_writable(&top, Path::new(name)).unwrap())
            .collect();
        Tree {
            top,
            directories,
            everything,
        }
    })
}

fn any_mode() -> impl Strategy<Value = SandboxMode> {
    select(SandboxMode::ALL.to_vec())
}

fn any_root() -> impl Strategy<Value = WorkspaceRoot> {
    select(tree().directories.clone())
}

fn any_path() -> impl Strategy<Value = PinnedPath> {
    select(tree().everything.clone())
}

fn any_deployment() -> impl Strategy<Value = Deployment> {
    let temp = option::of(select(vec![Temp::None, Temp::Private, Temp::Host]));
    let require = select(vec![Require::Partial, Require::Full]);
    // Few roots: beside two of the three modes even one is refused.
    let writable = prop_oneof![Just(Vec::new()), vec(any_path(), 0..4)];
    (any_mode(), option::of(any_root()), writable, temp, require).prop_map(|(mode, root, writable, temp, require)| {
        Deployment {
            mode,
            root,
            writable,
            protected: Vec::new(),
            temp,
            closed: BTreeSet::new(),
            require,
            ceiling: SandboxMode::DangerFullAccess,
        }
    })
}

fn any_session() -> impl Strategy<Value = SessionPolicy> {
    ("[a-z]{1,6}", option::of(any_mode()), any_root()).prop_map(|(id, mode, root)| SessionPolicy { id, mode, root })
}

fn any_surroundings() -> impl Strategy<Value = Surroundings> {
    let home = option::of(select(vec!["h", "d", "missing/home"]).prop_map(|name| tree().top.join(name)));
    let state = option::of(select(vec!["h/state", "a/b/state", "missing"]).prop_map(|name| tree().top.join(name)));
    (any_root(), vec(any_path(), 0..3), home, state, any::<bool>()).prop_map(
        |(caller_dir, host_temp, home, state_dir, allow_broad_root)| Surroundings {
            caller_dir,
            host_temp,
            home,
            state_dir,
            allow_broad_root,
        },
    )
}

/// Whether the policy lets `path` be written.
fn may_write(policy: &SandboxExecutionPolicy, path: &PinnedPath) -> bool {
    policy.mode() == SandboxMode::DangerFullAccess || policy.writable().iter().any(|root| path.is_within(root))
}

/// The places of the tree that a policy lets be written.
fn open_places(policy: &SandboxExecutionPolicy) -> Vec<&'static PinnedPath> {
    tree()
        .everything
        .iter()
        .filter(|path| may_write(policy, path))
        .collect()
}

/// The places beneath any of `roots`.
fn beneath<'a>(roots: impl Iterator<Item = &'a PinnedPath>) -> Vec<&'static PinnedPath> {
    let roots: Vec<_> = roots.collect();
    tree()
        .everything
        .iter()
        .filter(|path| roots.iter().any(|root| path.is_within(root)))
        .collect()
}

proptest! {
    #[test]
    fn nothing_loosens_without_a_grant(
        deployment in any_deployment(),
        session in option::of(any_session()),
        around in any_surroundings(),
    ) {
        let Ok(policy) = resolve(&deployment, session.as_ref(), None, &around) else { return Ok(()) };
        let switched = session.as_ref().and_then(|session| session.mode);
        prop_assert_eq!(policy.mode(), switched.unwrap_or(deployment.mode));
        prop_assert_eq!(policy.require(), deployment.require);
        let root = session.as_ref().map(|session| &session.root).or(deployment.root.as_ref());
        let root = root.unwrap_or(&around.caller_dir);
        prop_assert_eq!(policy.workspace_root(), root);
        if policy.mode() != SandboxMode::WorkspaceWrite {
            prop_assert!(policy.writable().is_empty());
            return Ok(());
        }
        let temp: &[PinnedPath] = if policy.temp() == Temp::Host { &around.host_temp } else { &[] };
        let named = std::iter::once(root.pinned()).chain(&deployment.writable).chain(temp);
        prop_assert_eq!(open_places(&policy), beneath(named));
    }

    #[test]
    fn a_granted_mode_changes_the_mode_and_what_the_mode_itself_means(
        deployment in any_deployment(),
        session in option::of(any_session()),
        granted in any_mode(),
        around in any_surroundings(),
    ) {
        let grant = ApprovedChange::Mode(granted);
        let Ok(policy) = resolve(&deployment, session.as_ref(), Some(&grant), &around) else { return Ok(()) };
        let Ok(before) = resolve(&deployment, session.as_ref(), None, &around) else {
            return Err(TestCaseError::fail("the grant mended a policy that is refused without it"));
        };
        prop_assert_eq!(policy.mode(), granted);
        prop_assert_eq!(policy.workspace_root(), before.workspace_root());
        prop_assert_eq!(policy.require(), before.require());
        prop_assert_eq!(policy.session(), before.session());
        if granted == before.mode() {
            prop_assert_eq!(&policy, &before);
        }
        if let Some(chosen) = deployment.temp.filter(|_| granted.confines()) {
            prop_assert_eq!(policy.temp(), chosen);
        }
        if granted == SandboxMode::WorkspaceWrite {
            let temp: &[PinnedPath] = if policy.temp() == Temp::Host { &around.host_temp } else { &[] };
            let named = std::iter::once(before.workspace_root().pinned()).chain(&deployment.writable).chain(temp);
            prop_assert_eq!(open_places(&policy), beneath(named));
        } else {
            prop_assert!(policy.writable().is_empty());
        }
    }

    #[test]
    fn a_granted_root_adds_what_lies_beneath_it_and_nothing_else(
        deployment in any_deployment(),
        session in option::of(any_session()),
        root in any_path(),
        around in any_surroundings(),
    ) {
        let grant = ApprovedChange::Write(root.clone());
        let Ok(policy) = resolve(&deployment, session.as_ref(), Some(&grant), &around) else { return Ok(()) };
        let Ok(before) = resolve(&deployment, session.as_ref(), None, &around) else {
            return Err(TestCaseError::fail("the grant mended a policy that is refused without it"));
        };
        prop_assert_eq!(policy.mode(), before.mode());
        prop_assert_eq!(policy.workspace_root(), before.workspace_root());
        prop_assert_eq!(policy.temp(), before.temp());
        prop_assert_eq!(policy.require(), before.require());
        prop_assert_eq!(policy.session(), before.session());
        for place in &tree().everything {
            let expected = may_write(&before, place) || place.is_within(&root);
            prop_assert_eq!(may_write(&policy, place), expected, "{:?}", place);
        }
        for kept in before.writable() {
            prop_assert!(policy.writable().contains(kept) || kept.is_within(&root));
        }
    }

    #[test]
    fn two_sessions_never_mix(
        deployment in any_deployment(),
        first in any_session(),
        second in any_session(),
        around in any_surroundings(),
    ) {
        let text = |session| match resolve(&deployment, Some(session), None, &around) {
            Ok(policy) => {
                assert_eq!(policy.session(), Some(session.id.as_str()));
                assert_eq!(policy.workspace_root(), &session.root);
                assert_eq!(policy.mode(), session.mode.unwrap_or(deployment.mode));
                format!("{policy:?}")
            }
            Err(error) => error.to_string(),
        };
        let without = resolve(&deployment, None, None, &around).map_err(|error| error.to_string());
        let alone = text(&first);
        text(&second);
        prop_assert_eq!(text(&first), alone);
        let again = resolve(&deployment, None, None, &around).map_err(|error| error.to_string());
        prop_assert_eq!(again, without);
    }

    #[test]
    fn nested_roots_fold_into_the_topmost(
        writable in vec(any_path(), 0..8),
        root in any_root(),
        around in any_surroundings(),
    ) {
        let around = Surroundings { allow_broad_root: true, ..around };
        let deployment = Deployment {
            mode: SandboxMode::WorkspaceWrite,
            root: Some(root.clone()),
            writable,
            ..Deployment::default()
        };
        let policy = resolve(&deployment, None, None, &around).unwrap();
        for (at, one) in policy.writable().iter().enumerate() {
            for (other_at, other) in policy.writable().iter().enumerate() {
                prop_assert!(at == other_at || !one.is_within(other), "{:?} is within {:?}", one, other);
            }
        }
        let named = std::iter::once(root.pinned()).chain(&deployment.writable).chain(&around.host_temp);
        prop_assert_eq!(open_places(&policy), beneath(named));
    }

    #[test]
    fn dots_after_a_link_climb_from_its_target(
        target in vec("[a-z]{1,3}", 1..5),
        beside in vec("[a-z]{1,3}", 0..3),
        climb in 0_usize..6,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let top = open_root(dir.path()).unwrap().path().to_owned();
        let real = target.iter().fold(top.join("real"), |path, name| path.join(name));
        let holder = beside.iter().fold(top.join("work"), |path, name| path.join(name));
        fs::create_dir_all(&real).unwrap();
        fs::create_dir_all(&holder).unwrap();
        symlink(&real, holder.join("link")).unwrap();

        let climb = climb.min(target.len());
        let expected = real.ancestors().nth(climb).unwrap();
        let given = std::iter::repeat_n("..", climb).fold(PathBuf::from("link"), |path, dots| path.join(dots));
        // Inside the workspace such a link is refused; it is looked at from beside it.
        let opened = open_writable(&real, &holder.join(&given)).unwrap();
        prop_assert_eq!(opened.path(), expected);
        let root = open_root(&holder.join(&given)).unwrap();
        prop_assert_eq!(root.path(), expected);
    }
}

proptest! {
    /// What a loosening opens was closed, what it keeps is kept, and nothing is looser than what is looser
    /// than it.
    #[test]
    fn looser_is_a_strict_order_and_closes_nothing(
        first in any_deployment(),
        second in any_deployment(),
        around in any_surroundings(),
    ) {
        let both = (resolve(&first, None, None, &around), resolve(&second, None, None, &around));
        let (Ok(standing), Ok(looser)) = both else { return Ok(()) };
        prop_assert!(Difference::between(&standing, &standing).is_err());
        if let Ok(found) = Difference::between(&standing, &looser) {
            prop_assert!(Difference::between(&looser, &standing).is_err());
            for place in open_places(&standing) {
                prop_assert!(may_write(&looser, place));
            }
            if looser.mode().confines() {
                for place in open_places(&looser).into_iter().filter(|place| !may_write(&standing, place)) {
                    prop_assert!(found.opened.iter().any(|root| place.path().starts_with(root)));
                }
            }
        }
    }
}
