use std::path::Path;

use ringfence_backend::{SandboxExecutionPolicy, WorkspaceRoot};

use super::*;
use crate::exec::env::{EnvChanges, command_environment};
use crate::policy::{Deployment, SessionPolicy, Surroundings, resolve};

/// A contributor that declares and returns what it is told to.
#[derive(Clone, Debug)]
struct Host {
    name: &'static str,
    declares: Vec<(&'static str, &'static str)>,
    returns: Vec<(&'static str, &'static str)>,
}

impl Contributor for Host {
    fn name(&self) -> &str {
        self.name
    }

    fn variables(&self) -> Vec<Variable> {
        let variable = |&(name, description): &(&str, &str)| Variable {
            name: name.into(),
            description: description.to_owned(),
        };
        self.declares.iter().map(variable).collect()
    }

    fn entries(&self, _: &ExecRequest) -> Vec<(OsString, OsString)> {
        let owned = |&(name, value): &(&str, &str)| (name.into(), value.into());
        self.returns.iter().map(owned).collect()
    }
}

fn host() -> Host {
    Host {
        name: "host",
        declares: vec![("HOST_SESSION", "the session's id"), ("HOST_TURN", "the turn's number")],
        returns: vec![("HOST_SESSION", "s1")],
    }
}

fn registered(hosts: &[Host]) -> Result<ManagedEnv, ManagedEnvError> {
    ManagedEnv::of(hosts.iter().map(|host| Box::new(host.clone()) as _).collect())
}

fn declaring(name: &'static str, description: &'static str) -> Fault {
    let declares = vec![(name, description)];
    registered(&[Host { declares, ..host() }]).unwrap_err().fault
}

fn request() -> ExecRequest {
    ExecRequest::new(vec!["true".into()], read_only())
}

fn read_only() -> SandboxExecutionPolicy {
    let here = Surroundings::of(WorkspaceRoot::open(Path::new(".")).unwrap());
    resolve(&Deployment::default(), None, None, &here).unwrap()
}

fn applied(hosts: &[Host], vars: &[(&str, &str)]) -> Result<Vec<(OsString, OsString)>, ManagedEnvError> {
    let mut request = request();
    request.env = vars
        .iter()
        .map(|(n, v)| (OsString::from(n), OsString::from(v)))
        .collect();
    registered(hosts)?.complete(&request, Path::new("/w"), Some(Path::new("/t")))
}

#[test]
fn names_that_cannot_be_are_refused_when_they_are_declared() {
    for name in ["", "A=B", "A\0B"] {
        assert!(matches!(declaring(name, "text"), Fault::Malformed(_)), "{name:?}");
    }
    for name in ["RINGFENCE_MODE", "RINGFENCE_NEW", "ringfence_mode", "PWD", "TMPDIR"] {
        assert_eq!(declaring(name, "text"), Fault::Reserved, "{name}");
    }
}

#[test]
fn a_variable_that_nobody_describes_is_refused() {
    for description in ["", " \n\t"] {
        assert_eq!(declaring("HOST_A", description), Fault::BlankDescription);
    }
}

#[test]
fn a_variable_that_is_declared_twice_is_refused_whoever_declares_it() {
    let twice = vec![("A", "text"), ("A", "text")];
    let error = registered(&[Host {
        declares: twice,
        ..host()
    }])
    .unwrap_err();
    assert_eq!(error.fault, Fault::Declared { by: "host".to_owned() });
    let other = Host {
        name: "other",
        ..host()
    };
    let error = registered(&[host(), other]).unwrap_err();
    assert_eq!(
        (error.contributor.as_str(), &error.name),
        ("other", &"HOST_SESSION".into())
    );
    assert_eq!(error.fault, Fault::Declared { by: "host".to_owned() });
}

#[test]
fn contributors_have_names_of_their_own() {
    let unnamed = Host { name: " ", ..host() };
    assert_eq!(registered(&[unnamed]).unwrap_err().fault, Fault::BlankContributor);
    let again = Host {
        declares: vec![],
        ..host()
    };
    assert_eq!(registered(&[host(), again]).unwrap_err().fault, Fault::SameContributor);
}

