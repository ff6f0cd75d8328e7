mod failures;
mod model;
mod scene;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringfence_backend::SandboxMode;

use super::vigil::Never;
use super::*;
use crate::config::{ApprovalPolicy, Looseness};
use crate::error::{Bound, Error, NotApproved};
use scene::Scene;

/// The word for a refusal.
fn detail(error: &Error) -> &'static str {
    match error {
        Error::Approval(refusal) => refusal.detail(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_yes_from_the_queue_is_used_once_and_all_of_it_is_recorded() {
    let scene = Scene::new();
    let now = Scene::binding();
    let grant = scene.ask_and(|listed, _| scene.queue().answer(listed, &scene::yes(), None).unwrap());
    let grant = grant.unwrap();
    let id = grant.request().id().to_owned();
    let permit = grant.consume(&now).unwrap();
    assert_eq!((permit.request(), permit.retry_of()), (id.as_str(), "run"));
    assert_eq!(
        scene.records(&id),
        ["approval.asked", "approval.decided allowed-once", "approval.consumed"]
    );
    assert_eq!(scene.state(&id), State::Consumed);
}

#[test]
fn each_thing_that_has_changed_since_is_a_refusal_of_its_own() {
    let change = |what: Bound, change: &dyn Fn(&mut Binding)| {
        let scene = Scene::new();
        let grant = scene.granted();
        let mut now = Scene::binding();
        change(&mut now);
        let error = grant.consume(&now).unwrap_err();
        assert_eq!(detail(&error), what.word());
    };
    change(Bound::Argv, &|it| it.argv.push("x".into()));
    change(Bound::WorkingDirectory, &|it| it.workdir.inode += 1);
    change(Bound::Executable, &|it| it.executable.modified += 1);
    change(Bound::Environment, &|it| it.environment = [0; 32]);
    change(Bound::Stdin, &|it| it.stdin.push('x'));
    change(Bound::Policy, &|it| it.policy.push('x'));
    change(Bound::Difference, &|it| it.difference.push('x'));
    change(Bound::Boot, &|it| it.boot.push('x'));
    change(Bound::User, &|it| it.uid += 1);
    change(Bound::Run, &|it| it.run.push('x'));
    change(Bound::Nonce, &|it| it.nonce[0] += 1);
}

#[test]
fn a_grant_ends_with_its_time_with_the_boot_and_with_a_clock_that_jumps() {
    let after = |change: &dyn Fn(&mut Moment)| {
        let scene = Scene::new();
        let grant = scene.granted();
        scene.set(change);
        detail(&grant.consume(&Scene::binding()).unwrap_err())
    };
    assert_eq!(after(&|now| now.since_boot_ms += 120_000), "grant-expired");
    assert_eq!(
        after(&|now| {
            now.since_boot_ms += 120_000;
            now.wall_ms = 0;
        }),
        "grant-expired",
        "a clock that is set back lengthens nothing"
    );
    assert_eq!(after(&|now| now.wall_ms += 10_000_000), "clock-jumped");
    assert_eq!(after(&|now| now.boot.push('x')), "rebooted");
}

#[test]
fn a_ticket_that_was_used_or_exchanged_or_is_gone_is_no_ticket() {
    let scene = Scene::new();
    let grant = scene.granted();
    let name = format!("{}.json", grant.request().id());
    let (decided, used) = (scene.file("decided", &name), scene.file("used", &name));
    std::fs::copy(&decided, &used).unwrap();
    assert_eq!(detail(&grant.consume(&Scene::binding()).unwrap_err()), "used");

    let grant = scene.granted();
    let decided = scene.file("decided", &format!("{}.json", grant.request().id()));
    std::fs::write(&decided, "{\"half\":").unwrap();
    assert_eq!(detail(&grant.consume(&Scene::binding()).unwrap_err()), "ticket-changed");

    let grant = scene.granted();
    let decided = scene.file("decided", &format!("{}.json", grant.request().id()));
    std::fs::remove_file(&decided).unwrap();
    assert_eq!(detail(&grant.consume(&Scene::binding()).unwrap_err()), "ticket-changed");
}

#[test]
fn what_the_policy_or_a_rule_rejects_is_asked_of_nobody_and_recorded() {
    let rejected = |change: &dyn Fn(&mut Settings, &mut Question)| {
        let scene = Scene::new();
        let (mut settings, mut question) = (Scene::settings(), Scene::question());
        change(&mut settings, &mut question);
        let desk = scene.desk_with(settings);
        let error = desk.ask(question, Scene::binding(), &Never).unwrap_err();
        let listed = scene.queue().list(true).unwrap().0;
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].state, State::Rejected);
        let records = scene.records(listed[0].request.id());
        assert_eq!(records, ["approval.asked", "approval.decided rejected"]);
        assert!(scene.queue().list(false).unwrap().0.is_empty());
        detail(&error)
    };
    let by_policy = rejected(&|settings, _| settings.policy = ApprovalPolicy::Never);
    assert_eq!(by_policy, "rejected-by-policy");
    let too_loose = rejected(&|settings, question| {
        settings.most = Looseness::ExtraRoots;
        question.looseness = Looseness::Mode;
    });
    assert_eq!(too_loose, "rejected-by-policy");
    let path = rejected(&|settings, _| settings.reject = scene::rules("write = \"/etc/ssh\""));
    assert_eq!(path, "rejected-by-rule");
    let mode = rejected(&|settings, question| {
        settings.reject = scene::rules("mode = \"danger-full-access\"");
        question.mode = SandboxMode::DangerFullAccess;
    });
    assert_eq!(mode, "rejected-by-rule");
}

