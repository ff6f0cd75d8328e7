//! `audit list`, `audit show` and `audit tail`.

use std::io;
use std::thread;
use std::time::Duration;

use ringfence::audit::query::Filter;
use ringfence::audit::{AuditError, Event, Record, Unread};

use super::{NO, Trouble, since, trail, words};
use crate::cli::args::{ListArgs, ShowArgs, TailArgs};
use crate::cli::render;

/// How much is printed at once.
const CHUNK: usize = 64 << 10;
/// How long to wait for more records.
const PAUSE: Duration = Duration::from_millis(200);

/// What is printed, in larger pieces.
struct Printer {
    json: bool,
    text: Vec<u8>,
    unread: u64,
}

impl Printer {
    const fn new(json: bool) -> Self {
        Self {
            json,
            text: Vec::new(),
            unread: 0,
        }
    }

    /// Prints a record. What is none is counted, and told on stderr.
    fn put(&mut self, record: Result<Record, Unread>, whole: bool) -> io::Result<()> {
        match record {
            Ok(record) if self.json => {
                serde_json::to_writer(&mut self.text, &record).map_err(io::Error::other)?;
                self.text.push(b'\n');
            }
            Ok(record) if whole => self.text.extend_from_slice(words::whole(&record).as_bytes()),
            Ok(record) => self.text.extend_from_slice(words::line(&record).as_bytes()),
            Err(unread) => {
                self.unread += 1;
                if self.unread <= 3 {
                    render::trouble(&unread.to_string());
                }
            }
        }
        if self.text.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let printed = render::document(&self.text);
        self.text.clear();
        printed
    }

    /// A reader that has gone away has seen enough.
    fn done(mut self, printed: io::Result<()>) -> u8 {
        let _ = printed.and_then(|()| self.flush());
        if self.unread > 3 {
            render::trouble(&format!("{} more lines are no records", self.unread - 3));
        }
        if self.unread > 0 {
            render::trouble("`ringfence audit verify` tells what became of them");
        }
        0
    }
}

/// Lists the records that are asked for.
pub(super) fn list(args: &ListArgs) -> Result<u8, Trouble> {
    let filter = Filter {
        since: args
            .since
            .as_deref()
            .map(|text| since::since("--since", text))
            .transpose()?,
        path: args.path.clone(),
        op: args.op,
        kind: args.kind.clone(),
        session: args.session.clone(),
        run: args.run.clone(),
        denied: args.denied,
        decided_by: args.decided_by.clone(),
    };
    let mut printer = Printer::new(args.json);
    let trail = match trail() {
        // Nothing was recorded, so there is nothing to list.
        Err(Trouble::Trail(error @ AuditError::Missing { .. })) => {
            render::trouble(&error.to_string());
            render::hint(error.hint());
            return Ok(0);
        }
        other => other?,
    };
    let mut records = trail.records()?;
    if let Some(needle) = filter.needle() {
        records = records.containing(needle);
    }
    let asked = |record: &Result<Record, Unread>| record.as_ref().map_or(true, |record| filter.admits(record));
    let outcome = records.filter(asked).try_for_each(|record| printer.put(record, false));
    Ok(printer.done(outcome))
}

/// Shows what has this number or name.
pub(super) fn show(args: &ShowArgs) -> Result<u8, Trouble> {
    let what = args.what.as_str();
    let trail = trail()?;
    let mut found = Vec::new();
    if let Ok(seq) = what.parse::<u64>() {
        let records = trail.records_from(seq)?.containing(&format!("\"seq\":{seq},"));
        found.extend(records.flatten().find(|record| record.seq == seq));
    } else if !what.is_empty() {
        let of_it =
            |record: &Record| record.id == what || record.entry.run.as_deref() == Some(what) || requests(record, what);
        found.extend(trail.records()?.containing(what).flatten().filter(of_it));
    }
    if found.is_empty() {
        render::trouble(&format!("nothing in the trail has the number or id {what}"));
        return Ok(NO);
    }
    let mut printer = Printer::new(args.json);
    let outcome = found.into_iter().try_for_each(|record| printer.put(Ok(record), true));
    Ok(printer.done(outcome))
}

fn requests(record: &Record, id: &str) -> bool {
    match &record.entry.event {
        Event::ApprovalAsked { request, .. }
        | Event::ApprovalDecided { request, .. }
        | Event::ApprovalConsumed { request, .. } => request == id,
        Event::RunStart { approval, retry_of, .. } => [approval, retry_of].into_iter().flatten().any(|it| it == id),
        _ => false,
    }
}

/// Shows the end, and what comes after it.
pub(super) fn tail(args: &TailArgs) -> Result<u8, Trouble> {
    let trail = trail()?;
    let (last, mut records) = trail.last(args.lines)?;
    let mut printer = Printer::new(args.json);
    let mut outcome = last.into_iter().try_for_each(|record| printer.put(record, false));
    while args.follow && outcome.is_ok() {
        outcome = records
            .by_ref()
            .try_for_each(|record| printer.put(record, false))
            .and_then(|()| printer.flush());
        thread::sleep(PAUSE);
    }
    Ok(printer.done(outcome))
}
