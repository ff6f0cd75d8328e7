//! Who is asked, how long, and what nobody is asked for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::{self, Approval, ApprovalPolicy, Looseness, Reject};

/// How requests are dealt with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether anybody is asked at all.
    pub policy: ApprovalPolicy,
    /// Who is asked, in this order.
    pub answerers: Vec<Answerer>,
    /// What is told of a request that waits in the queue. What it says to that is not heard.
    pub notify: Option<Hook>,
    /// What is rejected before anybody is asked. No rule allows: what is allowed as a matter of course
    /// belongs into a profile, where it is looked at once.
    pub reject: Vec<Reject>,
    /// How much looser a run may be that somebody is asked for.
    pub most: Looseness,
    /// How long a request can be answered.
    pub request_ttl: Duration,
    /// How long after the decision a grant can be used.
    pub grant_ttl: Duration,
}

impl Settings {
    /// What is deployed. `chosen` takes one of the ways to ask and leaves the others out, and `env` is all
    /// that a program that is asked gets of an environment.
    #[must_use]
    pub fn deployed(deployed: &Approval, chosen: Option<config::Answerer>, env: &[(OsString, OsString)]) -> Self {
        let program = |words: &[String], timeout| {
            let (program, args) = words.split_first()?;
            Some(Hook {
                program: program.into(),
                args: args.iter().map(OsString::from).collect(),
                env: env.to_vec(),
                timeout,
            })
        };
        let chosen = chosen.as_ref().map(std::slice::from_ref);
        let answerers = chosen.unwrap_or_else(|| deployed.answerers()).iter();
        Self {
            policy: deployed.policy(),
            answerers: answerers
                .filter_map(|answerer| match answerer {
                    config::Answerer::Tty => Some(Answerer::Tty),
                    config::Answerer::Queue => Some(Answerer::Queue),
                    config::Answerer::Hook => program(deployed.hook()?, deployed.hook_timeout()).map(Answerer::Hook),
                })
                .collect(),
            notify: deployed
                .notify()
                .and_then(|words| program(words, deployed.hook_timeout())),
            reject: deployed.reject().to_vec(),
            most: deployed.max_looseness(),
            request_ttl: deployed.request_ttl(),
            grant_ttl: deployed.grant_ttl(),
        }
    }
}

/// By what way somebody is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answerer {
    /// A card on the terminal of whoever asks.
    Tty,
    /// A file that `ringfence approve` and `ringfence deny` answer.
    Queue,
    /// A program.
    Hook(Hook),
}

impl Answerer {
    /// Its word in documents and files.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Tty => config::Answerer::Tty.name(),
            Self::Queue => config::Answerer::Queue.name(),
            Self::Hook(_) => config::Answerer::Hook.name(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_deployed_by_default_asks_at_the_terminal_and_then_in_the_queue() {
        let settings = Settings::deployed(&Approval::default(), None, &[]);
        assert_eq!(settings.answerers, [Answerer::Tty, Answerer::Queue]);
        let queue = Settings::deployed(&Approval::default(), Some(config::Answerer::Queue), &[]);
        assert_eq!(queue.answerers, [Answerer::Queue]);
        let hook = Settings::deployed(&Approval::default(), Some(config::Answerer::Hook), &[]);
        assert_eq!(hook.answerers, [], "there is no program to ask");
    }
}
