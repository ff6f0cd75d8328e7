//! A record in one sentence, safe to show on one line.

use super::super::record::{Decider, Event};
use crate::facts::Operation;

/// The longest sentence, in bytes; the record itself has the rest.
const MOST: usize = 1024;

/// What a record says.
pub(super) fn sentence(event: &Event) -> String {
    let said = match event {
        Event::RunStart {
            argv,
            mode,
            enforcement,
            ..
        } => {
            let enforced = match enforcement.as_deref() {
                None => "not confined".to_owned(),
                Some(word) => format!("enforced: {word}"),
            };
            format!("run started under {} ({enforced}): {}", mode.name(), command_line(argv))
        }
        Event::Denial {
            op,
            path,
            program,
            errno,
            count,
            ..
        } => {
            let by = program.as_ref().map(|name| format!(" by {name}")).unwrap_or_default();
            let times = if *count == 1 {
                String::new()
            } else {
                format!(", {count} times")
            };
            format!("denied: {} {path}{by} ({errno}){times}", operation(*op))
        }
        Event::RunEnd { .. } => ended(event),
        Event::SandboxUnavailable { tried } => {
            let why: Vec<_> = tried
                .iter()
                .map(|it| format!("{}: {}", it.backend.name(), it.reason))
                .collect();
            format!(
                "no backend could confine the run, which did not start: {}",
                why.join("; ")
            )
        }
        Event::RunnerFailed { code, message } => {
            format!("the run did not start [{}]: {message}", error_code(*code))
        }
        Event::SessionCreated { cwd, mode } => {
            let under = mode.map(|mode| format!(" under {}", mode.name())).unwrap_or_default();
            format!("session made in {cwd}{under}")
        }
        Event::ModeChanged { from, to } => {
            let from = from.map(|mode| format!(" from {}", mode.name())).unwrap_or_default();
            format!("mode of the session changed{from} to {}", to.name())
        }
        Event::ApprovalAsked { difference, argv, .. } => {
            format!(
                "approval asked for one looser run ({difference}): {}",
                command_line(argv)
            )
        }
        Event::ApprovalDecided {
            request, outcome, by, ..
        } => format!("request {request} decided: {outcome}{}", decider(by)),
        Event::ApprovalConsumed { request, .. } => format!("approval of request {request} used up by its run"),
        Event::PolicyLoaded { source, .. } => format!("policy read from {source}"),
        Event::Gap { what, omitted } => format!("left out of the trail: {omitted} records: {what}"),
        Event::Torn { bytes, .. } => format!("the end of the trail was torn: {bytes} bytes are no record"),
        Event::Pruned { through, .. } => format!("records up to number {through} were removed"),
    };
    one_line(&said, MOST)
}

fn ended(event: &Event) -> String {
    let Event::RunEnd {
        exit_code,
        signal,
        timed_out,
        aborted,
        denied,
        ..
    } = event
    else {
        return String::new();
    };
    let mut said = match (exit_code, signal) {
        (Some(code), _) => format!("run ended with exit status {code}"),
        (None, Some(signal)) => format!("run ended by {signal}"),
        (None, None) => "run ended".to_owned(),
    };
    if *timed_out {
        said.push_str(", its time was up");
    }
    if *aborted {
        said.push_str(", ended by its caller");
    }
    match denied {
        Some(true) => said.push_str(", something was denied"),
        Some(false) => said.push_str(", nothing was denied"),
        None => {}
    }
    said
}

fn decider(by: &Decider) -> String {
    let reason = by
        .reason
        .as_ref()
        .map(|reason| format!(": {reason}"))
        .unwrap_or_default();
    format!(" by {} ({}){reason}", by.principal, by.kind)
}

/// The word for an operation.
pub(super) fn operation(op: Operation) -> String {
    word(&op)
}

/// The word for the code of an error.
pub(super) fn error_code(code: crate::error::ErrorCode) -> String {
    word(&code)
}

fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// A command as it could be typed to a shell.
pub(super) fn command_line(argv: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let quoted = argv.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// Text of at most about `most` bytes without anything that ends a line or steers a terminal.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let mut safe = String::with_capacity(text.len().min(most));
    for c in text.chars() {
        if safe.len() >= most {
            safe.push('…');
            break;
        }
        let steers =
            matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        if c.is_control() || steers {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}
