//! Who is left of a run: counted, and killed, by its reaper.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long};

use crate::raw::{address, call, close, int, kill, open, read};

/// How many processes the namespace has besides this one, its first. None when /proc does not tell.
pub(crate) fn others() -> Option<u32> {
    let fd = open(c"/proc")?;
    let mut count: u32 = 0;
    // Aligned as the records are.
    let mut records = [0_u64; 512];
    loop {
        let size = c_long::try_from(size_of_val(&records)).unwrap_or(0);
        // SAFETY: a live buffer of that size (getdents64(2)).
        let got = unsafe {
            call(
                libc::SYS_getdents64,
                [int(fd), address(records.as_mut_ptr()), size, 0, 0, 0],
            )
        };
        let Ok(got) = usize::try_from(got) else {
            close(fd);
            return None;
        };
        if got == 0 {
            break;
        }
        let mut at = 0;
        while at < got {
            // SAFETY: the kernel wrote whole records up to `got`: a length at 16, a type, and a name at 19.
            let (length, first) = unsafe {
                let record = records.as_ptr().cast::<u8>().add(at);
                (record.add(16).cast::<[u8; 2]>().read(), record.add(19).read())
            };
            if first.is_ascii_digit() {
                count = count.saturating_add(1);
            }
            at += usize::from(u16::from_ne_bytes(length)).max(1);
        }
    }
    close(fd);
    Some(count.saturating_sub(1))
}

/// Whether there was anybody to kill.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kill {
    Sent,
    Impossible,
}

/// Kills the children of this process, as /proc lists them. Theirs come to it when they have died.
///
/// Until a child is waited for, its number names nobody else.
pub(crate) fn kill_children(command: c_int) -> Kill {
    let Some(fd) = open(c"/proc/thread-self/children") else {
        // Without the list, the command and those who stayed in its group.
        let group = kill(-command);
        return if kill(command) || group {
            Kill::Sent
        } else {
            Kill::Impossible
        };
    };
    let mut sent = Kill::Impossible;
    let mut pid: c_int = 0;
    let mut bytes = [0_u8; 4096];
    loop {
        let got = read(fd, &mut bytes);
        let list = bytes.get(..got).unwrap_or_default();
        for byte in list {
            if byte.is_ascii_digit() {
                pid = pid.wrapping_mul(10).wrapping_add(c_int::from(byte - b'0'));
            } else {
                if pid > 0 && kill(pid) {
                    sent = Kill::Sent;
                }
                pid = 0;
            }
        }
        if list.is_empty() {
            break;
        }
    }
    close(fd);
    sent
}
