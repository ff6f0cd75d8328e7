//! A C library that says of each call whether it has to be looked at. Pure.
//!
//! Its calls that change files carry a cookie in the sixth argument register, which none of them
//! uses, and the filter lets the cookie pass: what succeeds is asked about by nobody. Only a call
//! that the kernel refused the way a boundary refuses is made once more without the cookie, and
//! that one waits for the supervisor. A place in the library that is not recognised stays as it
//! is: its calls wait every time, which is slower and never wrong.
//!
//! x86-64 and glibc. On arm64 the register would be x5; musl has one shared place for all calls.

use std::collections::BTreeSet;
use std::ops::Range;

/// Fewer places than this, and the library is not what is expected.
const FEWEST: usize = 20;
const PAGE: usize = 4096;
/// The length of `mov number, %eax; syscall`.
const PLACE: usize = 7;
/// `call`, the instruction's first byte.
const CALL: u8 = 0xe8;

/// Calls whose places are rewritten, the frequent ones first (asm/unistd_64.h).
const CALLS: [u32; 32] = [
    257, 87, 86, 263, 82, 264, 316, 83, 258, 84, 280, 265, 90, 91, 268, 452, 88, 266, 92, 93, 94, 260, 76, 85, 133,
    259, 188, 189, 190, 197, 198, 199,
];

/// The negated errors that read-only mounts and Landlock refuse these calls with, as the low byte
/// of an instruction's operand: EROFS, EACCES, EXDEV, and EBUSY for a name that something is mounted on.
const REFUSALS: [u8; 4] = [0xe2, 0xf3, 0xee, 0xf0];
/// How far before a place a call may stand that makes its thread cancellable meanwhile.
const NEAR: usize = 40;

/// A library that was rewritten.
#[derive(Debug)]
pub(super) struct Patched {
    pub(super) bytes: Vec<u8>,
    /// How many places were rewritten.
    #[cfg_attr(not(test), allow(dead_code, reason = "for whoever looks at one"))]
    pub(super) places: usize,
}

/// Why a library is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsuitable {
    #[error("it is no ELF library for x86-64")]
    NotElf,
    #[error("it has no code segment with room behind it")]
    NoRoom,
    #[error("only {0} of the places that call the kernel were recognised")]
    TooFew(usize),
}

/// The code of a library: where it stands in the file, and the empty rest of its last page.
struct Code {
    text: Range<usize>,
    slack: Range<usize>,
}

/// Rewrites a C library so that its calls carry `cookie`.
pub(super) fn patch(library: &[u8], cookie: u64) -> Result<Patched, Unsuitable> {
    let Code { text, slack } = code(library)?;
    let mut bytes = library.to_vec();
    let shared = shared_part(cookie);
    let mut free = slack.start + shared.len();
    if free > slack.end {
        return Err(Unsuitable::NoRoom);
    }
    bytes[slack.start..free].copy_from_slice(&shared);
    let mut places = 0;
    let found = places_in(library, text);
    for (call, place) in CALLS
        .iter()
        .flat_map(|call| found.iter().filter(move |(found, _)| found == call))
    {
        let stub = stub(*call, free, slack.start, place + PLACE);
        if free + stub.len() > slack.end {
            break;
        }
        bytes[free..free + stub.len()].copy_from_slice(&stub);
        // The load of the number becomes a jump. The call itself stays, for whoever jumps to it.
        bytes[*place] = 0xe9;
        bytes[place + 1..place + 5].copy_from_slice(&distance(place + 5, free));
        free += stub.len();
        places += 1;
    }
    if places < FEWEST {
        Err(Unsuitable::TooFew(places))
    } else {
        Ok(Patched { bytes, places })
    }
}

/// Every place that loads a number and calls the kernel, with the number.
///
/// A place just behind a call of another function is left out: there the library has made the
/// thread cancellable for as long as the kernel works (pthreads(7)), and a cancelled thread is
/// unwound from where it stands, which cannot be in code that no unwinder knows. What stands
/// before the beginning of the place's own function does not count.
fn places_in(library: &[u8], text: Range<usize>) -> Vec<(u32, usize)> {
    let code = &library[text.clone()];
    let entries = entries(library).unwrap_or_default();
    let calls_before = |offset: usize| {
        let near = offset.saturating_sub(NEAR);
        let entry = entries.range(..=text.start + offset).next_back();
        let own = entry.map_or(near, |entry| near.max(entry.saturating_sub(text.start)));
        code[own..offset].contains(&CALL)
    };
    let at = |(offset, bytes): (usize, &[u8])| match *bytes {
        [0xb8, a, b, c, d, 0x0f, 0x05] if !calls_before(offset) => {
            Some((u32::from_le_bytes([a, b, c, d]), text.start + offset))
        }
        _ => None,
    };
    code.windows(PLACE).enumerate().filter_map(at).collect()
}

