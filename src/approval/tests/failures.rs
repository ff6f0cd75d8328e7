//! A state directory that fails, and files in it that are none of ours.

use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn what_is_no_decision_is_put_aside_and_the_answer_comes_all_the_same() {
    for forged in ["", "{", "null", "{\"schema\":1}"] {
        let scene = Scene::new();
        let grant = scene.ask_and(|listed, _| {
            let path = scene.file("decided", &format!("{}.json", listed.request.id()));
            std::fs::write(&path, forged).unwrap();
            scene.queue().answer(listed, &scene::yes(), None).unwrap();
        });
        grant.unwrap().consume(&Scene::binding()).unwrap();
    }
}

#[test]
fn a_yes_of_another_digest_another_kind_or_another_users_file_is_no_yes() {
    type Forgery = (&'static str, &'static str, u32);
    let forgeries: [Forgery; 3] = [
        ("\"digest\":\"", "\"digest\":\"0", 0o600),
        ("\"kind\":\"queue\"", "\"kind\":\"tty\"", 0o600),
        ("", "", 0o644),
    ];
    for (from, to, mode) in forgeries {
        let scene = Scene::new();
        let desk = scene.desk();
        let posted = desk.post(Scene::question(), Scene::binding()).unwrap();
        let by = office::decider("queue", "uid 0", None);
        let now = posted.office.now().unwrap();
        let yes = Decision::new(&posted.request, Outcome::AllowedOnce, by, now);
        let text = serde_json::to_string(&yes).unwrap().replacen(from, to, 1);
        let path = scene.file("decided", &format!("{}.json", posted.request.id()));
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let vigil = vigil::Vigil::new(&posted.office.store, &posted.office.clock, &posted.request, &Never);
        assert!(vigil.look().unwrap().is_none(), "{to}");
        assert!(!path.exists(), "it is out of the way");
    }
}

