//! How a denial is known.
//!
//! One question, [`judge`], whatever the source. The best is the kernel: the calls that change
//! files wait for a supervisor, which sees what is refused and answers it itself. Where somebody else
//! watches the command already, the kernel's log may prove a denial. The last resort is the
//! command's own words.

mod dialect;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unwatched;

#[cfg(target_os = "linux")]
pub(crate) use linux::{KernelLog, Supervisor, accelerator};
#[cfg(not(target_os = "linux"))]
pub(crate) use unwatched::{KernelLog, Supervisor, accelerator};

use std::path::Path;

use crate::facts::{CapturedStream, Denied, Exit, Observed};
use crate::state::StateDir;

/// Why the accelerator cannot be had with this state directory; nothing when it can.
#[must_use]
pub fn accelerator_missing(state_dir: Option<&Path>) -> Option<String> {
    let found = state_dir
        .ok_or_else(|| "no state directory is known to keep it in".to_owned())
        .and_then(|dir| StateDir::open(dir, None))
        .and_then(|state| accelerator::find(&state));
    found.err()
}

/// What is known of a run that has ended.
#[derive(Debug)]
pub struct Observation<'a> {
    /// Whether anything was confined.
    pub confined: bool,
    /// What was seen of the calls themselves, when they were watched.
    pub observed: Option<Observed>,
    /// What the kernel's log told of a run that somebody else watched, or why nothing.
    pub logged: Option<Result<Observed, String>>,
    /// How the command ended.
    pub exit: Exit,
    /// What it said on standard error, when that was captured.
    pub stderr: Option<&'a CapturedStream>,
    /// How refusals of this run's boundary read.
    pub dialect: &'static [&'static str],
}

/// Whether the confinement refused a file effect, and what that rests on.
#[must_use]
pub fn judge(observation: Observation<'_>) -> Denied {
    if !observation.confined {
        return Denied::NothingConfined;
    }
    let why = match (observation.observed, observation.logged) {
        (Some(seen), _) if seen.unseen > 0 && seen.denials.is_empty() => {
            return Denied::Unavailable {
                why: "a process of the command kept itself from being looked at".to_owned(),
            };
        }
        (Some(seen), _) | (None, Some(Ok(seen))) => return Denied::Observed(seen),
        (None, Some(Err(log))) => format!("another program watches the command already; {log}"),
        (None, None) => "nobody watched the command".to_owned(),
    };
    match observation.stderr {
        Some(stderr) => Denied::Inferred {
            denied: dialect::speaks_of_a_refusal(observation.exit, stderr, observation.dialect),
            why,
        },
        None => Denied::Unavailable {
            why: format!("{why}, and its output was not captured"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Source;

    fn judged(observed: Option<Observed>, logged: Option<Result<Observed, String>>, words: Option<&str>) -> Denied {
        let stderr = words.map(|text| CapturedStream {
            text: text.to_owned(),
            ..CapturedStream::default()
        });
        judge(Observation {
            confined: true,
            observed,
            logged,
            exit: Exit::Code(1),
            stderr: stderr.as_ref(),
            dialect: &["Permission denied"],
        })
    }

    #[test]
    fn the_calls_come_first_then_the_log_then_the_words() {
        let words = Some("Permission denied");
        let log = Observed {
            source: Source::Audit,
            ..Observed::default()
        };
        let calls = Observed::default();
        let watched = judged(Some(calls.clone()), Some(Ok(log.clone())), words);
        assert_eq!(watched, Denied::Observed(calls));
        assert_eq!(judged(None, Some(Ok(log.clone())), words), Denied::Observed(log));
        let none = || Some(Err("the log is empty".to_owned()));
        assert_eq!(judged(None, none(), words).verdict(), Some(true));
        assert_eq!(judged(None, none(), words).evidence(), Some("inferred"));
        let Denied::Unavailable { why } = judged(None, none(), None) else {
            panic!("nothing is known")
        };
        assert!(
            why.contains("the log is empty") && why.contains("not captured"),
            "{why}"
        );
    }
}
