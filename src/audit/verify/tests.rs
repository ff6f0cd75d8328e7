//! Faults that are found, and ends that are none.

mod exhaustive;

use std::fs;
use std::path::PathBuf;

use super::super::read::Piece;
use super::super::{Durability, Entry, Event, Keep, Trail, segment};
use super::*;
use crate::state::tests::place;

struct Scene {
    place: tempfile::TempDir,
    trail: Trail,
}

impl Scene {
    fn with(records: usize) -> Self {
        let place = place();
        let trail = Trail::open(place.path()).unwrap();
        let scene = Self { place, trail };
        scene.append(records);
        scene
    }

    fn append(&self, records: usize) {
        let entries: Vec<Entry> = (0..records)
            .map(|n| {
                let what = n.to_string();
                Event::Gap { what, omitted: 1 }.into()
            })
            .collect();
        self.trail.append(&entries, Durability::Kernel).unwrap();
    }

    fn segment(&self, first: u64) -> PathBuf {
        self.place.path().join("audit").join(segment::name(first))
    }

    /// Begins another segment, as if the newest were full.
    fn seal(&self) {
        let last = self.verify().unwrap().last;
        fs::write(self.segment(last + 1), "").unwrap();
    }

    fn verify(&self) -> Result<Verified, Fault> {
        Trail::read(self.place.path()).unwrap().verify(None).unwrap()
    }

    fn against(&self, checkpoint: &Checkpoint) -> Result<Verified, Fault> {
        Trail::read(self.place.path())
            .unwrap()
            .verify(Some(checkpoint))
            .unwrap()
    }

    fn checkpoint(&self) -> Checkpoint {
        self.verify().unwrap().checkpoint("o".to_owned())
    }

    /// Rewrites the lines of the first segment.
    fn edit(&self, edit: impl Fn(&mut Vec<String>)) -> Fault {
        let path = self.segment(1);
        let before = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<_> = before.lines().map(str::to_owned).collect();
        edit(&mut lines);
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let fault = self.verify().unwrap_err();
        fs::write(&path, before).unwrap();
        fault
    }
}

#[test]
fn each_kind_of_fault_is_told_with_its_place() {
    let scene = Scene::with(9);
    let seen = |fault: Fault| (fault.kind, fault.line, fault.record);
    let changed = scene.edit(|lines| lines[3] = lines[3].replace("\"omitted\":1", "\"omitted\":2"));
    assert_eq!(seen(changed), (FaultKind::Changed, Some(5), Some(4)));
    let spoilt = scene.edit(|lines| lines[3] = lines[3].replace('{', "("));
    assert_eq!(seen(spoilt), (FaultKind::Changed, Some(4), Some(4)));
    let removed = scene.edit(|lines| drop(lines.remove(3)));
    assert_eq!(seen(removed), (FaultKind::Removed, Some(4), Some(4)));
    let swapped = scene.edit(|lines| lines.swap(3, 5));
    assert_eq!(seen(swapped), (FaultKind::Reordered, Some(4), Some(4)));
    let twice = scene.edit(|lines| lines.insert(4, lines[3].clone()));
    assert_eq!(seen(twice), (FaultKind::Reordered, Some(5), Some(4)));
    let foreign = scene.edit(|lines| lines.insert(4, "x".to_owned()));
    assert_eq!(seen(foreign), (FaultKind::Foreign, Some(5), Some(5)));
    let version = scene.edit(|lines| lines[3] = lines[3].replace("\"v\":1", "\"v\":2"));
    assert_eq!(seen(version), (FaultKind::Version, Some(4), Some(4)));
    let beginning = scene.edit(|lines| drop(lines.remove(0)));
    assert_eq!(seen(beginning), (FaultKind::Removed, Some(1), Some(1)));
    fs::rename(scene.segment(1), scene.segment(2)).unwrap();
    assert_eq!(scene.verify().unwrap_err().kind, FaultKind::Reordered);
}

#[test]
fn a_torn_end_is_no_fault_and_one_that_was_followed_must_be_what_is_named() {
    let scene = Scene::with(2);
    let path = scene.segment(1);
    let whole = fs::read(&path).unwrap();
    let long = vec![b'x'; 200_000];
    for torn in [&b"{\"v\":1,\"s"[..], b"\0\0\0\0", b"x\n", b"x\ny", &long] {
        fs::write(&path, [&whole, torn].concat()).unwrap();
        let verified = scene.verify().unwrap();
        assert_eq!((verified.last, verified.torn), (2, torn.len() as u64));
        scene.append(1);
        let verified = scene.verify().unwrap();
        assert_eq!((verified.last, verified.torn, verified.mended), (4, 0, 1));
        let mut text = fs::read(&path).unwrap();
        text[whole.len()] ^= 1;
        fs::write(&path, &text).unwrap();
        assert_eq!(scene.verify().unwrap_err().kind, FaultKind::Torn);
        text.drain(whole.len()..text.windows(7).rposition(|it| it == b"{\"v\":1,").unwrap());
        fs::write(&path, [&whole, &b"x"[..]].concat()).unwrap();
    }
}

