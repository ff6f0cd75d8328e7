//! Requests that are answered from another terminal.

use serde_json::Value;

use super::asker::Asker;
use crate::support::{Outcome, World, for_each_user, names, text};

fn ringfence(world: &World, words: &[&str]) -> Outcome {
    let mut command = world.command(world.program());
    command.args(words);
    world.outcome(command)
}

/// The request that waits, once there is one.
fn asked(world: &World) -> Value {
    loop {
        let outcome = ringfence(world, &["approvals", "list", "--json"]);
        let listed: Vec<Value> = serde_json::from_str(&outcome.stdout()).unwrap();
        if let Some(request) = listed.into_iter().next() {
            return request;
        }
    }
}

fn state(world: &World, id: &str) -> String {
    let outcome = ringfence(world, &["approvals", "show", id, "--json"]);
    let shown: Value = serde_json::from_str(&outcome.stdout()).unwrap();
    shown["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_request_is_listed_shown_and_approved_once_from_elsewhere() {
    for_each_user(|world| {
        let asker = Asker::start(world, &[]);
        let request = asked(world);
        for field in [
            "id",
            "run",
            "argv",
            "workdir",
            "difference",
            "justification",
            "state",
            "expiresAt",
        ] {
            assert!(!request[field].is_null(), "{field} of {request}");
        }
        assert_eq!(request["state"], "pending");
        let (id, code) = (request["id"].as_str().unwrap(), request["code"].as_str().unwrap());
        let card = ringfence(world, &["approvals", "show", code]).stdout();
        assert!(card.contains("line 299") && card.contains("+ write /etc") && !card.contains('\u{1b}'));
        let approved = ringfence(world, &["approve", id, "--yes", "--reason", "fine"]);
        assert_eq!(approved.output.status.code(), Some(0), "{approved}");
        assert_eq!(asker.result(), "permitted");
        assert_eq!(state(world, id), "consumed");
        let again = ringfence(world, &["approve", id, "--yes"]);
        assert_eq!(again.output.status.code(), Some(1), "{again}");
        let late = ringfence(world, &["deny", id, "--yes"]);
        assert_eq!(late.output.status.code(), Some(1), "{late}");
        let trail: String = names(world.state().join("audit"))
            .iter()
            .filter(|name| name.contains(".jsonl"))
            .map(|name| text(world.state().join("audit").join(name)))
            .collect();
        assert!(trail.contains("\"assurance\":\"asserted\""), "{trail}");
        assert_eq!(trail.matches("approval.consumed").count(), 1);
    });
}

#[test]
fn a_denial_is_told_with_its_reason_and_unknown_requests_are_a_sentence() {
    for_each_user(|world| {
        let asker = Asker::start(world, &[]);
        let request = asked(world);
        let denied = ringfence(
            world,
            &[
                "deny",
                request["code"].as_str().unwrap(),
                "--yes",
                "--reason",
                "not now",
            ],
        );
        assert_eq!(denied.output.status.code(), Some(0), "{denied}");
        let told = asker.result();
        assert!(
            told.starts_with("rejected-by-person") && told.ends_with(": not now"),
            "{told}"
        );
        let unknown = ringfence(world, &["approve", "ffff", "--yes"]);
        assert_eq!(unknown.output.status.code(), Some(1), "{unknown}");
        assert!(unknown.stderr().contains("there is no request"), "{unknown}");
    });
}

#[test]
fn a_request_whose_asker_was_killed_lapses() {
    for_each_user(|world| {
        let mut asker = Asker::start(world, &[]);
        let request = asked(world);
        asker.child().kill().unwrap();
        asker.child().wait().unwrap();
        let id = request["id"].as_str().unwrap();
        assert_eq!(state(world, id), "lapsed");
        let approved = ringfence(world, &["approve", id, "--yes"]);
        assert_eq!(approved.output.status.code(), Some(5), "{approved}");
        assert!(approved.stderr().contains("nobody waits"), "{approved}");
    });
}

#[test]
fn a_command_inside_a_run_answers_nothing() {
    for_each_user(|world| {
        let mut asker = Asker::start(world, &[]);
        let request = asked(world);
        let id = request["id"].as_str().unwrap();
        for mode in ["workspace-write", "danger-full-access"] {
            let script = format!("env -u RINGFENCE_RUN_ID RINGFENCE_STATE_DIR=$ST $BIN approve {id} --yes");
            let mut command = world.command(world.program());
            command.env("ST", world.state());
            command.args(["run", "-m", mode, "-c", &script]);
            let outcome = world.outcome(command);
            assert_ne!(outcome.output.status.code(), Some(0), "{outcome}");
            assert!(!world.state().join(format!("approvals/decided/{id}.json")).exists());
        }
        asker.child().kill().unwrap();
    });
}

/// Answers at a terminal.
const AT_A_TERMINAL: &str = r"
import os, pty, select, sys
program, verb, request, typed = sys.argv[1:]
child, terminal = pty.fork()
if child == 0: os.execv(program, [program, verb, request])
said = b''
while b'type its code: ' not in said and b'[y] ' not in said:
    if not select.select([terminal], [], [], 60)[0]: sys.exit('silence after ' + repr(said))
    said += os.read(terminal, 65536)
if b'line 299' not in said: sys.exit('the card is not whole')
os.write(terminal, typed.encode() + b'\n')
while True:
    try: said += os.read(terminal, 65536)
    except OSError: break
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";

#[test]
fn at_a_terminal_the_code_has_to_be_typed_and_is_recorded_as_seen() {
    for_each_user(|world| {
        let asker = Asker::start(world, &[]);
        let request = asked(world);
        let (id, code) = (request["id"].as_str().unwrap(), request["code"].as_str().unwrap());
        let program = world.program();
        let answer = |typed: &str| {
            let mut command = world.command("python3");
            command
                .args(["-c", AT_A_TERMINAL])
                .arg(&program)
                .args(["approve", id, typed]);
            world.outcome(command)
        };
        let wrong = answer("y");
        assert_eq!(wrong.output.status.code(), Some(1), "{wrong}");
        assert_eq!(state(world, id), "pending");
        let right = answer(code);
        assert_eq!(right.output.status.code(), Some(0), "{right}");
        assert_eq!(asker.result(), "permitted");
        let used = text(world.state().join(format!("approvals/used/{id}.json")));
        assert!(used.contains("\"assurance\":\"seen\""), "{used}");
    });
}

#[test]
fn without_a_terminal_nothing_is_approved_unless_it_is_asserted() {
    for_each_user(|world| {
        let mut asker = Asker::start(world, &[]);
        let request = asked(world);
        let mut command = world.command("setsid");
        command
            .arg("--wait")
            .arg(world.program())
            .args(["approve", request["id"].as_str().unwrap()]);
        let outcome = world.outcome(command);
        assert_eq!(outcome.output.status.code(), Some(5), "{outcome}");
        asker.child().kill().unwrap();
    });
}
