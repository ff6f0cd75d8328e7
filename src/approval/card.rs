//! The card: everything that somebody must see before they answer, whole, and safe to show.
//!
//! What others have chosen (words of the command, paths, reasons) stands behind a rule at the left edge,
//! with every character that could steer the terminal or hide in it written as an escape.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use super::clock::{Left, Moment};
use super::request::{Refused, Request};
use crate::config::Looseness;
use crate::visible::{is_unseen, visible, visible_bytes};

/// How wide the names of the rows are.
const NAMES: usize = 8;
/// A terminal narrower than this is left to break lines by itself.
const NARROWEST: usize = 40;

/// How a card is laid out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// The width of the terminal. Longer lines are broken, so that their rest does not look like the
    /// card's own; where the width is not known they are left whole.
    pub width: Option<usize>,
    /// Whether what matters most may be coloured.
    pub colour: bool,
}

/// The card of a request, as it stands at that moment.
#[must_use]
pub fn card(request: &Request, now: &Moment, layout: Layout) -> String {
    let mut rows = Card {
        text: String::new(),
        width: layout.width.filter(|width| *width >= NARROWEST),
    };
    let _ = writeln!(
        rows.text,
        "── approval needed  {}  code {} ── {} ──",
        visible(&request.id),
        visible(&request.code),
        remaining(request, now)
    );
    if request.denials.is_empty() {
        rows.own("DENIED", "nothing is known to have been refused");
    }
    for (first, denial) in flagged(&request.denials) {
        rows.others(if first { "DENIED" } else { "" }, &refused(denial));
    }
    match request.denials_omitted {
        Some(0) => {}
        Some(more) => rows.own("", &format!("and {more} more that are not listed")),
        None => rows.own("", "and perhaps more, which nobody counted"),
    }
    let argv = request.argv();
    let escaped = argv.iter().any(|word| needs_escapes(word));
    if escaped {
        rows.own(
            "RUN",
            "(escapes stand for characters that cannot be seen; \\\\ is a backslash)",
        );
    }
    for (first, word) in flagged(&argv) {
        rows.word(if first && !escaped { "RUN" } else { "" }, word, escaped);
    }
    rows.others(
        "EXE",
        &to_its_end(visible_bytes(request.executable().as_os_str(), false)),
    );
    rows.own(
        "",
        match request.executable_changed {
            Some(true) => "CHANGED since the run",
            Some(false) => "unchanged since the run",
            None => "whether it has changed since the run is not known",
        },
    );
    rows.others("CWD", &to_its_end(visible_bytes(request.workdir().as_os_str(), false)));
    let alarming = layout.colour && request.looseness == Looseness::FullAccess;
    for (first, line) in flagged(&request.difference_text) {
        let name = if first { "LOOSER" } else { "" };
        if alarming {
            rows.alarm(name, line);
        } else {
            rows.others(name, line);
        }
    }
    if request.looseness == Looseness::FullAccess {
        rows.own("", "NOTHING WOULD BE CONFINED");
    }
    rows.own("", "(everything else unchanged)");
    for (first, line) in flagged(&request.keeps) {
        rows.others(if first { "KEEPS" } else { "" }, line);
    }
    rows.quoted("REASON", &request.justification);
    let session = request
        .session
        .as_deref()
        .map_or_else(String::new, |it| format!(", session {it}"));
    rows.others("", &format!("(said by {}{session}; not verified)", request.asker));
    rows.others("", &format!("(user {}, run {})", request.uid, request.run));
    for note in &request.notes {
        rows.others("NOTE", note);
    }
    rows.own(
        "NOTE",
        "a yes is for one start of exactly this; what the first run did is not undone",
    );
    rows.text
}

/// How much time is left to answer.
fn remaining(request: &Request, now: &Moment) -> String {
    match request.deadline.left(now) {
        Left::Time(left) => {
            let seconds = left.as_secs();
            format!("expires in {}:{:02}", seconds / 60, seconds % 60)
        }
        _ => format!("expired {}", visible(&request.expires_at)),
    }
}

