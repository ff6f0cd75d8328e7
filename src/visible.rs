//! Text from elsewhere, made safe to show: nothing in it drives a terminal, and nothing in it hides.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

/// Text that is safe to print on one line.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unseen(c) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// The same for bytes: those that are no UTF-8 are shown as `\xff`. `doubled` writes a backslash as two,
/// so that what is shown can be read in one way alone.
#[must_use]
pub fn visible_bytes(text: &OsStr, doubled: bool) -> String {
    let mut safe = String::new();
    for chunk in text.as_bytes().utf8_chunks() {
        let valid = chunk.valid();
        if doubled {
            safe.push_str(&visible(&valid.replace('\\', "\\\\")));
        } else {
            safe.push_str(&visible(valid));
        }
        for byte in chunk.invalid() {
            let _ = write!(safe, "\\x{byte:02x}");
        }
    }
    safe
}

/// Whether it needs an escape to be seen: control characters, separators of lines, what turns the
/// direction of text, what has no width, and what looks like a space and is none.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn what_steers_and_what_hides_is_shown() {
        assert_eq!(visible("a\u{200b}b\u{202e}c\u{e0041}"), r"a\u{200b}b\u{202e}c\u{e0041}");
        for space in [
            "\u{a0}", "\u{1680}", "\u{2003}", "\u{202f}", "\u{205f}", "\u{3000}", "\u{2800}", "\u{fe0f}",
        ] {
            assert!(visible(space).is_ascii(), "{:?}", visible(space));
        }
        assert_eq!(visible("naïve 文件 \\n"), "naïve 文件 \\n");
    }

    #[test]
    fn bytes_can_be_read_in_one_way_alone() {
        let text = OsString::from_vec(b"a\\n\n\xff".to_vec());
        assert_eq!(visible_bytes(&text, false), r"a\n\n\xff");
        assert_eq!(visible_bytes(&text, true), r"a\\n\n\xff");
    }
}
