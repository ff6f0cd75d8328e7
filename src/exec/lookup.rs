//! Finding the program, as execvp(3) does, and saying why it was not executed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::spec::ExecSpec;
use crate::error::Error;

/// The search path of a command whose environment has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The paths to try for a program, in order. The child tries them from its working directory.
pub(super) fn candidates(program: &OsStr, env: &[(OsString, OsString)]) -> Vec<OsString> {
    if program.as_bytes().contains(&b'/') {
        return vec![program.to_owned()];
    }
    let path = env
        .iter()
        .find(|(name, _)| name == "PATH")
        .map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value);
    let directories = path.as_bytes().split(|byte| *byte == b':');
    directories
        .map(|directory| {
            // An empty entry is the working directory.
            let mut candidate = if directory.is_empty() {
                b".".to_vec()
            } else {
                directory.to_vec()
            };
            candidate.push(b'/');
            candidate.extend_from_slice(program.as_bytes());
            OsString::from_vec(candidate)
        })
        .collect()
}

/// The error for a program that the kernel did not execute.
pub(super) fn not_executed(spec: &ExecSpec, errno: i32) -> Error {
    let program = spec.argv().first().cloned().unwrap_or_default();
    match errno {
        libc_errno::ENOENT | libc_errno::ENOTDIR if !interpreter_missing(spec) => Error::CommandNotFound { program },
        libc_errno::E2BIG => {
            let strings = spec.strings();
            Error::CommandTooLarge {
                bytes: strings.clone().map(|len| len + 1).sum(),
                longest: strings.max().unwrap_or(0),
            }
        }
        libc_errno::ENOENT => Error::CommandNotExecutable {
            program,
            source: io::Error::other("the interpreter that its first line or its header names does not exist"),
        },
        errno => Error::CommandNotExecutable {
            program,
            source: io::Error::from_raw_os_error(errno),
        },
    }
}

/// Whether the program is there after all, so that what is missing is what would interpret it.
fn interpreter_missing(spec: &ExecSpec) -> bool {
    spec.candidates()
        .iter()
        .any(|candidate| spec.workdir().join(candidate).is_file())
}

/// errno(3) numbers by name, for patterns.
mod libc_errno {
    use nix::errno::Errno;
    pub(super) const ENOENT: i32 = Errno::ENOENT as i32;
    pub(super) const ENOTDIR: i32 = Errno::ENOTDIR as i32;
    pub(super) const E2BIG: i32 = Errno::E2BIG as i32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_slash_is_not_searched_for() {
        assert_eq!(candidates(OsStr::new("./x"), &[]), ["./x"]);
    }

    #[test]
    fn a_bare_name_is_searched_for_in_the_commands_own_path() {
        let env = [("PATH".into(), "/a::/b".into())];
        assert_eq!(candidates(OsStr::new("x"), &env), ["/a/x", "./x", "/b/x"]);
    }
}
