//! What is no loosening, what is not known, and every answer but yes: nothing runs, and the reason is told
//! by its own code and word.

use std::fs;

use ringfence::SandboxMode::ReadOnly;

use super::{NO, YES, assert_refused, deploy_hook, finished, of_type, retry, trail};
use crate::session::{make, session};
use crate::support::{Case, World, for_each_user};

fn assert_nothing_ran(world: &World) {
    assert!(!world.outside("new").exists(), "the command ran");
    assert!(
        of_type(&trail(world), "run.start")
            .iter()
            .all(|start| start["approval"].is_null())
    );
}

#[test]
fn nobody_is_asked_for_what_is_no_loosening() {
    for_each_user(|world| {
        deploy_hook(world, YES, "max_looseness = \"full-access\"");
        fs::create_dir(world.inside("sub")).unwrap();
        let run = finished(world, "touch $OUT/new");
        let strict = Case::new(ReadOnly).shell("touch $OUT/new").run_in(world);
        let strict = strict.field("/runId").as_str().unwrap().to_owned();
        for (run, options) in [
            (&run, ["--mode", "workspace-write"]),
            (&run, ["--mode", "read-only"]),
            (&run, ["--write", "$W/sub"]),
            (&run, ["--write", "/tmp"]),
            (&strict, ["--mode", "read-only"]),
            (&strict, ["--write", "$OUT"]),
        ] {
            assert_refused(&retry(world, run, &options), 2, "NOT_STRICTLY_LOOSER", None);
        }
        assert!(of_type(&trail(world), "approval.asked").is_empty());
        assert_nothing_ran(world);
    });
}

#[test]
fn every_answer_but_yes_is_told_apart_and_runs_nothing() {
    let hang = "import time; time.sleep(600)";
    for (does, more, status, code, detail) in [
        (NO, "", 3, "APPROVAL_REJECTED", "rejected-by-program"),
        (YES, "policy = \"never\"", 3, "APPROVAL_REJECTED", "rejected-by-policy"),
        (
            YES,
            "[[approval.reject]]\nname = \"no-var\"\nwrite = \"/var\"\nreason = \"it is shared\"",
            3,
            "APPROVAL_REJECTED",
            "rejected-by-rule",
        ),
        ("print('yes')", "", 5, "APPROVAL_UNAVAILABLE", "nobody-there"),
        ("sys.exit(1)", "", 5, "APPROVAL_UNAVAILABLE", "nobody-there"),
        ("print('x' * 10**7)", "", 5, "APPROVAL_UNAVAILABLE", "nobody-there"),
        (
            r#"print(json.dumps({"decision": "allow-once", "digest": "0" * 64}))"#,
            "",
            5,
            "APPROVAL_UNAVAILABLE",
            "nobody-there",
        ),
        (hang, "hook_timeout = \"1s\"", 5, "APPROVAL_UNAVAILABLE", "nobody-there"),
        (hang, "request_ttl = \"1s\"", 4, "APPROVAL_EXPIRED", "request-expired"),
    ] {
        let world = &World::anyone();
        let rejects = more
            .contains("\"/var\"")
            .then(|| more.replace("/var", world.beside().to_str().unwrap()));
        deploy_hook(world, does, rejects.as_deref().unwrap_or(more));
        let run = finished(world, "touch $OUT/new");
        assert_refused(&retry(world, &run, &["--write", "$OUT"]), status, code, Some(detail));
        let records = trail(world);
        assert_eq!(of_type(&records, "approval.asked").len(), 1, "{does} {more}");
        assert_eq!(of_type(&records, "approval.decided").len(), 1, "{does} {more}");
        assert_nothing_ran(world);
    }
}

#[test]
fn full_access_takes_a_deployment_that_lets_it_be_asked_for() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        let run = finished(world, "touch $OUT/new");
        let full = ["--mode", "danger-full-access"];
        let (outcome, document) = retry(world, &run, &full);
        assert_eq!(
            (outcome.status(), &document["error"]["code"]),
            (3, &"APPROVAL_REJECTED".into()),
            "{outcome}"
        );
        assert_nothing_ran(world);
        deploy_hook(world, YES, "max_looseness = \"full-access\"");
        let (outcome, document) = retry(world, &run, &full);
        assert_eq!(document["sandbox"]["mode"], "danger-full-access", "{outcome}");
        assert!(world.outside("new").exists());
    });
}

