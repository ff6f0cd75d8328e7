//! Finding secrets in a text.

use super::{MARK, holds_a_password, is_user_option, names_a_secret, shapes};

/// The text, secrets replaced.
pub(super) fn text(text: &str) -> String {
    let mut scan = Scan {
        text,
        at: 0,
        out: String::with_capacity(text.len()),
        quote: None,
    };
    while scan.at < text.len() {
        scan.step();
    }
    scan.out
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    out: String,
    /// The quote that is open, and where its content begins.
    quote: Option<(u8, usize)>,
}

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn keep(&mut self, length: usize) {
        self.out.push_str(&self.text[self.at..self.at + length]);
        self.at += length;
    }

    fn replace(&mut self, length: usize) {
        if length > 0 {
            self.out.push_str(MARK);
        }
        self.at += length;
    }

    fn step(&mut self) {
        let rest = self.rest();
        if let Some(length) = shapes::private_key(rest) {
            return self.replace(length);
        }
        if rest.starts_with("://") {
            self.keep(3);
            if let Some(length) = shapes::user_info(&self.out, self.rest()) {
                self.replace(length);
            }
            return;
        }
        let word = word_length(rest);
        if word > 0 {
            return self.word(word);
        }
        let Some(c) = rest.chars().next() else { return };
        if c == '\\' {
            // What comes after it opens and closes nothing.
            let escaped = rest[1..].chars().next().filter(|c| !c.is_ascii_alphanumeric());
            return self.keep(1 + escaped.map_or(0, char::len_utf8));
        }
        if let '\'' | '"' = c {
            let mark = rest.as_bytes()[0];
            self.quote = match self.quote {
                None => Some((mark, self.at + 1)),
                Some((open, _)) if open == mark => None,
                other => other,
            };
        }
        self.keep(c.len_utf8());
    }

    /// A stretch that may be a name, or a secret itself.
    fn word(&mut self, length: usize) {
        let word = &self.rest()[..length];
        if let Some((before, secret)) = shapes::token(self.rest(), length) {
            self.keep(before);
            return self.replace(secret);
        }
        let began = self.at;
        self.keep(length);
        if is_user_option(word) {
            let blank = blanks(self.rest());
            let value = self.value_length(blank, began);
            if blank > 0 && holds_a_password(&self.rest()[blank..blank + value]) {
                self.keep(blank);
                self.replace(value);
            }
        } else if matches!(word, "Bearer" | "bearer" | "Basic" | "basic") {
            let blank = blanks(self.rest());
            let value = self.value_length(blank, began);
            if blank > 0 && value >= 8 {
                self.keep(blank);
                self.replace(value);
            }
        } else if names_a_secret(word) {
            self.named(word, began);
        }
    }

    /// What follows a name that names a secret.
    fn named(&mut self, word: &str, began: usize) {
        let rest = self.rest();
        if rest.starts_with('=') {
            self.keep(1);
            let value = self.value_length(0, began);
            return self.replace(value);
        }
        if word.starts_with('-') {
            let blank = blanks(rest);
            if blank > 0 {
                self.keep(blank);
                let value = self.value_length(0, began);
                self.replace(value);
            }
            return;
        }
        // `"name": value` and `Name: value`. A key of this bare name is most often no secret.
        let closing = rest.len() - rest.trim_start_matches(['\\', '"', '\'']).len();
        let blank = blanks(&rest[closing..]);
        if !rest[closing + blank..].starts_with(':') || word.eq_ignore_ascii_case("key") {
            return;
        }
        let after = closing + blank + 1;
        let lead = after + blanks(&rest[after..]);
        let is_header = ["authorization", "cookie"]
            .iter()
            .any(|end| word.to_ascii_lowercase().ends_with(end));
        if rest
            .as_bytes()
            .first()
            .is_some_and(|it| self.quote.is_some_and(|(open, _)| open == *it))
        {
            self.quote = None;
        }
        self.keep(lead);
        let value = if is_header && closing == 0 {
            self.line_length()
        } else {
            self.quoted_length().unwrap_or_else(|| self.value_length(0, began))
        };
        self.replace(value);
    }

    /// The length of a string with its quotes, where one begins here and ends.
    fn quoted_length(&self) -> Option<usize> {
        let rest = self.rest();
        if let Some(after) = rest.strip_prefix(MARK)
            && after.starts_with([',', '}', ']'])
        {
            return Some(MARK.len());
        }
        let begin = ["\\\"", "\"", "'"].into_iter().find(|quote| rest.starts_with(quote))?;
        let mut from = begin.len();
        loop {
            let at = from + rest[from..].find(begin)?;
            if begin.len() == 2 || !rest[..at].ends_with('\\') {
                return Some(at + begin.len());
            }
            from = at + 1;
        }
    }

    /// To the end of the line, or of the quote that is open.
    fn line_length(&self) -> usize {
        let rest = self.rest();
        let stop = |c: char| c == '\n' || c == '\r' || self.quote.is_some_and(|(open, _)| c == char::from(open));
        rest.find(stop).unwrap_or(rest.len())
    }

    /// The length of the value at `from`, as a shell or JSON has it. `name` is where its name began.
    fn value_length(&self, from: usize, name: usize) -> usize {
        let bytes = &self.rest().as_bytes()[from..];
        let open = self.quote.map(|(mark, _)| mark);
        // `"NAME=a b"`: the quote is around the whole.
        let around = self.quote.is_some_and(|(_, begin)| begin == name);
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                _ if Some(*byte) == open => break,
                b'\\' if matches!(bytes.get(at + 1), Some(b'"' | b'\'')) && at > 0 && open.is_some() => break,
                b'\\' => at += 2,
                b'"' | b'\'' => {
                    let closing = bytes[at + 1..].iter().position(|it| it == byte);
                    at += closing.map_or(bytes.len(), |length| length + 2);
                }
                _ if around => at += 1,
                b';' | b'&' | b'|' | b'<' | b'>' | b')' | b'`' => break,
                byte if byte.is_ascii_whitespace() => break,
                _ => at += 1,
            }
        }
        let rest = &self.rest()[from..];
        rest.ceil_char_boundary(at.min(rest.len()))
    }
}

fn word_length(text: &str) -> usize {
    text.bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        .count()
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}
