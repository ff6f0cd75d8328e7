//! Shell texts that are too long for an argument of execve(2), which takes 128 KiB.
//!
//! `bash -c TEXT` with such a text becomes `bash -c LOADER`, and the text waits in a sealed memfd
//! (in a pipe where there is none), which nobody can change any more. For the text this is the same: `$0`, the arguments, standard
//! input, `$BASH_EXECUTION_STRING`, signals and the exit status are those of `bash -c TEXT`. (But for a
//! backslash as the very last byte: bash drops it with `-c` and takes it for itself here.)
//!
//! The loader reads with `read -u`, not from `/dev/fd`: it needs no /proc, and unlike `$(<…)` it
//! keeps newlines at the end, which belong to a here-document that nothing closes. The end of the
//! text is the NUL byte that it cannot contain. The descriptor is closed before the first line of
//! the text, so nothing that the text starts ever has it.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::request::MAX_COMMAND;
use crate::error::Error;
use crate::facts::LongCommand;

/// What other systems have, for the tests of it.
#[cfg(all(test, target_os = "linux"))]
#[path = "long/pipe.rs"]
mod pipe;
#[cfg(target_os = "linux")]
#[path = "long/memfd.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "long/pipe.rs"]
mod system;

/// The longest text that is handed over as an argument, in bytes.
const LONGEST_ARGUMENT: usize = 120 * 1024;

/// How much of a long text a report shows, in bytes.
const SHOWN: usize = 4096;

/// A command whose text is not among its arguments.
#[derive(Debug)]
pub(super) struct Carried {
    /// What is executed.
    pub(super) executed: Vec<OsString>,
    /// What was asked for, with the beginning of the text.
    pub(super) shown: Vec<OsString>,
    /// How long the text is.
    pub(super) length: LongCommand,
    /// What the text is read from.
    pub(super) fd: OwnedFd,
}

/// Puts the text of `bash -c TEXT …` aside when it is too long for an argument.
///
/// # Errors
/// [`Error::Input`] for a text over [`MAX_COMMAND`]; the operating system's.
pub(super) fn carry(argv: &[OsString]) -> Result<Option<Carried>, Error> {
    let Some((place, text)) = long_text(argv) else {
        return Ok(None);
    };
    if text.len() > MAX_COMMAND {
        return Err(Error::input(
            "the shell text",
            beginning(text),
            format!("it has {} bytes, and {MAX_COMMAND} are the most", text.len()),
            "pass long data in a file or on standard input",
        ));
    }
    let fd = system::aside(text.as_bytes()).map_err(|source| Error::Host {
        doing: "could not put a long shell text aside",
        source,
    })?;
    let replaced = |by: OsString| {
        let mut argv = argv.to_vec();
        argv[place] = by;
        argv
    };
    let start = beginning(text);
    Ok(Some(Carried {
        executed: replaced(loader(fd.as_raw_fd()).into()),
        length: LongCommand {
            bytes: text.len(),
            shown: start.len(),
        },
        shown: replaced(start),
        fd,
    }))
}

/// The text of `bash -c TEXT` or `bash -c -- TEXT`, and its place, when it is too long.
fn long_text(argv: &[OsString]) -> Option<(usize, &OsStr)> {
    let bash = Path::new(argv.first()?).file_name().is_some_and(|name| name == "bash");
    let place = if argv.get(2)? == "--" { 3 } else { 2 };
    let text = argv.get(place)?;
    (bash && argv[1] == "-c" && text.len() > LONGEST_ARGUMENT).then_some((place, text))
}

/// The beginning of a text, for messages and reports; a character is not cut in two.
pub(super) fn beginning(text: &OsStr) -> OsString {
    let bytes = text.as_bytes();
    let mut end = bytes.len().min(SHOWN);
    if let Some(text) = text.to_str() {
        while !text.is_char_boundary(end) {
            end -= 1;
        }
    }
    OsString::from_vec(bytes[..end].to_vec())
}

/// What bash is given in place of the text. An exported variable of that name would put the whole text
/// into the environment of every program it starts, which execve(2) refuses.
fn loader(fd: i32) -> String {
    format!(
        "export -n BASH_EXECUTION_STRING; IFS= read -r -d '' -u {fd} BASH_EXECUTION_STRING || exit 125; \
         export -n BASH_EXECUTION_STRING; exec {fd}<&-; eval -- \"$BASH_EXECUTION_STRING\""
    )
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_text_in_a_pipe_is_read_whole_whatever_its_length() {
        for length in [0, 1, 4096, 1 << 20] {
            let text = vec![b'x'; length];
            let mut file = File::from(pipe::aside(&text).unwrap());
            let mut there = Vec::new();
            std::io::Read::read_to_end(&mut file, &mut there).unwrap();
            assert_eq!(there, [text.as_slice(), &[0]].concat());
        }
        // Nobody reads: the thread that writes ends.
        drop(pipe::aside(&vec![b'x'; 1 << 20]).unwrap());
    }

    fn argv(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_text_that_fits_and_another_program_are_left_as_they_are() {
        let long = "x".repeat(LONGEST_ARGUMENT + 1);
        let fits = "x".repeat(LONGEST_ARGUMENT);
        for argv in [
            argv(&["bash", "-c", &fits]),
            argv(&["sh", "-c", &long]),
            argv(&["bash", "-x", &long]),
            argv(&["bash", &long]),
            argv(&["true"]),
        ] {
            assert!(carry(&argv).unwrap().is_none(), "{:?}", argv.first());
        }
    }

    #[test]
    fn a_long_text_is_put_aside_byte_for_byte_and_can_no_longer_be_changed() {
        let text = "é".repeat(LONGEST_ARGUMENT);
        let carried = carry(&argv(&["/bin/bash", "-c", &text, "name", "arg"]))
            .unwrap()
            .unwrap();
        let file = File::from(carried.fd.try_clone().unwrap());
        let mut there = vec![0; text.len() + 1];
        file.read_exact_at(&mut there, 0).unwrap();
        assert_eq!(there, [text.as_bytes(), &[0]].concat());
        assert!(file.write_at(b"x", 0).is_err() && file.set_len(0).is_err());
        assert_eq!(carried.executed[3..], argv(&["name", "arg"]));
        let carried = carry(&argv(&["bash", "-c", "--", &text])).unwrap().unwrap();
        assert_eq!(carried.executed[..3], argv(&["bash", "-c", "--"]));
        assert_eq!(carried.length.bytes, text.len());
        assert!(carried.executed[2].len() < 300);
    }

    #[test]
    fn a_report_gets_the_beginning_and_the_length() {
        let text = format!("a{}", "é".repeat(LONGEST_ARGUMENT));
        let carried = carry(&argv(&["bash", "-c", &text])).unwrap().unwrap();
        assert_eq!(carried.length.bytes, text.len());
        assert_eq!(carried.length.shown, SHOWN - 1, "no character is cut in two");
        assert_eq!(carried.shown[2].to_str().unwrap(), &text[..SHOWN - 1]);
    }

    #[test]
    fn a_text_without_bounds_is_refused_and_not_repeated_whole() {
        let text = "x".repeat(MAX_COMMAND + 1);
        let error = carry(&argv(&["bash", "-c", &text])).unwrap_err();
        assert!(matches!(error, Error::Input { .. }));
        assert!(error.to_string().len() < 2 * SHOWN);
    }
}
