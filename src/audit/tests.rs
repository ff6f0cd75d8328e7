//! What stands on the disk after records were written.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use super::*;
use crate::state::tests::place;

fn entry(what: &str) -> Entry {
    Event::Gap {
        what: what.to_owned(),
        omitted: 1,
    }
    .into()
}

fn lines(state: &std::path::Path) -> Vec<String> {
    let mut paths: Vec<PathBuf> = fs::read_dir(state.join("audit"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|path| path.extension().is_some())
        .collect();
    paths.sort();
    let text: String = paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn each_line_names_the_hash_of_the_one_before() {
    let place = place();
    let trail = Trail::open(place.path()).unwrap();
    assert_eq!(trail.append(&[], Durability::Kernel).unwrap().seq, 0);
    assert_eq!(trail.append(&[entry("a")], Durability::Disk).unwrap().seq, 1);
    let both = [entry("b"), entry("c")];
    assert_eq!(
        Trail::open(place.path())
            .unwrap()
            .append(&both, Durability::Kernel)
            .unwrap()
            .seq,
        3
    );
    let lines = lines(place.path());
    let mut prev = Hash::ZERO;
    for (line, seq) in lines.iter().zip(1..) {
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!((record.v, record.seq, record.prev), (1, seq, prev.to_string()));
        prev = Hash::of(line.as_bytes());
    }
    assert_eq!(lines.len(), 3);
}

#[test]
fn a_torn_end_stays_and_is_named_by_the_next_record() {
    let place = place();
    let trail = Trail::open(place.path()).unwrap();
    trail.append(&[entry("a")], Durability::Kernel).unwrap();
    let path = place.path().join("audit/0000000000000001.jsonl");
    fs::File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"{\"v\":1,\0")
        .unwrap();
    assert_eq!(trail.append(&[entry("b")], Durability::Kernel).unwrap().seq, 3);
    let lines = lines(place.path());
    let torn: Record = serde_json::from_str(&lines[2]).unwrap();
    assert_eq!(torn.prev, Hash::of(lines[0].as_bytes()).to_string());
    let expected = Event::Torn {
        bytes: 9,
        sha256: Hash::of(b"{\"v\":1,\0\n").to_string(),
    };
    assert_eq!((torn.seq, torn.entry.event), (2, expected));
}

#[test]
fn a_record_that_lacks_its_newline_alone_gets_it() {
    let place = place();
    let trail = Trail::open(place.path()).unwrap();
    trail.append(&[entry("a"), entry("b")], Durability::Kernel).unwrap();
    let path = place.path().join("audit/0000000000000001.jsonl");
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    assert_eq!(trail.append(&[entry("c")], Durability::Kernel).unwrap().seq, 3);
    assert_eq!(lines(place.path()).len(), 3);
}

#[test]
fn many_who_write_at_once_lose_nothing_and_tear_nothing() {
    let place = place();
    let writers = 8;
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let place = place.path();
            scope.spawn(move || {
                for n in 0..50 {
                    let trail = Trail::open(place).unwrap();
                    let both = [entry(&format!("{writer} {n} a")), entry(&format!("{writer} {n} b"))];
                    trail.append(&both, Durability::Kernel).unwrap();
                }
            });
        }
    });
    let verified = Trail::read(place.path()).unwrap().verify(None).unwrap().unwrap();
    assert_eq!((verified.last, verified.mended, verified.torn), (800, 0, 0));
    let lines = lines(place.path());
    for writer in 0..writers {
        let own: Vec<_> = lines
            .iter()
            .filter(|line| line.contains(&format!("\"what\":\"{writer} ")))
            .collect();
        let expected: Vec<_> = (0..50)
            .flat_map(|n| [format!("{writer} {n} a"), format!("{writer} {n} b")])
            .collect();
        assert_eq!(own.len(), expected.len());
        assert!(
            own.iter().zip(&expected).all(|(line, what)| line.contains(what)),
            "in the order of writing"
        );
    }
}

#[test]
fn a_clock_that_jumps_neither_begins_a_segment_nor_prunes_one() {
    let place = place();
    let trail = Trail::open(place.path()).unwrap();
    trail.append(&[entry("a")], Durability::Kernel).unwrap();
    let path = place.path().join("audit/0000000000000001.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let year = text.split("\"time\":\"").nth(1).unwrap()[..4].to_owned();
    for other in ["1970", "2199"] {
        // As if the clock had been wrong when the first record was written.
        fs::write(
            &path,
            text.replace(&format!("\"time\":\"{year}"), &format!("\"time\":\"{other}")),
        )
        .unwrap();
        trail.append(&[entry("b")], Durability::Kernel).unwrap();
        assert_eq!(
            lines(place.path()).len(),
            2,
            "in the same segment, in the order of writing"
        );
        assert_eq!(fs::read_dir(place.path().join("audit")).unwrap().count(), 2);
        let next = place.path().join("audit/0000000000000003.jsonl");
        fs::write(&next, "").unwrap();
        trail.append(&[entry("c")], Durability::Kernel).unwrap();
        let month = std::time::Duration::from_hours(30 * 24);
        let pruned = trail
            .prune(Keep {
                age: Some(month),
                bytes: None,
            })
            .unwrap();
        assert_eq!(pruned.segments, 0);
        fs::remove_file(&next).unwrap();
    }
}

