//! Finding the program, as execvp(3) does.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The search path of a command whose environment has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The paths to try for a program, in order. The child tries them from its working directory.
pub(crate) fn candidates(program: &OsStr, env: &[(OsString, OsString)]) -> Vec<OsString> {
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
