use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use super::super::binding::tests::binding;
use super::super::clock::Moment;
use super::*;

/// A question like any other.
pub(crate) fn question() -> Question {
    Question {
        run: "run".to_owned(),
        session: Some("s".to_owned()),
        asker: "a client".to_owned(),
        argv: vec!["make".into(), "test".into()],
        executable: "/usr/bin/make".into(),
        executable_changed: Some(false),
        workdir: "/w".into(),
        difference: vec!["+ write /etc".to_owned()],
        difference_data: serde_json::json!({"addWrite": "/etc"}),
        looseness: Looseness::ExtraRoots,
        mode: SandboxMode::WorkspaceWrite,
        opens: vec!["/etc".into()],
        keeps: vec!["workspace-write".to_owned()],
        denials: vec![Refused::observed(&Denial {
            op: Operation::Create,
            path: "/etc/x".into(),
            program: "touch".to_owned(),
            pid: 7,
            errno: nix::errno::Errno::EACCES,
            count: 21,
        })],
        denials_omitted: Some(0),
        justification: "it is needed".to_owned(),
        notes: vec!["the first run took 1 s".to_owned()],
    }
}

/// The request that a question becomes.
pub(crate) fn request(question: Question) -> Request {
    let now = Moment::now().unwrap();
    Request::new(
        question,
        Frame {
            id: "01890000-0000-7000-8000-000000000000".to_owned(),
            code: "K7Q".to_owned(),
            digest: binding().digest().to_string(),
            asked_at: now.timestamp(),
            deadline: now.end_after(Duration::from_mins(15)),
            answerers: vec!["queue".to_owned()],
        },
    )
}

#[test]
fn what_is_no_utf8_comes_back_from_paper_byte_for_byte() {
    let odd = || OsString::from_vec(b"a\xff\xfe".to_vec());
    let mut asked = question();
    asked.argv = vec![odd(), "b".into()];
    asked.workdir = odd().into();
    asked.executable = odd().into();
    asked.denials[0] = Refused::observed(&Denial {
        op: Operation::Create,
        path: odd().into(),
        program: String::new(),
        pid: 0,
        errno: nix::errno::Errno::EROFS,
        count: 1,
    });
    let text = serde_json::to_string(&request(asked.clone())).unwrap();
    let back: Request = serde_json::from_str(&text).unwrap();
    assert_eq!(back.argv(), asked.argv);
    assert_eq!((back.workdir(), back.executable()), (odd().into(), odd().into()));
    assert_eq!(back.denials[0].path(), odd());
    assert!(back.is_sound(back.id()));
}

#[test]
fn a_twin_that_says_something_else_is_not_believed() {
    let mut asked = question();
    asked.argv = vec![OsString::from_vec(b"a\xff".to_vec())];
    let honest = request(asked);
    let mut forged = honest.clone();
    forged.argv_bytes = Some(vec![STANDARD.encode("rm")]);
    assert!(honest.is_sound(&honest.id) && !forged.is_sound(&honest.id));
    forged.argv_bytes = Some(Vec::new());
    assert!(!forged.is_sound(&honest.id));
    assert!(!honest.is_sound("another"));
}
