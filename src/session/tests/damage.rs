//! Logs that are not as they were written.

use std::fs;

use ringfence_backend::SandboxMode;

use super::Fixture;
use crate::error::ErrorCode;
use crate::session::SessionError;

#[test]
fn a_line_that_a_crash_tore_is_no_event_and_is_taken_away_by_the_next() {
    let fixture = Fixture::new();
    fixture.create("a", Some(SandboxMode::WorkspaceWrite)).unwrap();
    let whole = fs::read_to_string(fixture.log("a")).unwrap();
    let next = "{\"type\":\"mode\",\"to\":\"danger-full-access\",\"time\":\"2026-01-01T00:00:00Z\"}";
    for cut in 1..=next.len() {
        fs::write(fixture.log("a"), format!("{whole}{}", &next[..cut])).unwrap();
        let torn = fixture.store.load("a").unwrap();
        assert_eq!(
            (torn.mode(), torn.events().len()),
            (Some(SandboxMode::WorkspaceWrite), 1)
        );
    }
    fixture.append("a", "\0\0\0");
    fixture.switch("a", SandboxMode::ReadOnly).unwrap();
    let mended = fs::read_to_string(fixture.log("a")).unwrap();
    assert_eq!(mended.lines().count(), 2, "{mended}");
    assert!(mended.starts_with(&whole) && mended.ends_with("}\n"), "{mended}");
}

#[test]
fn a_line_that_says_nothing_closes_the_session_and_names_itself() {
    let fixture = Fixture::new();
    for (id, line) in [
        ("a", "nonsense\n"),
        ("b", "\n"),
        ("c", "{\"type\":\"mode\",\"to\":\"read-only\"}\n"),
        (
            "d",
            "{\"type\":\"moved\",\"to\":\"/\",\"time\":\"2026-01-01T00:00:00Z\"}\n",
        ),
        (
            "e",
            "{\"type\":\"mode\",\"to\":\"read-only\",\"time\":\"2026-01-01T00:00:00Z\",\"more\":1}\n",
        ),
        ("f", "\0\0\0\n"),
    ] {
        fixture.create(id, None).unwrap();
        fixture.switch(id, SandboxMode::ReadOnly).unwrap();
        fixture.append(id, line);
        let later = "{\"type\":\"mode\",\"to\":\"danger-full-access\",\"time\":\"2026-01-01T00:00:00Z\"}\n";
        fixture.append(id, later);
        let before = fs::read(fixture.log(id)).unwrap();
        let error = fixture.store.load(id).unwrap_err();
        assert_eq!(error.code(), ErrorCode::PolicyInvalid);
        assert!(
            matches!(&error, SessionError::Corrupt { file, line: 3, .. } if *file == fixture.log(id)),
            "{id}: {error:?}"
        );
        fixture.switch(id, SandboxMode::ReadOnly).unwrap_err();
        assert_eq!(
            fs::read(fixture.log(id)).unwrap(),
            before,
            "nothing is written after it"
        );
    }
    assert_eq!(
        fixture.store.list().unwrap().len(),
        6,
        "each is listed, and hides no other"
    );
}

#[test]
fn a_log_that_does_not_begin_with_the_making_of_its_session_is_none() {
    let fixture = Fixture::new();
    fixture.create("a", None).unwrap();
    let made = fs::read_to_string(fixture.log("a")).unwrap();
    let switched = "{\"type\":\"mode\",\"to\":\"read-only\",\"time\":\"2026-01-01T00:00:00Z\"}\n";
    let made_twice = format!("{made}{made}");
    let later = made.replace("\"schema\":1", "\"schema\":2");
    for (text, number) in [
        ("", 1),
        (switched, 1),
        (made.trim_end(), 1),
        (&made_twice, 2),
        (&later, 1),
    ] {
        fs::write(fixture.log("a"), text).unwrap();
        let error = fixture.store.load("a").unwrap_err();
        assert!(
            matches!(error, SessionError::Corrupt { line, .. } if line == number),
            "{error:?}"
        );
    }
}

#[test]
fn a_mode_that_there_is_not_is_named_with_its_file_and_line() {
    let fixture = Fixture::new();
    fixture.create("a", None).unwrap();
    fixture.append(
        "a",
        "{\"type\":\"mode\",\"to\":\"god\",\"time\":\"2026-01-01T00:00:00Z\"}\n",
    );
    let error = fixture.store.load("a").unwrap_err();
    assert!(
        matches!(&error, SessionError::UnknownMode { line: 2, mode, .. } if mode == "god"),
        "{error:?}"
    );
    assert!(error.to_string().contains("a.jsonl, line 2: `god`"), "{error}");
}