#[test]
fn a_record_that_names_torn_bytes_needs_them() {
    let scene = Scene::with(1);
    let path = scene.segment(1);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole, &b"torn"[..]].concat()).unwrap();
    scene.append(1);
    let text = fs::read_to_string(&path).unwrap().replace("torn\n", "");
    fs::write(&path, text).unwrap();
    assert_eq!(scene.verify().unwrap_err().kind, FaultKind::Torn);
}

#[test]
fn the_chain_runs_on_across_segments() {
    let scene = Scene::with(3);
    scene.seal();
    scene.append(2);
    assert_eq!(scene.verify().unwrap().last, 5);
    assert!(scene.segment(4).exists());
    // A segment that nobody has written to, or in which the first record is torn, is gone on with.
    scene.seal();
    fs::write(scene.segment(6), "{\"v\"").unwrap();
    scene.append(1);
    let verified = scene.verify().unwrap();
    assert_eq!((verified.last, verified.mended), (7, 1));
    fs::remove_file(scene.segment(4)).unwrap();
    assert_eq!(scene.verify().unwrap_err().kind, FaultKind::Removed);
}

#[test]
fn truncation_and_regrowth_are_found_with_a_checkpoint() {
    let scene = Scene::with(20);
    let path = scene.segment(1);
    let checkpoint = scene.checkpoint();
    let whole = fs::read_to_string(&path).unwrap();
    scene.append(5);
    assert_eq!(scene.against(&checkpoint).unwrap().last, 25);
    let cut: String = whole.lines().take(15).map(|line| line.to_owned() + "\n").collect();
    fs::write(&path, cut).unwrap();
    assert!(scene.verify().is_ok(), "by itself it is a trail");
    assert_eq!(scene.against(&checkpoint).unwrap_err().kind, FaultKind::Truncated);
    scene.append(20);
    assert_eq!(scene.against(&checkpoint).unwrap_err().kind, FaultKind::Rewritten);
}

#[test]
fn what_was_pruned_is_still_in_the_root_and_a_removal_that_stopped_verifies() {
    let scene = Scene::with(8);
    let eight = scene.checkpoint();
    scene.seal();
    scene.append(2);
    let ten = scene.checkpoint();
    scene.append(1);
    scene.seal();
    scene.append(5);
    let before = scene.checkpoint();
    let (first, second) = (fs::read(scene.segment(1)).unwrap(), fs::read(scene.segment(9)).unwrap());
    let all = scene
        .trail
        .prune(Keep {
            bytes: Some(0),
            age: None,
        })
        .unwrap();
    assert_eq!((all.through, all.segments), (Some(11), 2));
    let after = scene.against(&before).unwrap();
    assert_eq!((after.first, after.last), (12, 18), "two records say what was pruned");
    assert!(
        scene.against(&eight).is_ok(),
        "its tree is a part of the one that is kept"
    );
    assert_eq!(scene.against(&ten).unwrap(), after, "and so is this");
    let nine = Checkpoint { size: 9, ..ten };
    assert_eq!(scene.against(&nine).unwrap_err().kind, FaultKind::Unprovable);
    let wrong = Checkpoint {
        root: Hash::ZERO,
        ..eight
    };
    assert_eq!(scene.against(&wrong).unwrap_err().kind, FaultKind::Rewritten);
    // As if the removal had been stopped after each step.
    fs::write(scene.segment(9), second).unwrap();
    assert_eq!(scene.verify().unwrap().root, after.root);
    fs::write(scene.segment(1), first).unwrap();
    assert_eq!(scene.verify().unwrap().root, after.root);
    // And without a record of it.
    fs::remove_file(scene.segment(1)).unwrap();
    fs::remove_file(scene.segment(9)).unwrap();
    let text = fs::read_to_string(scene.segment(12)).unwrap();
    let kept: String = text
        .lines()
        .filter(|it| !it.contains("audit.pruned"))
        .map(|it| it.to_owned() + "\n")
        .collect();
    fs::write(scene.segment(12), kept).unwrap();
    assert_eq!(scene.verify().unwrap_err().kind, FaultKind::Beginning);
}

#[test]
fn nothing_is_pruned_that_is_young_or_that_does_not_verify() {
    let scene = Scene::with(3);
    scene.seal();
    scene.append(1);
    let keep = |age: u64| Keep {
        age: Some(std::time::Duration::from_secs(age)),
        bytes: None,
    };
    assert_eq!(scene.trail.prune(keep(3600)).unwrap().segments, 0);
    let text = fs::read_to_string(scene.segment(1)).unwrap();
    fs::write(scene.segment(1), text.replace("\"omitted\":1", "\"omitted\":2")).unwrap();
    assert!(matches!(scene.trail.prune(keep(0)), Err(AuditError::Faulty(_))));
    assert!(scene.segment(1).exists());
    fs::write(scene.segment(1), text).unwrap();
    assert_eq!(scene.trail.prune(keep(0)).unwrap().through, Some(3));
    assert_eq!(scene.trail.prune(keep(0)).unwrap().through, None);
}