#[test]
fn a_request_that_is_half_written_or_renamed_is_left_out_with_a_note() {
    let scene = Scene::new();
    let posted = scene.desk().post(Scene::question(), Scene::binding()).unwrap();
    let real = scene.file("pending", &format!("{}.json", posted.request.id()));
    let text = std::fs::read_to_string(&real).unwrap();
    for (name, text) in [("half.json", &text[..100]), ("renamed.json", text.as_str())] {
        let path = scene.file("pending", name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    std::os::unix::fs::symlink(&real, scene.file("pending", "link.json")).unwrap();
    let (listed, notes) = scene.queue().list(false).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(notes.len(), 3, "{notes:?}");
}

#[test]
fn a_request_whose_asker_is_gone_lapses_and_is_closed_and_recorded_by_the_next() {
    let scene = Scene::new();
    let posted = scene.desk().post(Scene::question(), Scene::binding()).unwrap();
    let id = posted.request.id.clone();
    drop(posted);
    let listed = scene.queue().find(&id).unwrap();
    assert_eq!(listed.state, State::Lapsed);
    let answered = scene.queue().answer(&listed, &scene::yes(), None);
    assert!(matches!(answered, Err(NotAnswered::Lapsed { .. })));
    let other = scene.desk().post(Scene::question(), Scene::binding()).unwrap();
    assert_eq!(scene.records(&id), ["approval.asked", "approval.decided cancelled"]);
    assert_eq!(scene.queue().list(false).unwrap().0.len(), 1, "the other one");
    drop(other);
}

#[test]
fn what_is_left_of_a_request_goes_after_a_month_and_its_records_stay() {
    let scene = Scene::new();
    let grant = scene.granted();
    let id = grant.request().id().to_owned();
    grant.consume(&Scene::binding()).unwrap();
    let left = || ["closed", "used"].map(|place| scene.file(place, &format!("{id}.json")).exists());
    let other = scene.desk().post(Scene::question(), Scene::binding()).unwrap();
    assert_eq!(left(), [true, true]);
    drop(other);
    scene.set(|now| now.wall_ms += 31 * 24 * 60 * 60 * 1000);
    drop(scene.desk().post(Scene::question(), Scene::binding()).unwrap());
    assert_eq!(left(), [false, false]);
    assert_eq!(scene.records(&id).len(), 3);
    assert!(matches!(scene.queue().find(&id), Err(NotAnswered::Unknown { .. })));
}

#[test]
fn a_question_that_cannot_be_recorded_is_not_asked() {
    let scene = Scene::new();
    let desk = scene.desk();
    let trail = scene.path().join("audit");
    std::fs::rename(&trail, scene.path().join("aside")).unwrap();
    // The desk holds the directory open; what it would write there is taken from it.
    for entry in std::fs::read_dir(scene.path().join("aside")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    std::fs::create_dir(scene.path().join("aside/lock")).unwrap();
    let error = desk.ask(Scene::question(), Scene::binding(), &Never).unwrap_err();
    assert_eq!(error.code(), crate::ErrorCode::AuditUnwritable);
    assert!(scene.queue().list(true).unwrap().0.is_empty());
}

#[test]
fn an_answer_that_cannot_be_recorded_is_no_answer_and_a_use_that_cannot_be_is_no_use() {
    let spoil = |scene: &Scene| {
        let lock = scene.path().join("audit/lock");
        std::fs::remove_file(&lock).unwrap();
        std::fs::create_dir(&lock).unwrap();
    };
    let scene = Scene::new();
    let posted = scene.desk().post(Scene::question(), Scene::binding()).unwrap();
    let id = posted.request.id.clone();
    let listed = scene.queue().find(&id).unwrap();
    scene.queue().answer(&listed, &scene::yes(), None).unwrap();
    spoil(&scene);
    let by = office::decider("queue", "uid 0", None);
    let error = posted.settle((Outcome::AllowedOnce, by)).unwrap_err();
    assert_eq!(error.code(), crate::ErrorCode::AuditUnwritable);
    assert_eq!(scene.state(&id), State::Lapsed);

    let scene = Scene::new();
    let grant = scene.granted();
    spoil(&scene);
    let error = grant.consume(&Scene::binding()).unwrap_err();
    assert_eq!(error.code(), crate::ErrorCode::AuditUnwritable);
}

#[test]
fn a_yes_that_comes_too_late_is_no_yes_and_a_no_stays_one() {
    let scene = Scene::new();
    let posted = scene.desk().post(Scene::question(), Scene::binding()).unwrap();
    let id = posted.request.id.clone();
    let listed = scene.queue().find(&id).unwrap();
    scene.set(|now| now.since_boot_ms += 15 * 60_000);
    let fresh = scene.queue().find(&id).unwrap();
    let late = scene.queue().answer(&fresh, &scene::yes(), None);
    assert!(matches!(late, Err(NotAnswered::Expired { .. })));
    // Somebody who looked before, and decides now.
    scene.queue().answer(&listed, &scene::yes(), None).unwrap();
    let by = office::decider("queue", "uid 0", None);
    let error = posted.settle((Outcome::AllowedOnce, by)).unwrap_err();
    assert_eq!(detail(&error), "request-expired");
    assert_eq!(scene.state(&id), State::Expired);

    let scene = Scene::new();
    let posted = scene.desk().post(Scene::question(), Scene::binding()).unwrap();
    let listed = scene.queue().find(posted.request.id()).unwrap();
    let no = Answer {
        allow: false,
        reason: None,
    };
    scene.queue().answer(&listed, &no, None).unwrap();
    let again = scene.queue().answer(&listed, &scene::yes(), None);
    assert!(matches!(
        again,
        Err(NotAnswered::Decided {
            state: State::Rejected,
            ..
        })
    ));
    let by = office::decider("tty", "uid 0", None);
    let error = posted.settle((Outcome::AllowedOnce, by)).unwrap_err();
    assert_eq!(detail(&error), "rejected-by-person", "the first decision is the one");
}

#[test]
fn an_answer_from_inside_a_run_is_not_taken() {
    let scene = Scene::new();
    let posted = scene.desk().post(Scene::question(), Scene::binding()).unwrap();
    let listed = scene.queue().find(posted.request.code()).unwrap();
    let inside = Inside { run: "r".to_owned() };
    let answered = scene.queue().answer(&listed, &scene::yes(), Some(&inside));
    assert!(matches!(answered, Err(NotAnswered::Inside { .. })));
    assert_eq!(around(Some("r".into())), Some(inside));
}
