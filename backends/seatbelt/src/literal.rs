//! Paths as string literals of the profile language.
//!
//! A literal that could end early would let a file's name write rules. So the two characters that mean
//! something inside one are escaped, and what would need any other escape is refused: which of those
//! the compiler of profiles knows is written down nowhere.

use std::path::Path;

/// The longest path of macOS (`PATH_MAX`), its final NUL byte not counted, in bytes.
const LONGEST: usize = 1023;

/// The literal of an absolute path, in its quotes.
///
/// # Errors
/// Why there is none, in words.
pub(crate) fn of(path: &Path) -> Result<String, &'static str> {
    let text = path.to_str().ok_or("it is not UTF-8")?;
    if !path.is_absolute() {
        return Err("it is not absolute");
    }
    if text.len() > LONGEST {
        return Err("it is longer than 1023 bytes");
    }
    if text.chars().any(char::is_control) {
        return Err("it has a line break or another control character");
    }
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            literal.push('\\');
        }
        literal.push(c);
    }
    literal.push('"');
    Ok(literal)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn quotes_and_backslashes_are_escaped_and_all_else_stands_as_it_is() {
        for (path, literal) in [
            ("/w", r#""/w""#),
            (r#"/a"b"#, r#""/a\"b""#),
            (r"/a\b", r#""/a\\b""#),
            (r"/ends with \", r#""/ends with \\""#),
            ("/(deny) ; ü 語 '", "\"/(deny) ; ü 語 '\""),
        ] {
            assert_eq!(of(Path::new(path)).as_deref(), Ok(literal));
        }
    }

    #[test]
    fn what_no_literal_can_hold_is_refused() {
        let long = format!("/{}", "a".repeat(LONGEST));
        let refused: [&[u8]; 8] = [
            b"/a\nb",
            b"/a\rb",
            b"/a\tb",
            b"/a\x1bb",
            b"/a\x7f",
            b"/a\xff",
            b"relative",
            long.as_bytes(),
        ];
        for bytes in refused {
            assert!(of(Path::new(OsStr::from_bytes(bytes))).is_err(), "{bytes:?}");
        }
    }
}