#[test]
fn runs_that_are_not_known_or_not_any_more_are_named() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        let run = finished(world, "touch $OUT/new");
        let record = world.state().join(format!("runs/{run}.json"));
        for name in ["", "../audit/lock", "019a0000-0000-7000-8000-000000000000"] {
            assert_refused(&retry(world, name, &["--write", "$OUT"]), 2, "INPUT_INVALID", None);
        }
        let whole = fs::read(&record).unwrap();
        for content in [&whole[..whole.len() / 2], b"", b"{}", b"\xff"] {
            fs::write(&record, content).unwrap();
            assert_refused(&retry(world, &run, &["--write", "$OUT"]), 2, "INPUT_INVALID", None);
        }
        fs::remove_file(&record).unwrap();
        assert_refused(&retry(world, &run, &["--write", "$OUT"]), 2, "INPUT_INVALID", None);
        assert_nothing_ran(world);
    });
}

#[test]
fn a_reason_is_given_or_nobody_is_asked() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        let run = finished(world, "touch $OUT/new");
        let options = ["--write", "$OUT", "--justification", " \n"];
        assert_refused(&retry(world, &run, &options), 2, "INPUT_INVALID", None);
        assert_nothing_ran(world);
    });
}

#[test]
fn a_run_of_a_session_that_was_switched_to_something_stricter_is_not_brought_back() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        make(world, "s", Some("workspace-write"));
        let report = Case::without_a_mode()
            .options(["--session", "s"])
            .shell("touch $OUT/new")
            .run_in(world);
        let run = report.field("/runId").as_str().unwrap().to_owned();
        assert_eq!(session(world, ["mode", "s", "read-only"]).status(), 0);
        assert_refused(
            &retry(world, &run, &["--write", "$OUT"]),
            2,
            "NOT_STRICTLY_LOOSER",
            None,
        );
        assert_nothing_ran(world);
    });
}

#[test]
fn what_is_deployed_while_it_is_asked_for_holds_as_well() {
    for_each_user(|world| {
        let file = world.home().join(".config/ringfence/config.toml");
        let does = format!(
            "f = {:?}\ntext = open(f).read().replace('[approval]', 'ceiling = \"read-only\"\\n[approval]')\nopen(f, 'w').write(text)\n{YES}",
            file.to_str().unwrap()
        );
        deploy_hook(world, &does, "");
        // The hook is the user, and so is whoever deploys here.
        std::os::unix::fs::chown(&file, Some(world.uid()), None).unwrap();
        let run = finished(world, "touch $OUT/new");
        let refused = retry(world, &run, &["--write", "$OUT"]);
        assert_refused(&refused, 2, "APPROVAL_CHANGED", Some("policy-changed"));
        assert_nothing_ran(world);
    });
}

#[test]
fn a_floor_that_was_deployed_since_holds_for_the_looser_run() {
    for_each_user(|world| {
        let run = finished(world, "touch $OUT/new");
        let look = format!("assert 'enforcement must be full' in asked['keeps'], asked\n{YES}");
        deploy_hook(world, &look, "");
        let file = world.home().join(".config/ringfence/config.toml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("[approval]", "require = \"full\"\n[approval]")).unwrap();
        let (outcome, _) = retry(world, &run, &["--write", "$OUT"]);
        assert_eq!(outcome.status(), 0, "{outcome}");
    });
}

#[test]
fn full_access_opens_what_a_rule_keeps_closed_and_is_rejected_by_it() {
    for_each_user(|world| {
        let rule = "max_looseness = \"full-access\"\n[[approval.reject]]\nname = \"keys\"\nwrite = \"~/.ssh\"\nreason = \"by hand\"";
        deploy_hook(world, YES, rule);
        let run = finished(world, "touch $OUT/new");
        let refused = retry(world, &run, &["--mode", "danger-full-access"]);
        assert_eq!(refused.1["error"]["code"], "APPROVAL_REJECTED", "{}", refused.0);
        assert_nothing_ran(world);
    });
}

#[test]
fn what_was_deployed_since_the_run_holds_for_its_retry() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        let strict = Case::new(ReadOnly).shell("touch $W/new").run_in(world);
        let strict = strict.field("/runId").as_str().unwrap().to_owned();
        let file = world.home().join(".config/ringfence/config.toml");
        let before = fs::read_to_string(&file).unwrap();
        fs::write(
            &file,
            before.replace("schema = 1\n", "schema = 1\nceiling = \"read-only\"\n"),
        )
        .unwrap();
        let refused = retry(world, &strict, &["--mode", "workspace-write"]);
        assert_refused(&refused, 2, "POLICY_INVALID", None);
        assert!(of_type(&trail(world), "approval.asked").is_empty());
        assert!(!world.inside("new").exists());
    });
}
