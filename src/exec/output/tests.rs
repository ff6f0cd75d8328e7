//! The end of a stream, its parts and its file, against what is known of the whole.

use std::sync::Arc;

use nix::fcntl::OFlag;

use proptest::prelude::*;

use super::super::spill::{Place, tests::policy};
use super::*;
use crate::facts::Spill;
use crate::state::tests::place;

/// What is kept of `chunks`, written and read one after another.
fn kept(cap: usize, chunks: &[&[u8]]) -> CapturedStream {
    let (mut stream, write) = stream(cap);
    for chunk in chunks {
        for piece in chunk.chunks(4096) {
            nix::unistd::write(&write, piece).unwrap();
            stream.read_available().unwrap();
        }
    }
    drop(write);
    stream.read_available().unwrap();
    assert!(stream.fd().is_none(), "the end was seen");
    stream.finish()
}

/// A stream without a file, and the end of its pipe to write to.
fn stream(cap: usize) -> (Stream, OwnedFd) {
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
    let place = Arc::new(Place::new(None, &policy(), "run"));
    (Stream::new(read, cap, SpillFile::new(place, "stdout", 0)), write)
}

#[test]
fn exactly_the_cap_is_not_truncated() {
    let stream = kept(5, &[b"abc", b"de"]);
    assert_eq!(
        (stream.text.as_str(), stream.truncated, stream.bytes),
        ("abcde", false, 5)
    );
}

#[test]
fn the_last_bytes_are_kept_however_they_came() {
    let long: Vec<u8> = (0..300_000_u32).map(|i| b'a' + u8::try_from(i % 26).unwrap()).collect();
    for chunks in [vec![long.as_slice()], long.chunks(7).collect()] {
        let stream = kept(1000, &chunks);
        assert_eq!(stream.text.as_bytes(), &long[long.len() - 1000..]);
        assert!(stream.truncated);
        assert_eq!(stream.bytes, 300_000);
    }
}

#[test]
fn a_character_is_never_split_at_the_cut() {
    let stream = kept(4, &["aa€b".as_bytes()]);
    assert_eq!((stream.text.as_str(), stream.lossy_utf8), ("€b", false));
    let stream = kept(3, &["aa€b".as_bytes()]);
    assert_eq!((stream.text.as_str(), stream.lossy_utf8), ("b", false));
}

#[test]
fn bytes_that_are_no_text_lose_nothing_else() {
    let stream = kept(100, &[b"a\xff\xfe\0b"]);
    assert!(stream.text.starts_with('a') && stream.text.ends_with('b'));
    assert!(stream.lossy_utf8 && stream.binary && !stream.truncated);
}

#[test]
fn a_stray_byte_makes_no_binary_and_a_nul_byte_does() {
    let stray = kept(100, &[b"caf\xe9 au lait"]);
    assert!(stray.lossy_utf8 && !stray.binary);
    let nul = kept(100, &[b"a\0b"]);
    assert!(!nul.lossy_utf8 && nul.binary);
    assert!(kept(100, &[b"abcdef\xff\xff\xff\xff"]).binary);
    assert!(!kept(100, &[b"abcdefg\xff\xff\xff"]).binary);
    assert!(!kept(100, &[]).binary);
}

#[test]
fn a_reader_gets_a_character_only_when_it_is_whole() {
    let (mut stream, write) = stream(100);
    let mut next = 0;
    let mut texts = Vec::new();
    for byte in "a€𝄞b".as_bytes() {
        nix::unistd::write(&write, &[*byte]).unwrap();
        stream.read_available().unwrap();
        let delta = stream.read_from(next);
        assert!(!delta.lossy && !delta.lossy_utf8 && delta.next <= stream.ring.total());
        next = delta.next;
        texts.push(delta.text);
    }
    assert_eq!(texts, ["a", "", "", "€", "", "", "", "𝄞", "b"]);
    assert_eq!(stream.read_from(0).text, "a€𝄞b", "reading takes nothing away");
}

#[test]
fn what_never_becomes_a_character_is_given_out_at_the_end() {
    let (mut stream, write) = stream(100);
    nix::unistd::write(&write, b"a\xe2\x82").unwrap();
    stream.read_available().unwrap();
    assert_eq!(stream.read_from(0).next, 1);
    drop(write);
    stream.read_available().unwrap();
    let end = stream.read_from(1);
    assert_eq!((end.text.as_str(), end.next, end.lossy_utf8), ("\u{fffd}", 3, true));
}

#[test]
fn a_reader_that_comes_too_late_gets_the_whole_window_and_is_told() {
    let (mut stream, write) = stream(4);
    nix::unistd::write(&write, "0€1234".as_bytes()).unwrap();
    stream.read_available().unwrap();
    let late = stream.read_from(1);
    assert_eq!((late.text.as_str(), late.next, late.lossy), ("1234", 8, true));
    assert!(!stream.read_from(4).lossy);
    let early = stream.read_from(100);
    assert_eq!((early.text.as_str(), early.next, early.lossy), ("", 8, false));
}

