//! From the facts of a run to what is recorded of it.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::record::{Entry, Event};
use crate::error::Error;
use crate::facts::{Denial, Denied, RunReport};

/// How many kinds of denial of one run are recorded.
const MOST: usize = 1000;
/// And how many bytes they may take.
const MOST_BYTES: usize = 1 << 20;
/// About what the trail adds to an entry.
const FRAME: usize = 512;

/// What is recorded of a run that has ended: each kind of denial once, then its end. However much was
/// denied, it is little more than 1 MiB, and says how much was left out.
#[must_use]
pub fn ended(report: &RunReport) -> Vec<Entry> {
    let of_run = |event| Entry {
        session: report.session.clone(),
        run: Some(report.run_id.clone()),
        event,
    };
    let mut entries = Vec::new();
    if let Denied::Observed(seen) = &report.sandbox.denied {
        let kinds = kinds(&seen.denials);
        let all = kinds.len();
        let mut bytes = 0;
        for event in kinds.into_iter().take(MOST) {
            let entry = of_run(event);
            bytes += FRAME + serde_json::to_string(&entry).map_or(MOST_BYTES, |text| text.len());
            if bytes > MOST_BYTES {
                break;
            }
            entries.push(entry);
        }
        let omitted = (all - entries.len()) as u64 + seen.omitted;
        if omitted > 0 {
            let what = "denials of this run".to_owned();
            entries.push(of_run(Event::Gap { what, omitted }));
        }
    }
    entries.push(of_run(Event::RunEnd {
        exit_code: report.exit.code(),
        signal: report.exit.signal(),
        timed_out: report.timed_out,
        aborted: report.aborted,
        duration_ms: report.duration_ms,
        denied: report.sandbox.denied.verdict(),
        evidence: report.sandbox.denied.evidence().map(str::to_owned),
        survivors: report.sandbox.survivors,
    }));
    entries
}

/// What is recorded of a run that did not happen.
#[must_use]
pub fn refused(run: &str, session: Option<&str>, error: &Error) -> Entry {
    let event = match error {
        Error::SandboxUnavailable { tried } => Event::SandboxUnavailable { tried: tried.clone() },
        other => Event::RunnerFailed {
            code: other.code(),
            message: other.to_string(),
        },
    };
    Entry {
        session: session.map(str::to_owned),
        run: Some(run.to_owned()),
        event,
    }
}

/// One event for each operation, path and program, in the order in which they first came.
fn kinds(denials: &[Denial]) -> Vec<Event> {
    let mut places = HashMap::new();
    let mut kinds: Vec<Event> = Vec::new();
    for denial in denials {
        let key = (denial.op, &denial.path, &denial.program);
        if let Some(Event::Denial { count, .. }) = places.get(&key).and_then(|at: &usize| kinds.get_mut(*at)) {
            *count = count.saturating_add(denial.count);
        } else {
            places.insert(key, kinds.len());
            kinds.push(event(denial));
        }
    }
    kinds
}

fn event(denial: &Denial) -> Event {
    let bytes = denial.path.as_os_str().as_bytes();
    let known = denial.pid != 0;
    Event::Denial {
        op: denial.op,
        path: denial.path.to_string_lossy().into_owned(),
        path_bytes: denial.path.to_str().is_none().then(|| STANDARD.encode(bytes)),
        program: known.then(|| denial.program.clone()),
        pid: known.then_some(denial.pid),
        errno: format!("{:?}", denial.errno),
        count: denial.count,
    }
}

#[cfg(test)]
mod tests;
