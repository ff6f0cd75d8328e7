//! Every line of a long trail, and every byte of a short one.

use std::path::Path;

use super::*;

/// A whole trail in memory, as [`Walker`] takes it.
fn lines_of(scene: &Scene) -> Vec<Vec<u8>> {
    let text = fs::read(scene.segment(1)).unwrap();
    let lines = text.strip_suffix(b"\n").unwrap().split(|byte| *byte == b'\n');
    lines.map(<[u8]>::to_vec).collect()
}

fn take(walker: &mut Walker<'_>, number: u64, line: &[u8]) -> Result<(), Fault> {
    walker.take(&Piece {
        segment: 1,
        number,
        bytes: line,
        whole: true,
        ends: true,
    })
}

/// What is found when a trail goes on like this after what a walker has seen, and should have the root.
fn found(walker: &Walker<'_>, seen: usize, next: &[&[u8]], root: Hash) -> bool {
    let mut walker = walker.clone();
    for (line, number) in next.iter().zip(seen as u64 + 1..) {
        if take(&mut walker, number, line).is_err() {
            return true;
        }
    }
    // To the end of the trail, where nothing follows that could tell.
    walker.verified_root() != root
}

impl Walker<'_> {
    fn verified_root(&self) -> Hash {
        self.clone().finish(0).map_or(Hash::ZERO, |walk| walk.verified.root)
    }
}

#[test]
fn every_change_removal_and_exchange_in_ten_thousand_lines_is_found() {
    let scene = Scene::with(10_000);
    let lines = lines_of(&scene);
    assert_eq!(lines.len(), 10_000);
    let root = scene.checkpoint().root;
    let mut walker = Walker::new(1, &[]);
    for (at, line) in lines.iter().enumerate() {
        // Two lines more tell; at the end there are none, and the root does.
        let after: Vec<&[u8]> = lines[at + 1..].iter().take(2).map(Vec::as_slice).collect();
        for sample in 0..5 {
            let mut changed = line.clone();
            let place = (at * 7 + sample * 101) % line.len();
            changed[place] ^= 1 << (at % 8);
            let mut lines: Vec<&[u8]> = changed.split(|byte| *byte == b'\n').collect();
            lines.extend(&after);
            assert!(found(&walker, at, &lines, root), "line {}, byte {place}", at + 1);
        }
        assert!(found(&walker, at, &after, root), "line {} removed", at + 1);
        if let Some((next, rest)) = after.split_first() {
            let exchanged = [&[*next, line.as_slice()], rest].concat();
            assert!(
                found(&walker, at, &exchanged, root),
                "line {} and the next exchanged",
                at + 1
            );
        }
        let twice = [&[line.as_slice(), line.as_slice()], after.as_slice()].concat();
        assert!(found(&walker, at, &twice, root), "line {} twice", at + 1);
        take(&mut walker, at as u64 + 1, line).unwrap();
    }
    assert_eq!(walker.verified_root(), root, "unchanged it is the same trail");
}

#[test]
fn a_cut_of_a_long_trail_after_any_line_is_found_with_the_checkpoint() {
    let scene = Scene::with(10_000);
    let checkpoint = scene.checkpoint();
    let mut walker = Walker::new(1, &[]);
    for (line, number) in lines_of(&scene).iter().zip(1..) {
        let walk = walker.clone().finish(0).unwrap();
        assert_eq!(walk.continues(&checkpoint).unwrap_err().kind, FaultKind::Truncated);
        take(&mut walker, number, line).unwrap();
    }
}

/// Puts a new file in place: writing over one anew makes some file systems go to the disk.
fn put(path: &Path, content: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, content).unwrap();
}

#[test]
fn every_byte_of_a_short_trail_counts() {
    let scene = Scene::with(4);
    let path = scene.segment(1);
    let whole = fs::read(&path).unwrap();
    let checkpoint = scene.checkpoint();
    for at in 0..whole.len() {
        for flip in [1, 0x20, 0x80] {
            let mut changed = whole.clone();
            changed[at] ^= flip;
            put(&path, &changed);
            assert!(scene.against(&checkpoint).is_err(), "byte {at}");
        }
        put(&path, &whole[..at]);
        let found = scene.against(&checkpoint);
        assert_eq!(found.unwrap_err().kind, FaultKind::Truncated, "cut at {at}");
    }
}

#[test]
fn a_crash_at_any_byte_leaves_a_trail_that_verifies_and_can_be_gone_on_with() {
    let scene = Scene::with(3);
    let path = scene.segment(1);
    let whole = fs::read(&path).unwrap();
    let last = whole[..whole.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    for at in 0..=whole.len() {
        put(&path, &whole[..at]);
        let lines = whole[..at].split(|byte| *byte == b'\n').count() as u64 - 1;
        let verified = scene.verify().unwrap();
        assert_eq!(verified.last, lines, "cut at {at}");
        let rest = at as u64
            - whole[..at]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |it| it as u64 + 1);
        assert_eq!(verified.torn, rest, "cut at {at}");
        scene.append(1);
        let verified = scene.verify().unwrap();
        assert_eq!(verified.torn, 0);
        // Only the newline was missing: the record counts. Otherwise one more names what is torn.
        let complete = whole.get(at) == Some(&b'\n');
        let more = if rest == 0 { 1 } else { 2 };
        assert_eq!(verified.last, lines + more, "cut at {at}");
        assert_eq!(verified.mended, u64::from(rest > 0 && !complete), "cut at {at}");
    }
    // Pages that were never written are NULs.
    for length in [1, 100, whole.len() - last] {
        let mut text = whole[..last].to_vec();
        text.resize(last + length, 0);
        put(&path, &text);
        scene.append(1);
        assert_eq!(scene.verify().unwrap().mended, 1);
    }
}