#[test]
fn a_long_stream_takes_no_more_memory_than_its_limit_and_a_step() {
    let long = vec![b'x'; 5_000_000];
    let (mut stream, write) = stream(64_000);
    for piece in long.chunks(65_536) {
        assert_eq!(nix::unistd::write(&write, piece).unwrap(), piece.len());
        stream.read_available().unwrap();
    }
    assert_eq!(stream.ring.total(), 5_000_000);
    assert!(stream.ring.memory() <= 64_000 + 64 * 1024 + 3 * 4096);
}

/// What is said of a stream of which everything is known.
fn model(bytes: &[u8], cap: usize, offset: usize, ended: bool) -> Part {
    let window = bytes.len().saturating_sub(cap);
    let lossy = offset < window;
    let mut part = &bytes[offset.max(window)..];
    while lossy && part.len() + 3 > bytes.len() - window && matches!(part, [0x80..=0xbf, ..]) {
        part = &part[1..];
    }
    // A last chunk that is no error yet has an incomplete character at its end.
    let last = part.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let begun = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    let held = if begun && !ended { last.len() } else { 0 };
    let part = &part[..part.len() - held];
    let invalid: usize = part.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    Part {
        text: String::from_utf8_lossy(part).into_owned(),
        next: (bytes.len() - held) as u64,
        lossy,
        lossy_utf8: invalid > 0,
        binary: part.contains(&0) || invalid * 10 > part.len() * 3,
        spill_path: None,
    }
}

/// Bytes in which characters of every length and bytes that are none follow one another.
fn mixture() -> impl Strategy<Value = Vec<u8>> {
    let atoms: [&[u8]; 9] = [
        b"a",
        "é".as_bytes(),
        "€".as_bytes(),
        "𝄞".as_bytes(),
        b"\xff",
        b"\x80",
        b"\xe2\x82",
        b"\xf0\x9d",
        b"\0",
    ];
    prop::collection::vec(prop::sample::select(atoms.to_vec()), 0..60).prop_map(|atoms| atoms.concat())
}

/// The same at lengths that fill and overflow every size of the memory.
fn long_mixture() -> impl Strategy<Value = Vec<u8>> {
    (mixture(), 1..60_000_usize).prop_map(|(seed, length)| seed.into_iter().cycle().take(length).collect())
}

/// Writes the chunks one after another and compares every part, the end and the file with the model.
fn check(chunks: &[Vec<u8>], cap: usize, max_spill: u64) -> Result<(), TestCaseError> {
    let state = place();
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
    let run = Arc::new(Place::new(Some(state.path()), &policy(), "run"));
    let mut stream = Stream::new(read, cap, SpillFile::new(run, "stdout", max_spill));
    let (mut all, mut next) = (Vec::new(), 0);
    for chunk in chunks {
        prop_assert_eq!(nix::unistd::write(&write, chunk).unwrap_or(0), chunk.len());
        all.extend_from_slice(chunk);
        stream.read_available().unwrap();
        let delta = stream.read_from(next);
        let mut expected = model(&all, cap, usize::try_from(next).unwrap(), false);
        expected.spill_path = delta.spill_path.clone().filter(|path| path.exists());
        prop_assert_eq!(&delta, &expected);
        next = delta.next;
    }
    drop(write);
    stream.read_available().unwrap();
    prop_assert!(stream.fd().is_none());
    let end = stream.finish();
    let expected = model(&all, cap, 0, true);
    prop_assert_eq!(
        (end.text, end.bytes, end.truncated),
        (expected.text, expected.next, expected.lossy)
    );
    prop_assert_eq!((end.lossy_utf8, end.binary), (expected.lossy_utf8, expected.binary));
    let bytes = max_spill.min(all.len() as u64);
    let said = match bytes {
        _ if !end.truncated => None,
        0 => end.spill.clone(),
        _ if max_spill < all.len() as u64 => Some(Spill::Head { bytes }),
        _ => Some(Spill::Complete { bytes }),
    };
    prop_assert_eq!(end.spill, said);
    if end.truncated && max_spill > 0 {
        let file = std::fs::read(end.spill_path.unwrap()).unwrap();
        prop_assert_eq!(&file[..], &all[..file.len()]);
        prop_assert_eq!(file.len() as u64, bytes);
    } else {
        prop_assert_eq!(end.spill_path, None);
        prop_assert!(!state.path().join("output").exists());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_short_stream_is_told_as_it_is_however_it_comes(
        chunks in prop::collection::vec(mixture().prop_filter("something", |chunk| !chunk.is_empty()), 0..8),
        cap in 1..100_usize,
        max_spill in prop::sample::select(vec![0, 1, 50, 1000]),
    ) {
        check(&chunks, cap, max_spill)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_long_stream_is_told_as_it_is_however_it_comes(
        chunks in prop::collection::vec(long_mixture(), 0..40),
        cap in prop_oneof![1..10_usize, 1..200_000_usize],
        max_spill in prop::sample::select(vec![0, 70_000, 400_000, 10_000_000]),
    ) {
        let chunks: Vec<_> = chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect();
        check(&chunks, cap, max_spill)?;
    }
}