#[test]
fn no_expiry_no_refusal_no_withdrawal_and_nobody_there_are_the_same() {
    let scene = Scene::new();
    let ask = |settings: Settings, withdrawal: &dyn Withdrawal| {
        let desk = scene.desk_with(settings);
        let error = desk.ask(Scene::question(), Scene::binding(), withdrawal).unwrap_err();
        (error.code(), detail(&error), error.to_string())
    };
    let mut nobody = Scene::settings();
    nobody.answerers.clear();
    let (_, word, said) = ask(nobody, &Never);
    assert_eq!(word, "nobody-there");
    assert!(said.contains("not a refusal"));

    let (_, word, _) = ask(Scene::settings(), &scene::Flag(AtomicBool::new(true)));
    assert_eq!(word, "cancelled");

    let mut short = Scene::settings();
    short.request_ttl = Duration::ZERO;
    let (_, word, said) = ask(short, &Never);
    assert_eq!(word, "request-expired");
    assert!(
        said.contains("nobody answered within 0 s") && said.contains("not a refusal"),
        "{said}"
    );

    let no = Answer {
        allow: false,
        reason: Some("use the fixture".to_owned()),
    };
    let refused = scene.ask_and(|listed, _| scene.queue().answer(listed, &no, None).unwrap());
    let error = refused.unwrap_err();
    assert_eq!(detail(&error), "rejected-by-person");
    assert!(error.to_string().contains("use the fixture"), "{error}");
    assert!(matches!(error, Error::Approval(NotApproved::Rejected { .. })));

    // Meanwhile it is withdrawn.
    let withdrawn = scene.ask_and(|_, flag| flag.0.store(true, Ordering::SeqCst));
    assert_eq!(detail(&withdrawn.unwrap_err()), "cancelled");
    assert!(scene.queue().list(false).unwrap().0.is_empty(), "it is closed");
}

#[test]
fn a_grant_that_is_dropped_lapses() {
    let scene = Scene::new();
    let grant = scene.granted();
    let id = grant.request().id().to_owned();
    assert_eq!(scene.state(&id), State::AllowedOnce);
    drop(grant);
    assert_eq!(scene.state(&id), State::Lapsed);
}

#[test]
fn of_many_who_answer_at_once_one_does() {
    let scene = Scene::new();
    let desk = scene.desk();
    let posted = desk.post(Scene::question(), Scene::binding()).unwrap();
    let id = posted.request.id.clone();
    let taken = std::thread::scope(|threads| {
        let answers: Vec<_> = (0..8)
            .map(|number| {
                let (queue, id) = (scene.queue(), &id);
                threads.spawn(move || {
                    let answer = Answer {
                        allow: number % 2 == 0,
                        reason: None,
                    };
                    queue
                        .find(id)
                        .and_then(|listed| queue.answer(&listed, &answer, None))
                        .is_ok()
                })
            })
            .collect();
        answers
            .into_iter()
            .filter(|_| true)
            .map(|it| it.join().unwrap())
            .filter(|taken| *taken)
            .count()
    });
    assert_eq!(taken, 1);
}