#[test]
fn a_segment_that_is_old_or_full_is_gone_on_from_in_another() {
    let place = place();
    let trail = Trail::open(place.path()).unwrap();
    trail.append(&[entry("a")], Durability::Kernel).unwrap();
    let path = place.path().join("audit/0000000000000001.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let boot = text
        .split("\"boot\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let (year, _) = text.split("\"time\":\"").nth(1).unwrap().split_at(4);
    // Of another boot, long ago.
    fs::write(
        &path,
        text.replace(&boot, "another")
            .replace(&format!("\"time\":\"{year}"), "\"time\":\"1999"),
    )
    .unwrap();
    trail.append(&[entry("b")], Durability::Kernel).unwrap();
    assert!(place.path().join("audit/0000000000000002.jsonl").exists());
    let verified = Trail::read(place.path()).unwrap().verify(None).unwrap().unwrap();
    assert_eq!(verified.last, 2);
}

#[test]
fn a_form_that_is_newer_is_not_written_to() {
    let place = place();
    let trail = Trail::open(place.path()).unwrap();
    trail.append(&[entry("a")], Durability::Kernel).unwrap();
    let path = place.path().join("audit/0000000000000001.jsonl");
    let text = fs::read_to_string(&path).unwrap().replace("\"v\":1,", "\"v\":2,");
    fs::write(&path, &text).unwrap();
    assert!(trail.append(&[entry("b")], Durability::Kernel).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn reading_makes_nothing_and_a_trail_that_grows_is_read_on() {
    let place = place();
    assert!(matches!(Trail::read(place.path()), Err(AuditError::Missing { .. })));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    let trail = Trail::open(place.path()).unwrap();
    let reading = Trail::read(place.path()).unwrap();
    let mut records = reading.records().unwrap();
    assert!(records.next().is_none());
    let path = place.path().join("audit/0000000000000001.jsonl");
    for seq in 1..4 {
        trail.append(&[entry("a")], Durability::Kernel).unwrap();
        // A part of a line is no record yet.
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        assert!(records.next().is_none());
        fs::write(&path, &whole).unwrap();
        assert_eq!(records.next().unwrap().unwrap().seq, seq);
        assert!(records.next().is_none());
    }
    fs::write(place.path().join("audit/0000000000000004.jsonl"), "").unwrap();
    trail.append(&[entry("a")], Durability::Kernel).unwrap();
    assert_eq!(records.next().unwrap().unwrap().seq, 4);
    let (last, _) = reading.last(3).unwrap();
    assert_eq!(
        last.into_iter().map(|it| it.unwrap().seq).collect::<Vec<_>>(),
        [2, 3, 4]
    );
}

#[test]
fn no_secret_reaches_the_disk() {
    let place = place();
    let trail = Trail::open(place.path()).unwrap();
    let event = Event::ApprovalAsked {
        request: "r".to_owned(),
        argv: vec!["x".to_owned(), "--token".to_owned(), "hunter2".to_owned()],
        workdir: "/".to_owned(),
        difference: String::new(),
        justification: "it needs https://me:hunter2@host".to_owned(),
        digest: String::new(),
        expires_at: String::new(),
    };
    trail.append(&[event.into()], Durability::Kernel).unwrap();
    let line = lines(place.path()).join("");
    assert!(!line.contains("hunter2") && line.contains("[redacted]"), "{line}");
}

#[test]
fn an_empty_segment_that_is_not_the_next_is_not_written_to() {
    let place = place();
    let trail = Trail::open(place.path()).unwrap();
    trail.append(&[entry("a")], Durability::Kernel).unwrap();
    let stray = place.path().join("audit/0000000000000009.jsonl");
    fs::write(&stray, "").unwrap();
    let error = trail.append(&[entry("b")], Durability::Kernel).unwrap_err();
    assert!(error.to_string().contains("record 2 is the next"), "{error}");
    fs::remove_file(stray).unwrap();
    assert_eq!(trail.append(&[entry("b")], Durability::Kernel).unwrap().seq, 2);
}
