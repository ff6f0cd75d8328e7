//! A denial read from a failed command's own words: conservative, and labelled as inferred.

use crate::facts::{CapturedStream, Exit};

/// Whether a command that failed said on standard error what refusals of its boundary read like.
///
/// A success is never a denial here, nor is a death by signal: both are known to happen with such
/// words on the screen.
pub(super) fn speaks_of_a_refusal(exit: Exit, stderr: &CapturedStream, dialect: &[&str]) -> bool {
    let failed = matches!(exit, Exit::Code(code) if code != 0);
    failed && {
        let words = stderr.text.to_lowercase();
        dialect
            .iter()
            .any(|signature| words.contains(&signature.to_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(exit: Exit, words: &str) -> bool {
        let stderr = CapturedStream {
            text: words.to_owned(),
            ..CapturedStream::default()
        };
        speaks_of_a_refusal(exit, &stderr, &["Read-only file system"])
    }

    #[test]
    fn a_failure_that_names_the_boundary_is_a_denial() {
        assert!(inferred(
            Exit::Code(1),
            "touch: cannot touch '/etc/x': Read-only file system\n"
        ));
    }

    #[test]
    fn success_and_death_by_signal_are_no_denials() {
        assert!(!inferred(Exit::Code(0), "Read-only file system"));
        assert!(!inferred(Exit::Signal(9), "Read-only file system"));
    }

    #[test]
    fn the_words_of_another_boundary_are_no_denial() {
        assert!(!inferred(Exit::Code(1), "cat: /etc/shadow: Permission denied"));
        assert!(!inferred(Exit::Code(1), "ringfence: cannot apply ruleset"));
    }
}
