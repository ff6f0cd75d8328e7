//! Small pieces of text, safe to print.
//!
//! Whatever comes from elsewhere (paths, arguments, what the system says) is shown with its
//! control characters escaped, so that no name of a file can drive the reader's terminal.

use std::ffi::OsStr;
use std::fmt::Write as _;

pub(crate) use ringfence::visible::visible;

/// A path or an argument that is safe to print on one line.
pub(crate) fn shown(text: impl AsRef<OsStr>) -> String {
    visible(&text.as_ref().to_string_lossy())
}

/// What the base64 twin of a text is, when its bytes are no UTF-8 and the text shows them lossily.
pub(crate) fn twin(bytes: &[u8]) -> Option<String> {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    std::str::from_utf8(bytes).is_err().then(|| STANDARD.encode(bytes))
}

/// Several of them, between commas.
pub(crate) fn listed<T: AsRef<OsStr>>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// The word that documents use for a value.
pub(crate) fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value)
        .unwrap_or_default()
        .trim_matches('"')
        .to_owned()
}

/// An argument as it could be typed to a shell.
pub(crate) fn quoted(argument: &OsStr) -> String {
    let text = shown(argument);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// A length of time, in the unit that suits it.
pub(crate) fn milliseconds(ms: u64) -> String {
    match ms {
        ms if ms % 60_000 == 0 && ms > 0 => format!("{} min", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}

/// A table of two columns. Values are safe already.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) text: String,
}

impl Rows {
    const WIDTH: usize = 20;

    /// The heading of a part of the table.
    pub(crate) fn heading(&mut self, text: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        let _ = writeln!(self.text, "{gap}{text}");
    }

    /// A row.
    pub(crate) fn row(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.text, "{name:width$} {value}", width = Self::WIDTH);
    }

    /// What to do about the row before.
    pub(crate) fn advice(&mut self, advice: Option<&str>) {
        if let Some(advice) = advice {
            self.row("", &format!("-> {}", visible(advice)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_sent() {
        assert_eq!(visible("a\u{1b}[2Jb\nc\r\u{7f}\u{9b}"), r"a\u{1b}[2Jb\nc\r\u{7f}\u{9b}");
        assert_eq!(visible("x\u{202e}gpj"), r"x\u{202e}gpj");
        assert_eq!(visible("naïve 文件 \\n"), "naïve 文件 \\n");
        assert_eq!(shown(OsString::from_vec(b"a\xff\x1b".to_vec())), "a\u{fffd}\\u{1b}");
    }

    #[test]
    fn lengths_of_time_are_said_in_their_own_unit() {
        let said: Vec<_> = [120_000, 90_000, 1500, 0].into_iter().map(milliseconds).collect();
        assert_eq!(said, ["2 min", "90 s", "1500 ms", "0 s"]);
    }

    #[test]
    fn arguments_are_shown_as_one_would_type_them() {
        let typed: Vec<_> = ["make", "a b", "", "it's", "--x=1"]
            .iter()
            .map(|word| quoted(word.as_ref()))
            .collect();
        assert_eq!(typed, ["make", "'a b'", "''", r"'it'\''s'", "--x=1"]);
    }
}