fn refused(denial: &Refused) -> String {
    let op = format!("{:?}", denial.op).to_lowercase();
    let path = to_its_end(visible_bytes(&denial.path(), false));
    let who = match (&denial.program, denial.pid) {
        (Some(program), Some(pid)) => format!("  {}({pid})", visible(program)),
        _ => String::new(),
    };
    let sure = if denial.evidence == "observed" {
        "certain"
    } else {
        "not certain"
    };
    format!(
        "{op}  {path}  {}{who}  ×{}  {sure}",
        visible(&denial.errno),
        denial.count
    )
}

/// Whether something in it can only be shown as an escape. Ends of lines are shown as such.
fn needs_escapes(word: &OsStr) -> bool {
    word.to_str().is_none_or(|text| {
        text.chars().any(|c| c != '\n' && is_unseen(c)) || text.split('\n').any(|it| it.ends_with(' '))
    })
}

/// A space at the end would not be seen.
fn to_its_end(mut text: String) -> String {
    if text.ends_with(' ') {
        text.pop();
        text.push_str("\\u{20}");
    }
    text
}

fn flagged<T>(items: &[T]) -> impl Iterator<Item = (bool, &T)> {
    items.iter().enumerate().map(|(number, item)| (number == 0, item))
}

struct Card {
    text: String,
    width: Option<usize>,
}

impl Card {
    /// A row in Ringfence's own words.
    fn own(&mut self, name: &str, words: &str) {
        self.line(name, ' ', words);
    }

    /// A row with words of others, on one line.
    fn others(&mut self, name: &str, words: &str) {
        self.line(name, '│', &visible(words));
    }

    /// A word of the command: one line for each of its lines.
    fn word(&mut self, name: &str, word: &OsStr, doubled: bool) {
        let lines: Vec<_> = word.as_bytes().split(|byte| *byte == b'\n').collect();
        for (number, line) in lines.iter().enumerate() {
            let shown = to_its_end(visible_bytes(OsStr::from_bytes(line), doubled));
            // A word of several lines is held together by another rule.
            let rule = match (lines.len(), number) {
                (1, _) => '│',
                (_, 0) => '┌',
                (count, last) if last + 1 == count => '└',
                _ => '├',
            };
            let shown = if lines.len() == 1 && word.is_empty() {
                "''"
            } else {
                &shown
            };
            self.line(if number == 0 { name } else { "" }, rule, shown);
        }
    }

    /// What somebody said, which nobody has checked.
    fn quoted(&mut self, name: &str, words: &str) {
        let lines: Vec<_> = words.split('\n').collect();
        for (number, line) in lines.iter().enumerate() {
            let (open, close) = (number == 0, number + 1 == lines.len());
            let line = format!(
                "{}{}{}",
                if open { "«" } else { " " },
                visible(line),
                if close { "»" } else { "" }
            );
            self.line(if open { name } else { "" }, '│', &line);
        }
    }

    /// A row of others' words, in red.
    fn alarm(&mut self, name: &str, words: &str) {
        for piece in self.pieces(&visible(words)) {
            let _ = writeln!(self.text, " {name:NAMES$}│ \u{1b}[1;31m{piece}\u{1b}[0m");
        }
    }

    fn line(&mut self, name: &str, rule: char, words: &str) {
        for (number, piece) in self.pieces(words).into_iter().enumerate() {
            let (name, rule) = match (number, rule) {
                (0, rule) => (name, rule),
                (_, ' ') => ("", ' '),
                _ => ("", '┊'),
            };
            let _ = writeln!(self.text, " {name:NAMES$}{rule} {piece}");
        }
    }

    /// The words, broken where the terminal would break them.
    fn pieces(&self, words: &str) -> Vec<String> {
        let Some(room) = self.width.map(|width| width - NAMES - 4) else {
            return vec![words.to_owned()];
        };
        let mut pieces = vec![String::new()];
        let mut used = 0;
        for c in words.chars() {
            // Some characters take two columns, and nobody agrees on which.
            let columns = if c.is_ascii() { 1 } else { 2 };
            if used + columns > room {
                pieces.push(String::new());
                used = 0;
            }
            used += columns;
            if let Some(piece) = pieces.last_mut() {
                piece.push(c);
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests;
