//! A program that asks: this one, started again by the tests beside it, so that it can have a terminal of
//! its own and be another user's.

use std::env;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ringfence::approval::{
    Answerer, Binding, Desk, Executable, Hook, Moment, Never, Place, Question, Settings, environment, nonce,
};
use ringfence::audit::Trail;
use ringfence::config::{ApprovalPolicy, Looseness};
use ringfence::{Error, SandboxMode};
use serde_json::json;

use crate::support::{World, text};

/// The name of [`asks`], as the harness knows it.
pub(super) const ASKS: [&str; 5] = [
    "--exact",
    "approvals::asker::asks",
    "--ignored",
    "--nocapture",
    "--test-threads=1",
];

/// What the one who asks runs: three hundred lines that would clear the screen.
fn script() -> String {
    let lines: Vec<_> = (0..300)
        .map(|number| format!("line {number} \u{1b}[2J\u{1b}[1A\u{202e}\n"))
        .collect();
    lines.concat()
}

fn var(name: &str) -> Option<String> {
    env::var(name).ok()
}

#[test]
#[ignore = "it asks, and the tests beside it answer"]
fn asks() {
    let state = PathBuf::from(var("RINGFENCE_STATE_DIR").unwrap());
    let answerer = match var("ASK_HOOK") {
        Some(program) => Answerer::Hook(Hook {
            program: program.into(),
            args: Vec::new(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            timeout: Duration::from_millis(var("ASK_TIMEOUT").unwrap().parse().unwrap()),
        }),
        None if var("ASK_AT").as_deref() == Some("tty") => Answerer::Tty,
        None => Answerer::Queue,
    };
    let settings = Settings {
        policy: ApprovalPolicy::Ask,
        answerers: vec![answerer],
        notify: None,
        reject: Vec::new(),
        most: Looseness::FullAccess,
        request_ttl: Duration::from_mins(2),
        grant_ttl: Duration::from_mins(2),
    };
    let executable = Executable::examine("/bin/sh".as_ref()).unwrap();
    let question = Question {
        run: "the-run".to_owned(),
        session: None,
        asker: "a test".to_owned(),
        argv: vec!["sh".into(), "-c".into(), script().into()],
        executable: executable.path.clone(),
        executable_changed: Some(false),
        workdir: "/".into(),
        difference: vec!["+ write /etc".to_owned()],
        difference_data: json!({"addWrite": "/etc"}),
        looseness: Looseness::ExtraRoots,
        mode: SandboxMode::WorkspaceWrite,
        opens: vec!["/etc".into()],
        keeps: vec!["all else".to_owned()],
        denials: Vec::new(),
        denials_omitted: Some(0),
        justification: "it is \u{1b}[31mneeded".to_owned(),
        notes: Vec::new(),
    };
    let binding = Binding {
        argv: question.argv.clone(),
        workdir: Place {
            path: "/".into(),
            device: 0,
            inode: 0,
        },
        environment: environment(&[]),
        executable,
        stdin: String::new(),
        policy: String::new(),
        difference: String::new(),
        boot: Moment::now().unwrap().boot,
        uid: 0,
        run: "the-run".to_owned(),
        nonce: nonce().unwrap(),
    };
    let trail = Arc::new(Trail::open(&state).unwrap());
    let asked = Desk::open(&state, trail, settings).and_then(|desk| desk.ask(question, binding.clone(), &Never));
    let said = match asked.and_then(|grant| grant.consume(&binding)) {
        Ok(_) => "permitted".to_owned(),
        Err(Error::Approval(refusal)) => format!("{}: {refusal}", refusal.detail()),
        Err(other) => other.to_string(),
    };
    std::fs::write(var("ASK_RESULT").unwrap(), said).unwrap();
}

/// Somebody who asks in the queue or of a hook.
pub(super) struct Asker {
    child: Child,
    result: PathBuf,
}

impl Asker {
    /// Starts asking.
    pub(super) fn start(world: &World, variables: &[(&str, &str)]) -> Self {
        let result = world.outside("result");
        let child = command(world)
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, result }
    }

    /// Its process.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// What became of it.
    pub(super) fn result(mut self) -> String {
        self.child.wait().unwrap();
        text(&self.result)
    }
}

/// The command that asks, for whoever starts it.
pub(super) fn command(world: &World) -> Command {
    let mut command = world.command(world.harness());
    command.args(ASKS).env("ASK_RESULT", world.outside("result"));
    command
}