/// What every stub calls: the call with the cookie, and once more with the error when refused.
fn shared_part(cookie: u64) -> Vec<u8> {
    let mut code = vec![0x49, 0xb9]; // movabs cookie, %r9
    code.extend(cookie.to_le_bytes());
    code.extend([0x50, 0x0f, 0x05]); // push %rax; syscall
    let tests = REFUSALS.len();
    for (number, error) in REFUSALS.into_iter().enumerate() {
        // cmp $error, %rax; je over the remaining tests and the return
        let over = u8::try_from((tests - 1 - number) * 6 + 5).unwrap_or(0);
        code.extend([0x48, 0x83, 0xf8, error, 0x74, over]);
    }
    code.extend([0x48, 0x83, 0xc4, 0x08, 0xc3]); // add $8, %rsp; ret
    code.extend([0x49, 0x89, 0xc1, 0x58, 0x0f, 0x05, 0xc3]); // mov %rax, %r9; pop %rax; syscall; ret
    code
}

/// A place's own part: keeps the register and the red zone, and goes back behind the call.
fn stub(call: u32, at: usize, shared: usize, back: usize) -> Vec<u8> {
    let mut code = vec![0x48, 0x8d, 0x64, 0x24, 0x80, 0x41, 0x51, 0xb8]; // lea -128(%rsp), %rsp; push %r9; mov call, %eax
    code.extend(call.to_le_bytes());
    code.push(0xe8); // call shared
    code.extend(distance(at + code.len() + 4, shared));
    code.extend([0x41, 0x59, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0, 0xe9]); // pop %r9; lea 128(%rsp), %rsp; jmp back
    code.extend(distance(at + code.len() + 4, back));
    code
}

/// A jump's operand. Offsets of one segment differ as its addresses do.
fn distance(from: usize, to: usize) -> [u8; 4] {
    // Two's complement in 32 bits: both lie in one code segment, far below 2 GiB.
    let [a, b, c, d, ..] = to.wrapping_sub(from).to_le_bytes();
    [a, b, c, d]
}

/// Where exported functions begin, as file offsets: the dynamic symbols that are code (elf(5)). A
/// library without a section table, or whose code is loaded at other addresses, tells of none.
fn entries(library: &[u8]) -> Option<BTreeSet<usize>> {
    const DYNAMIC_SYMBOLS: usize = 11;
    const SYMBOL: usize = 24;
    const FUNCTION: u8 = 2;
    let number = |at: usize, bytes: usize| {
        let field = library.get(at..at.checked_add(bytes)?)?;
        usize::try_from(
            field
                .iter()
                .rev()
                .fold(0, |sum: u64, byte| (sum << 8) | u64::from(*byte)),
        )
        .ok()
    };
    let (sections, size, count) = (number(40, 8)?, number(58, 2)?, number(60, 2)?);
    let table = (0..count)
        .map(|i| sections + i * size)
        .find(|header| number(header + 4, 4) == Some(DYNAMIC_SYMBOLS))?;
    let symbols = number(table + 24, 8)?..number(table + 24, 8)?.checked_add(number(table + 32, 8)?)?;
    let entry = |symbol: &[u8]| {
        let (section, address) = (symbol[6..8].first_chunk()?, symbol[8..16].first_chunk()?);
        let section = sections + usize::from(u16::from_le_bytes(*section)) * size;
        let same = number(section + 16, 8)? == number(section + 24, 8)?;
        let address = usize::try_from(u64::from_le_bytes(*address)).ok()?;
        (symbol[4] & 0xf == FUNCTION && same).then_some(address)
    };
    Some(library.get(symbols)?.chunks_exact(SYMBOL).filter_map(entry).collect())
}

