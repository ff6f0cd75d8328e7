//! Records in words, safe to print.

use ringfence::audit::{Entry, Event, Record};

use crate::cli::text::{Rows, milliseconds, quoted, visible, word};

/// A number and what it counts.
pub(super) fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A record on one line.
pub(super) fn line(record: &Record) -> String {
    let Record { seq, time, entry, .. } = record;
    let time = visible(&time.chars().take(19).collect::<String>());
    let run = entry.run.as_deref().unwrap_or("-");
    let said = said(&entry.event);
    format!(
        "{seq:>7}  {time}Z  {:<19} {:<36}  {said}\n",
        entry.event.name(),
        visible(run)
    )
}

fn words(argv: &[String]) -> String {
    argv.iter()
        .map(|word| quoted(word.as_ref()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// What happened.
fn said(event: &Event) -> String {
    match event {
        Event::RunStart {
            argv,
            mode,
            backend,
            enforcement,
            ..
        } => {
            let enforcement = enforcement
                .as_deref()
                .map_or(String::new(), |it| format!(" {}", visible(it)));
            format!("{}, {}{enforcement}: {}", mode.name(), backend.name(), words(argv))
        }
        Event::Denial {
            op,
            path,
            program,
            errno,
            count,
            ..
        } => {
            let by = program
                .as_deref()
                .map_or(String::new(), |it| format!(" by {}", visible(it)));
            format!("{} {}{by}: {} × {count}", word(op), visible(path), visible(errno))
        }
        Event::RunEnd {
            exit_code,
            signal,
            timed_out,
            aborted,
            duration_ms,
            denied,
            ..
        } => {
            let end = match (exit_code, signal) {
                (Some(code), _) => format!("status {code}"),
                (None, Some(signal)) => visible(signal),
                (None, None) => "an unknown end".to_owned(),
            };
            let notes = [
                (*timed_out, ", at its deadline"),
                (*aborted, ", ended by the caller"),
                (*denied == Some(true), ", something was denied"),
                (denied.is_none(), ", whether something was denied is not known"),
            ];
            let notes: String = notes.iter().filter(|(so, _)| *so).map(|(_, note)| *note).collect();
            format!("{end} after {}{notes}", milliseconds(*duration_ms))
        }
        Event::SandboxUnavailable { tried } => {
            let tried: Vec<_> = tried
                .iter()
                .map(|it| format!("{}: {}", it.backend.name(), visible(&it.reason)))
                .collect();
            tried.join("; ")
        }
        Event::RunnerFailed { code, message } => format!("{}: {}", word(code), visible(message)),
        other => said_of_others(other),
    }
}

fn said_of_others(event: &Event) -> String {
    match event {
        Event::SessionCreated { cwd, mode } => {
            format!(
                "{} in {}",
                mode.map_or("no mode of its own", |mode| mode.name()),
                visible(cwd)
            )
        }
        Event::ModeChanged { from, to } => {
            format!(
                "from {} to {}",
                from.map_or("none of its own", |mode| mode.name()),
                to.name()
            )
        }
        Event::ApprovalAsked {
            request,
            argv,
            difference,
            ..
        } => format!("{}: {}, for {}", visible(request), visible(difference), words(argv)),
        Event::ApprovalDecided {
            request, outcome, by, ..
        } => format!(
            "{}: {} by {} {}",
            visible(request),
            visible(outcome),
            visible(&by.kind),
            visible(&by.principal)
        ),
        Event::ApprovalConsumed { request, .. } => visible(request),
        Event::PolicyLoaded { source, .. } => visible(source),
        Event::Gap { what, omitted } => format!("{omitted} left out: {}", visible(what)),
        Event::Torn { bytes, .. } => format!("{} before this record are none", counted(*bytes, "byte")),
        Event::Pruned { through, .. } => format!("records up to {through} were removed"),
        // A type that this program was not told of says what it is by its name.
        _ => String::new(),
    }
}

/// A record with all its fields.
pub(super) fn whole(record: &Record) -> String {
    let mut rows = Rows::default();
    let Entry { session, run, event } = &record.entry;
    rows.heading(&format!("record {}", record.seq));
    rows.row("type", event.name());
    rows.row("time", &visible(&record.time));
    for (name, value) in [("run", run), ("session", session)] {
        if let Some(value) = value {
            rows.row(name, &visible(value));
        }
    }
    if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(event) {
        for (name, value) in fields.iter().filter(|(name, _)| *name != "type") {
            match value {
                serde_json::Value::String(text) => rows.row(name, &visible(text)),
                serde_json::Value::Array(items) if items.iter().all(serde_json::Value::is_string) => {
                    let items: Vec<_> = items.iter().filter_map(|it| it.as_str()).map(str::to_owned).collect();
                    rows.row(name, &words(&items));
                }
                serde_json::Value::Null => {}
                other => rows.row(name, &visible(&other.to_string())),
            }
        }
    }
    rows.row("written", &format!("{} by user {}", visible(&record.host), record.uid));
    rows.row("id", &visible(&record.id));
    rows.row(
        "boot",
        &format!("{}, {} ns after it", visible(&record.boot), record.mono_ns),
    );
    rows.row("hash before", &visible(&record.prev));
    rows.text
}
