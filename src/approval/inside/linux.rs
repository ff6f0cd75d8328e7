//! What processes were started with, from proc(5).

use std::io::Read;
use std::os::unix::fs::MetadataExt;

/// As many processes above one are asked, and no more.
const DEEPEST: usize = 256;

/// The value of the variable in the nearest process above this one that was started with it. A command
/// can start another without it; so a process above that is this very program, running a command, counts
/// as well.
pub(super) fn above(name: &str) -> Option<String> {
    let own = std::fs::metadata("/proc/self/exe").ok();
    let mut pid = nix::unistd::getppid().as_raw();
    for _ in 0..DEEPEST {
        // The first of a namespace may be either.
        if pid < 1 {
            return None;
        }
        if let Some(value) = value_in(&environment(&pid.to_string()), name) {
            return Some(value);
        }
        let program = std::fs::metadata(format!("/proc/{pid}/exe")).ok();
        let same = own
            .as_ref()
            .zip(program)
            .is_some_and(|(own, it)| (own.dev(), own.ino()) == (it.dev(), it.ino()));
        if same && runs_something(pid) {
            return Some(format!("of the process {pid}"));
        }
        pid = parent(pid)?;
    }
    None
}

/// Whether the words that this program was started with are those for running a command. A retry is none
/// of them: beneath it there may be the program that it asks, whose answer is welcome.
fn runs_something(pid: i32) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let verb = words.split(|byte| *byte == 0).nth(1);
    verb.is_some_and(|verb| [&b"run"[..], b"shell"].contains(&verb))
}

/// The variable `name` of some process that was started with all of these.
pub(super) fn with(wanted: &[(&str, &str)], name: &str) -> Option<String> {
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let pid = entry.file_name();
        let Some(pid) = pid.to_str().filter(|it| it.bytes().all(|byte| byte.is_ascii_digit())) else {
            continue;
        };
        let environment = environment(pid);
        let fits = |(name, value): &(&str, &str)| value_in(&environment, name).is_some_and(|it| it == *value);
        if wanted.iter().all(fits) {
            return Some(value_in(&environment, name).unwrap_or_default());
        }
    }
    None
}

/// Empty for a process that is not ours to look at.
fn environment(pid: &str) -> Vec<u8> {
    let mut all = Vec::new();
    if let Ok(file) = std::fs::File::open(format!("/proc/{pid}/environ")) {
        let _ = file.take(4 * 1024 * 1024).read_to_end(&mut all);
    }
    all
}

fn value_in(environment: &[u8], name: &str) -> Option<String> {
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    })
}

fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may contain anything, brackets and spaces too.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = b"XA=1\0A=2\0AB=3\0";
        assert_eq!(value_in(environment, "A").as_deref(), Some("2"));
        assert_eq!(value_in(environment, "B"), None);
    }

    #[test]
    fn the_process_above_is_known() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(parent(own), Some(nix::unistd::getppid().as_raw()));
    }
}