#[test]
fn what_a_run_gets_is_rebuilt_and_a_stale_value_never_comes_through() {
    let stale = [
        ("HOST_SESSION", "old"),
        ("HOST_TURN", "old"),
        ("RINGFENCE_STALE", "old"),
        ("RINGFENCE_MODE", "old"),
        ("TMPDIR", "old"),
        ("A", "1"),
    ];
    let vars = applied(&[host()], &stale).unwrap();
    let named = |name: &str| {
        vars.iter()
            .find(|(it, _)| it == name)
            .map(|(_, value)| value.to_str().unwrap())
    };
    assert_eq!((named("A"), named("TMPDIR")), (Some("1"), Some("/t")));
    assert_eq!((named("PWD"), named("RINGFENCE_MODE")), (Some("/w"), Some("read-only")));
    assert_eq!(
        (named("HOST_TURN"), named("RINGFENCE_STALE")),
        (None, None),
        "an absent fact stays absent"
    );
    assert_eq!(
        vars.last(),
        Some(&("HOST_SESSION".into(), "s1".into())),
        "managed entries come last"
    );
}

#[test]
fn a_command_is_told_its_session_and_never_a_stale_one() {
    let here = Surroundings::of(WorkspaceRoot::open(Path::new(".")).unwrap());
    let session = SessionPolicy {
        id: "s1".to_owned(),
        mode: None,
        root: here.caller_dir.clone(),
    };
    for (session, expected) in [(Some(&session), Some("s1")), (None, None)] {
        let policy = resolve(&Deployment::default(), session, None, &here).unwrap();
        let mut request = ExecRequest::new(vec!["true".into()], policy);
        request.env = vec![("RINGFENCE_SESSION".into(), "stale".into())];
        let vars = ManagedEnv::default().complete(&request, Path::new("/w"), None).unwrap();
        let told = vars.iter().find(|(name, _)| name == "RINGFENCE_SESSION");
        assert_eq!(told.and_then(|(_, value)| value.to_str()), expected);
    }
}

#[test]
fn what_was_not_declared_is_refused_even_when_another_contributor_declared_it() {
    let returns = vec![("HOST_OTHER", "x")];
    let error = applied(&[Host { returns, ..host() }], &[]).unwrap_err();
    assert_eq!((error.fault, error.name), (Fault::Undeclared, "HOST_OTHER".into()));
    let other = Host {
        name: "other",
        declares: vec![("OTHER_A", "text")],
        returns: vec![("HOST_TURN", "x")],
    };
    assert_eq!(applied(&[host(), other], &[]).unwrap_err().fault, Fault::Undeclared);
}

#[test]
fn a_value_that_no_environment_can_hold_is_refused() {
    let returns = vec![("HOST_TURN", "a\0b")];
    let error = applied(&[Host { returns, ..host() }], &[]).unwrap_err();
    assert_eq!(error.fault, Fault::NulInValue { offset: 1 });
    let returns = vec![("HOST_TURN", "1"), ("HOST_TURN", "2")];
    assert_eq!(
        applied(&[Host { returns, ..host() }], &[]).unwrap_err().fault,
        Fault::Twice
    );
}

#[test]
fn every_refusal_has_a_way_out() {
    let error = registered(&[host(), host()]).unwrap_err();
    assert!(error.to_string().contains("host") && !error.hint().is_empty());
}

#[test]
fn a_caller_cannot_set_keep_or_leave_out_what_is_managed() {
    let managed = registered(&[host()]).unwrap();
    let name = || OsString::from("HOST_TURN");
    let changes = [
        EnvChanges {
            set: vec![(name(), "mine".into())],
            ..EnvChanges::default()
        },
        EnvChanges {
            keep: vec![name()],
            ..EnvChanges::default()
        },
        EnvChanges {
            unset: vec![name()],
            ..EnvChanges::default()
        },
    ];
    for changes in changes {
        let error = command_environment([], &changes, false, &managed).unwrap_err();
        assert!(error.to_string().contains("HOST_TURN"), "{error}");
    }
    let callers = [(name(), "stale".into()), ("A".into(), "1".into())];
    let built = command_environment(callers, &EnvChanges::default(), false, &managed).unwrap();
    assert_eq!(built.vars, [("A".into(), "1".into())]);
    assert_eq!(built.removed, [name()]);
}
