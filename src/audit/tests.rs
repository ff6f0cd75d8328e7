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
