//! Ringfence inside another program: what the program contributes, feeds and asks for. These runs are
//! made by the test itself, so they are its own user's.

use std::ffi::OsString;
use std::path::Path;

use ringfence::policy::open_root;
use ringfence::{
    Abort, Contributor, Deployment, Error, ErrorCode, ExecRequest, Input, ManagedEnv, Resource, RunReport, Runner,
    Surroundings, Variable, resolve,
};

/// A host that knows its session, and the run's name where it can be told.
#[derive(Debug)]
struct Sessions(Vec<(&'static str, String)>);

impl Contributor for Sessions {
    fn name(&self) -> &'static str {
        "sessions"
    }

    fn variables(&self) -> Vec<Variable> {
        let variable = |name: &str, description: &str| Variable {
            name: name.into(),
            description: description.to_owned(),
        };
        vec![
            variable("AGENT_SESSION", "the session that the run belongs to"),
            variable("AGENT_TURN", "the turn of the session"),
            variable("AGENT_RUN", "the run, once more"),
        ]
    }

    fn entries(&self, request: &ExecRequest) -> Vec<(OsString, OsString)> {
        let own = self.0.iter().map(|(name, value)| (name.into(), value.into()));
        own.chain([("AGENT_RUN".into(), request.run_id.clone().into())])
            .collect()
    }
}

fn runner(entries: Vec<(&'static str, String)>) -> Runner {
    let managed = ManagedEnv::of(vec![Box::new(Sessions(entries))]).unwrap();
    Runner::new(None).with_managed_env(managed)
}

fn request(argv: &[&str]) -> ExecRequest {
    let root = open_root(Path::new("/usr")).unwrap();
    let here = Surroundings::of(root);
    let policy = resolve(&Deployment::default(), None, None, &here).unwrap();
    let mut request = ExecRequest::new(argv.iter().map(OsString::from).collect(), policy);
    request.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    request
}

fn run(runner: &Runner, request: ExecRequest) -> RunReport {
    let spec = runner.resolve(request).unwrap();
    runner.run_blocking(spec, &Abort::new()).unwrap()
}

fn printed(report: &RunReport) -> &str {
    assert_eq!(report.exit.code(), Some(0), "{report:?}");
    &report.stdout.as_ref().unwrap().text
}

#[test]
fn what_a_host_contributes_is_rebuilt_for_every_run_and_stale_values_never_come_through() {
    let before: Vec<_> = std::env::vars_os().collect();
    let runner = runner(vec![("AGENT_SESSION", "s-1".to_owned())]);
    let mut named = request(&["env"]);
    let stale = [
        "AGENT_SESSION",
        "AGENT_TURN",
        "AGENT_RUN",
        "RINGFENCE_MODE",
        "RINGFENCE_STALE",
    ];
    named.env.extend(stale.map(|name| (name.into(), "stale".into())));
    let other = named.clone();
    let expected = format!("AGENT_RUN={}", named.run_id);
    let report = run(&runner, named);
    let lines: Vec<_> = printed(&report).lines().collect();
    assert!(lines.contains(&"AGENT_SESSION=s-1") && lines.contains(&"RINGFENCE_MODE=read-only"));
    assert!(lines.contains(&expected.as_str()));
    assert!(
        !printed(&report).contains("stale"),
        "an absent fact stays absent: {lines:?}"
    );
    let again = ExecRequest {
        run_id: "another".to_owned(),
        ..other
    };
    assert!(printed(&run(&runner, again)).contains("AGENT_RUN=another\n"));
    assert!(std::env::vars_os().eq(before), "the host's own environment was changed");
}

#[test]
fn a_contributor_that_breaks_its_word_starts_nothing() {
    for (name, value) in [("AGENT_OTHER", "x"), ("AGENT_TURN", "a\0b"), ("AGENT_RUN", "twice")] {
        let error = runner(vec![(name, value.to_owned())])
            .resolve(request(&["env"]))
            .unwrap_err();
        assert!(matches!(&error, Error::Environment(_)), "{error}");
        assert_eq!(error.code(), ErrorCode::InputInvalid);
        assert!(
            error.to_string().contains("sessions") && error.hint().is_some(),
            "{error}"
        );
    }
}

#[test]
fn bytes_from_memory_are_the_commands_input_however_many_there_are() {
    for size in [0, 1, 65_536, 65_537, 3_000_000] {
        let mut request = request(&["wc", "-c"]);
        request.input = Input::Bytes(vec![b'x'; size]);
        assert_eq!(printed(&run(&Runner::new(None), request)).trim(), size.to_string());
    }
    for size in [1 << 20, 1 << 24] {
        let mut request = request(&["true"]);
        request.input = Input::Bytes(vec![b'x'; size]);
        let report = run(&Runner::new(None), request);
        assert_eq!((report.exit.code(), report.timed_out), (Some(0), false));
    }
}

#[test]
fn a_shell_text_far_longer_than_an_argument_runs_with_its_arguments() {
    let text = format!("{}echo $0 $1", ":\n".repeat(1_000_000));
    let report = run(
        &Runner::new(None),
        request(&["/bin/bash", "-c", &text, "name", "first"]),
    );
    assert_eq!(printed(&report), "name first\n");
    assert_eq!(report.command.unwrap().bytes, text.len());
    assert_eq!(report.argv[3..], ["name", "first"].map(OsString::from));
}

#[test]
fn a_text_that_is_no_shells_is_still_too_large() {
    let text = "x".repeat(200_000);
    let error = Runner::new(None).resolve(request(&["echo", &text])).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CommandTooLarge);
    assert!(error.hint().unwrap().contains("--command-file"));
}

#[test]
fn a_nul_byte_in_a_long_text_is_refused_by_its_offset() {
    let text = format!("{}\0", "x".repeat(200_000));
    let error = Runner::new(None).resolve(request(&["bash", "-c", &text])).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("offset 200000"), "{}", &said[said.len() - 100..]);
    assert!(said.len() < 10_000, "the text is not repeated whole");
}

#[test]
fn a_host_limits_a_run_and_not_itself() {
    let mut limited = request(&["bash", "-c", "ulimit -n; ulimit -f"]);
    limited.limits = [(Resource::Nofile, 50), (Resource::Fsize, 10_240)].into();
    assert_eq!(printed(&run(&Runner::new(None), limited)), "50\n10\n");
    let own = std::fs::read_to_string("/proc/self/limits").unwrap();
    let files = own.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert!(!files.contains(" 50 "), "{files}");
}
