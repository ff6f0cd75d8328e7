//! Which records somebody asks for.

use super::line::Record;
use super::record::Event;
use crate::facts::Operation;

/// What a record must be like. What is absent is not asked for.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Not before this time, as records write it.
    pub since: Option<String>,
    /// About a path that this pattern matches: `*` within a name, `**` over slashes, `?` one character.
    pub path: Option<String>,
    /// A denial of this operation.
    pub op: Option<Operation>,
    /// Of this type.
    pub kind: Option<String>,
    /// Of this session.
    pub session: Option<String>,
    /// Of this run.
    pub run: Option<String>,
    /// A denial, or the end of a run in which something was denied.
    pub denied: bool,
    /// A decision by this kind of decider.
    pub decided_by: Option<String>,
}

impl Filter {
    /// Whether a record is asked for.
    #[must_use]
    pub fn admits(&self, record: &Record) -> bool {
        let Record { entry, time, .. } = record;
        let same = |asked: &Option<String>, is: Option<&str>| asked.is_none() || asked.as_deref() == is;
        self.since.as_ref().is_none_or(|since| time >= since)
            && same(&self.session, entry.session.as_deref())
            && same(&self.run, entry.run.as_deref())
            && same(&self.kind, Some(entry.event.name()))
            && same(&self.decided_by, entry.event.decided_by())
            && self
                .op
                .is_none_or(|op| matches!(&entry.event, Event::Denial { op: it, .. } if *it == op))
            && (!self.denied || entry.event.is_denial())
            && self
                .path
                .as_ref()
                .is_none_or(|pattern| entry.event.path().is_some_and(|path| matches(pattern, path)))
    }

    /// A text that stands in the line of every record that is asked for.
    #[must_use]
    pub fn needle(&self) -> Option<&str> {
        // Names that JSON writes with escapes stand there in another form.
        let plain = |text: &&String| {
            text.bytes()
                .all(|it| it.is_ascii_graphic() && it != b'"' && it != b'\\')
        };
        [&self.run, &self.session, &self.kind]
            .into_iter()
            .flatten()
            .find(plain)
            .map(String::as_str)
    }
}

impl Event {
    /// The word of its type.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunStart { .. } => "run.start",
            Self::Denial { .. } => "denial",
            Self::RunEnd { .. } => "run.end",
            Self::SandboxUnavailable { .. } => "sandbox.unavailable",
            Self::RunnerFailed { .. } => "runner.failed",
            Self::SessionCreated { .. } => "session.created",
            Self::ModeChanged { .. } => "mode.changed",
            Self::ApprovalAsked { .. } => "approval.asked",
            Self::ApprovalDecided { .. } => "approval.decided",
            Self::ApprovalConsumed { .. } => "approval.consumed",
            Self::PolicyLoaded { .. } => "policy.loaded",
            Self::Gap { .. } => "audit.gap",
            Self::Torn { .. } => "audit.torn",
            Self::Pruned { .. } => "audit.pruned",
        }
    }

    /// The words of every type.
    pub const NAMES: [&'static str; 14] = [
        "run.start",
        "denial",
        "run.end",
        "sandbox.unavailable",
        "runner.failed",
        "session.created",
        "mode.changed",
        "approval.asked",
        "approval.decided",
        "approval.consumed",
        "policy.loaded",
        "audit.gap",
        "audit.torn",
        "audit.pruned",
    ];

    /// The path it is about, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Denial { path, .. } => Some(path),
            Self::RunStart { workdir, .. } | Self::ApprovalAsked { workdir, .. } => Some(workdir),
            Self::SessionCreated { cwd, .. } => Some(cwd),
            Self::PolicyLoaded { source, .. } => Some(source),
            _ => None,
        }
    }

    fn decided_by(&self) -> Option<&str> {
        match self {
            Self::ApprovalDecided { by, .. } => Some(&by.kind),
            _ => None,
        }
    }

    const fn is_denial(&self) -> bool {
        matches!(self, Self::Denial { .. } | Self::RunEnd { denied: Some(true), .. })
    }
}

/// Whether a pattern matches the whole of a path.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<char>, Vec<char>) = (pattern.chars().collect(), path.chars().collect());
    // reach[n]: the pattern so far matches the first n characters.
    let mut reach = vec![false; path.len() + 1];
    reach[0] = true;
    let mut at = 0;
    while at < pattern.len() {
        let any = pattern[at] == '*';
        let over_slashes = any && pattern.get(at + 1) == Some(&'*');
        if any {
            for n in 0..path.len() {
                reach[n + 1] |= reach[n] && (over_slashes || path[n] != '/');
            }
        } else {
            for n in (0..path.len()).rev() {
                let one = pattern[at] == path[n] || (pattern[at] == '?' && path[n] != '/');
                reach[n + 1] = reach[n] && one;
            }
            reach[0] = false;
        }
        at += if over_slashes { 2 } else { 1 };
    }
    reach[path.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_stays_within_a_name_unless_it_says_otherwise() {
        for (pattern, path, expected) in [
            ("/a/*", "/a/b", true),
            ("/a/*", "/a/b/c", false),
            ("/a/**", "/a/b/c", true),
            ("**/c", "/a/b/c", true),
            ("/?/b", "/a/b", true),
            ("/?", "//", false),
            ("/a", "/ab", false),
            ("", "", true),
            ("*", "é", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn the_name_of_a_type_is_the_one_on_paper() {
        let event = Event::Gap {
            what: String::new(),
            omitted: 1,
        };
        assert_eq!(serde_json::to_value(&event).unwrap()["type"], event.name());
        assert!(Event::NAMES.contains(&event.name()));
    }
}
