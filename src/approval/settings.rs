//! Who is asked, how long, and what nobody is asked for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a request can be answered, unless the deployment says otherwise.
pub const REQUEST_TTL: Duration = Duration::from_mins(15);
/// How long after the decision a grant can be used.
pub const GRANT_TTL: Duration = Duration::from_mins(2);
/// How long a hook may take to answer.
pub const HOOK_TIMEOUT: Duration = Duration::from_mins(5);

/// How requests are dealt with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether anybody is asked at all.
    pub policy: AskPolicy,
    /// Who is asked, in this order.
    pub answerers: Vec<Answerer>,
    /// What is rejected before anybody is asked.
    pub rules: Vec<Rule>,
    /// How long a request can be answered.
    pub request_ttl: Duration,
    /// How long after the decision a grant can be used.
    pub grant_ttl: Duration,
}

impl Settings {
    /// These answerers, asked in this order, with the times that hold by default.
    #[must_use]
    pub const fn asking(answerers: Vec<Answerer>) -> Self {
        Self {
            policy: AskPolicy::Ask,
            answerers,
            rules: Vec::new(),
            request_ttl: REQUEST_TTL,
            grant_ttl: GRANT_TTL,
        }
    }
}

/// Whether anybody is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskPolicy {
    /// The answerers are.
    #[default]
    Ask,
    /// Nobody is: everything is rejected.
    Never,
}

/// How much looser something is, from little to much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Looseness {
    /// A few more paths can be written.
    ExtraRoots,
    /// Another mode that confines.
    Mode,
    /// Nothing is confined.
    FullAccess,
}

impl Looseness {
    /// Its word in documents and files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ExtraRoots => "extra-roots",
            Self::Mode => "mode",
            Self::FullAccess => "full-access",
        }
    }
}

/// Somebody who can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answerer {
    /// Who.
    pub kind: AnswererKind,
    /// What they may grant at most.
    pub most: Looseness,
}

impl Answerer {
    /// One that may grant whatever can be asked for.
    #[must_use]
    pub const fn new(kind: AnswererKind) -> Self {
        Self {
            kind,
            most: Looseness::FullAccess,
        }
    }
}

/// By what way somebody is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswererKind {
    /// A card on the terminal of whoever asks.
    Tty,
    /// A file that `ringfence approve` and `ringfence deny` answer.
    Queue,
    /// A program.
    Hook(Hook),
}

impl AnswererKind {
    /// Its word in documents and files.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Tty => "tty",
            Self::Queue => "queue",
            Self::Hook(_) => "hook",
        }
    }
}

/// A program that answers: the request on its standard input, the decision on its standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Its file, by an absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// All the variables that it gets.
    pub env: Vec<(OsString, OsString)>,
    /// How long it may take.
    pub timeout: Duration,
}

impl Hook {
    /// A hook without arguments, with nothing but a search path in its environment.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            timeout: HOOK_TIMEOUT,
        }
    }
}

/// Something that is rejected before anybody is asked. No rule allows: what is allowed as a matter of
/// course belongs into a profile, where it is looked at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// Why it is there, in a sentence.
    pub reason: String,
    /// What it rejects.
    pub rejects: Rejects,
}

/// What a rule rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejects {
    /// Opening this path, what lies under it, or a directory above it.
    Path(PathBuf),
    /// Whatever is this loose, or looser.
    From(Looseness),
}

impl Rule {
    /// Whether it rejects what would open these paths and is this loose.
    pub(crate) fn rejects(&self, looseness: Looseness, opens: &[PathBuf]) -> bool {
        match &self.rejects {
            Rejects::Path(path) => opens
                .iter()
                .any(|open| open.starts_with(path) || path.starts_with(open)),
            Rejects::From(least) => looseness >= *least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_for_a_path_is_for_what_is_above_and_below_it_too() {
        let rule = Rule {
            name: "home".to_owned(),
            reason: String::new(),
            rejects: Rejects::Path("/home/u".into()),
        };
        let rejects = |path: &str| rule.rejects(Looseness::ExtraRoots, &[path.into()]);
        assert!(rejects("/home/u/.ssh") && rejects("/home") && rejects("/home/u"));
        assert!(!rejects("/home/us") && !rejects("/srv"));
    }

    #[test]
    fn a_rule_for_a_looseness_is_for_every_greater_one() {
        let rule = Rule {
            name: "modes".to_owned(),
            reason: String::new(),
            rejects: Rejects::From(Looseness::Mode),
        };
        let rejected = [Looseness::ExtraRoots, Looseness::Mode, Looseness::FullAccess].map(|it| rule.rejects(it, &[]));
        assert_eq!(rejected, [false, true, true]);
    }
}
