//! `--command-file`: a shell text from a file, however long it is.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use ringfence::Error;
use ringfence::exec::MAX_COMMAND;

/// Reads the text of the file, or of standard input for `-`.
///
/// # Errors
/// [`Error::Input`] for a file that cannot be read, has a NUL byte, or is longer than
/// [`MAX_COMMAND`].
pub(crate) fn read(file: &Path) -> Result<OsString, Error> {
    let refused = |reason: String, hint: &str| Error::Input {
        field: "--command-file".to_owned(),
        value: file.into(),
        reason,
        hint: hint.to_owned(),
    };
    let text = text_of(file).map_err(|error| {
        refused(
            format!("it cannot be read: {error}"),
            "name a text file that you may read, or - for standard input",
        )
    })?;
    if text.len() > MAX_COMMAND {
        return Err(refused(
            format!("it has more than {MAX_COMMAND} bytes"),
            "keep long data in a file of its own, and read it from the text",
        ));
    }
    match text.iter().position(|byte| *byte == 0) {
        Some(offset) => Err(refused(
            format!("it has a NUL byte at offset {offset}"),
            "name a shell text; a program is run by its path, after --",
        )),
        None => Ok(OsString::from_vec(text)),
    }
}

fn text_of(file: &Path) -> io::Result<Vec<u8>> {
    // One byte more than is allowed shows that there is more.
    let most = MAX_COMMAND as u64 + 1;
    let mut text = Vec::new();
    if file == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut text)?;
    } else {
        File::open(file)?.take(most).read_to_end(&mut text)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(file: &Path) -> String {
        match read(file) {
            Err(Error::Input {
                field, reason, hint, ..
            }) => {
                assert!(field == "--command-file" && !hint.is_empty());
                reason
            }
            other => panic!("an input error was expected, not {other:?}"),
        }
    }

    #[test]
    fn a_text_is_read_byte_for_byte() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = b"echo \xff\n\n\n".to_vec();
        std::fs::write(file.path(), &text).unwrap();
        assert_eq!(read(file.path()).unwrap(), OsString::from_vec(text));
    }

    #[test]
    fn what_is_no_shell_text_is_refused_with_the_reason() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "echo\0").unwrap();
        assert!(reason(file.path()).contains("offset 4"));
        assert!(reason(Path::new("/")).contains("directory"));
        assert!(reason(Path::new("/no/such/file")).contains("No such file"));
        assert!(reason(Path::new("")).contains("No such file"));
        assert!(reason(Path::new("/dev/zero")).contains("more than"));
    }
}