fn code(library: &[u8]) -> Result<Code, Unsuitable> {
    const LOAD: u64 = 1;
    const EXECUTABLE: u64 = 1;
    let number = |at: usize, bytes: usize| -> Result<u64, Unsuitable> {
        let field = library.get(at..at + bytes).ok_or(Unsuitable::NotElf)?;
        Ok(field.iter().rev().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)))
    };
    let index = |value: u64| usize::try_from(value).map_err(|_| Unsuitable::NotElf);
    // elf(5): class 64, little-endian, ET_DYN, EM_X86_64.
    if !library.starts_with(b"\x7fELF\x02\x01") || number(16, 2)? != 3 || number(18, 2)? != 62 {
        return Err(Unsuitable::NotElf);
    }
    let (headers, size, count) = (index(number(32, 8)?)?, index(number(54, 2)?)?, index(number(56, 2)?)?);
    let mut found = None;
    let mut others = Vec::new();
    for header in (0..count).map(|i| headers + i * size) {
        if number(header, 4)? != LOAD {
            continue;
        }
        let (start, length) = (index(number(header + 8, 8)?)?, index(number(header + 32, 8)?)?);
        let end = start
            .checked_add(length)
            .filter(|end| *end <= library.len())
            .ok_or(Unsuitable::NotElf)?;
        if number(header + 4, 4)? & EXECUTABLE == 0 {
            others.push(start);
        } else if found.replace(start..end).is_some() {
            return Err(Unsuitable::NoRoom);
        }
    }
    let text = found.ok_or(Unsuitable::NoRoom)?;
    let slack = text.end..text.end.next_multiple_of(PAGE);
    let empty = library
        .get(slack.clone())
        .is_some_and(|rest| rest.iter().all(|byte| *byte == 0));
    if empty && !others.iter().any(|start| slack.contains(start)) {
        Ok(Code { text, slack })
    } else {
        Err(Unsuitable::NoRoom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOKIE: u64 = 0x1122_3344_5566_7788;

    fn host() -> Vec<u8> {
        std::fs::read("/lib/x86_64-linux-gnu/libc.so.6").unwrap()
    }

    #[test]
    fn the_hosts_library_has_enough_places_and_keeps_its_size() {
        let library = host();
        let patched = patch(&library, COOKIE).unwrap();
        assert!(patched.places >= FEWEST);
        assert_eq!(patched.bytes.len(), library.len());
    }

    #[test]
    fn the_calls_that_most_work_is_made_of_are_among_the_places() {
        let library = host();
        let patched = patch(&library, COOKIE).unwrap();
        let places = places_in(&library, code(&library).unwrap().text);
        for call in [257, 87, 86, 263, 82, 83, 84, 90] {
            let mut rewritten = places.iter().filter(|(found, _)| *found == call);
            assert!(rewritten.any(|(_, place)| patched.bytes[*place] == 0xe9), "call {call}");
        }
    }

    #[test]
    fn nothing_changes_but_the_loads_and_the_empty_rest_of_the_page() {
        let library = host();
        let patched = patch(&library, COOKIE).unwrap();
        let Code { slack, .. } = code(&library).unwrap();
        let mut changed = 0;
        for (at, (old, new)) in library.iter().zip(&patched.bytes).enumerate() {
            if old != new && !slack.contains(&at) {
                changed += 1;
            }
        }
        assert!(
            changed <= patched.places * 5,
            "{changed} bytes at {} places",
            patched.places
        );
    }

    #[test]
    fn a_library_is_patched_once() {
        let once = patch(&host(), COOKIE).unwrap().bytes;
        assert_eq!(patch(&once, COOKIE).map(|it| it.places), Err(Unsuitable::NoRoom));
    }

    #[test]
    fn what_is_no_library_is_left_alone() {
        assert_eq!(
            patch(b"#!/bin/sh\n", COOKIE).map(|it| it.places),
            Err(Unsuitable::NotElf)
        );
        assert_eq!(
            patch(&host()[..1000], COOKIE).map(|it| it.places),
            Err(Unsuitable::NotElf)
        );
        let mut elsewhere = host();
        elsewhere[18] = 183; // EM_AARCH64
        assert_eq!(patch(&elsewhere, COOKIE).map(|it| it.places), Err(Unsuitable::NotElf));
    }
}
