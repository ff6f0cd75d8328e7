//! What is said of a run in words, when something happened.

use std::fmt::Write as _;

use ringfence::facts::{Observed, Recorded};
use ringfence::{Denied, Effect, Enforcement, Exit, RunReport, SandboxMode};

use super::dry_run::left_open;
use super::text::{milliseconds, shown, visible, word};

/// A line for each thing that a person should know; nothing when all went well.
pub(super) fn text(report: &RunReport) -> String {
    let mut text = String::new();
    let mut say = |line: &str| {
        let _ = writeln!(text, "ringfence: {line}");
    };
    if let Some(enforcement @ Enforcement::Partial { .. }) = &report.sandbox.enforcement {
        let open = left_open(enforcement);
        if open == [Effect::InheritedDescriptors] {
            say(
                "a file is a standard stream, and its mode bits and times are open to the command \
                 (inherited-descriptors); a pipe in between, or --stdin FILE, closes that",
            );
        } else {
            let words: Vec<_> = open.iter().map(|effect| effect.word()).collect();
            say(&format!(
                "this host enforces {} in part; not governed: {}",
                report.sandbox.mode,
                words.join(", ")
            ));
        }
    }
    match &report.sandbox.denied {
        Denied::Observed(seen) => refused(report.sandbox.mode, seen, &mut say),
        other if other.verdict() == Some(true) => say(&format!(
            "{} refused a change that the command tried to make",
            report.sandbox.mode
        )),
        _ => {}
    }
    if may_be_asked_for(report) {
        say(&format!(
            "if it needs that, `ringfence retry {}` asks for one run that may",
            visible(&report.run_id)
        ));
    }
    if report.timed_out {
        let limit = report
            .timeout_ms
            .map(|ms| format!(" of {}", milliseconds(ms)))
            .unwrap_or_default();
        say(&format!("the command was stopped: its time limit{limit} had passed"));
    }
    if report.aborted {
        say("the command was stopped, because Ringfence was told to stop");
    }
    if let Recorded::No { reason } = &report.recorded {
        say(&format!(
            "the run is not, or not in whole, in the audit trail: {}",
            visible(reason)
        ));
    }
    let Some(survivors) = report.sandbox.survivors else {
        say("not every process of the run could be counted and killed; some may still run, confined as they were");
        return text;
    };
    if survivors.found > 0 {
        let were = if survivors.found == 1 {
            "process was"
        } else {
            "processes were"
        };
        say(&format!(
            "{} {were} still running when the command ended, and {} killed",
            survivors.found, survivors.killed
        ));
    }
    text
}

/// Whether a looser run of it can be asked for, and somebody may want one: a command that ended well went on without.
fn may_be_asked_for(report: &RunReport) -> bool {
    let refused = matches!(&report.sandbox.denied, Denied::Observed(seen) if !seen.denials.is_empty());
    let kept = report.recorded == Recorded::Yes && report.command.is_none();
    refused && kept && report.exit != Exit::Code(0)
}

/// How many denials are told in words.
const TOLD: usize = 3;

fn refused(mode: SandboxMode, observed: &Observed, say: &mut impl FnMut(&str)) {
    for denial in observed.denials.iter().take(TOLD) {
        let times = if denial.count > 1 {
            format!(", {} times", denial.count)
        } else {
            String::new()
        };
        let by = match denial.pid {
            0 => String::new(),
            _ => format!(" by {}", visible(&denial.program)),
        };
        say(&format!(
            "{mode} refused: {} {}{by} ({:?}){times}",
            word(&denial.op),
            shown(&denial.path),
            denial.errno,
        ));
    }
    let untold = observed.denials.len().saturating_sub(TOLD) as u64 + observed.omitted;
    if untold > 0 {
        say(&format!("and {untold} more; --report FILE lists them"));
    }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;
    use ringfence::facts::{Denial, Operation, Survivors};

    use super::super::render::tests::report;
    use super::*;

    #[test]
    fn nothing_is_said_when_nothing_happened() {
        assert_eq!(text(&report()), "");
        let signalled = RunReport {
            exit: Exit::Signal(9),
            ..report()
        };
        assert_eq!(text(&signalled), "", "the shell tells that by itself");
    }

    #[test]
    fn partial_enforcement_names_what_is_open_in_one_line() {
        let mut partial = report();
        partial.sandbox.enforcement = Some(Enforcement::Partial {
            ungoverned: [Effect::Metadata, Effect::Truncate].into(),
        });
        let said = text(&partial);
        assert_eq!(said.lines().count(), 1);
        assert!(said.contains("truncate") && said.contains("metadata"), "{said}");
    }

    #[test]
    fn a_run_that_failed_after_a_denial_names_how_one_looser_run_is_asked_for() {
        let denial = Denial {
            op: Operation::Create,
            path: "/etc/x".into(),
            program: "touch".to_owned(),
            pid: 1,
            errno: Errno::EROFS,
            count: 1,
        };
        let mut failed = report();
        failed.exit = Exit::Code(1);
        failed.recorded = Recorded::Yes;
        failed.sandbox.denied = Denied::Observed(Observed {
            denials: vec![denial],
            ..Observed::default()
        });
        assert!(text(&failed).contains("`ringfence retry run`"), "{}", text(&failed));
        let went_on = RunReport {
            exit: Exit::Code(0),
            ..failed.clone()
        };
        assert!(!text(&went_on).contains("retry"));
        failed.recorded = Recorded::NotAsked;
        assert!(!text(&failed).contains("retry"), "it is not kept");
    }

    #[test]
    fn what_happened_is_said_and_nothing_suggests_less_confinement() {
        let mut eventful = RunReport {
            timed_out: true,
            timeout_ms: Some(1500),
            ..report()
        };
        eventful.sandbox.denied = Denied::Inferred {
            denied: true,
            why: String::new(),
        };
        eventful.sandbox.survivors = Some(Survivors { found: 3, killed: 3 });
        let said = text(&eventful);
        for word in ["refused", "1500 ms", "3 processes", "3 killed"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        eventful.sandbox.survivors = None;
        assert!(text(&eventful).contains("may still run"), "nobody knows");
        assert!(!said.contains("danger"), "{said}");
        assert!(
            text(&RunReport {
                aborted: true,
                ..report()
            })
            .contains("told to stop")
        );
    }
}
