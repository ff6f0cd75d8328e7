//! `audit summary`: what there was most of.

use std::collections::{BTreeMap, HashMap};

use ringfence::audit::Event;
use ringfence::audit::query::Filter;
use ringfence::facts::SCHEMA;
use serde::Serialize;

use super::{Trouble, since, trail};
use crate::cli::args::SummaryArgs;
use crate::cli::render;
use crate::cli::text::{Rows, quoted, visible, word};

/// How many of each are told.
const MOST: usize = 10;

/// Something and how often it was there.
#[derive(Serialize)]
struct Counted {
    what: String,
    count: u64,
}

/// The counts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    schema: u32,
    records: u64,
    unreadable: u64,
    first: Option<String>,
    last: Option<String>,
    types: BTreeMap<&'static str, u64>,
    denied_operations: Vec<Counted>,
    denied_paths: Vec<Counted>,
    denied_programs: Vec<Counted>,
    commands: Vec<Counted>,
    decisions: Vec<Counted>,
}

#[derive(Default)]
struct Tally(HashMap<String, u64>);

impl Tally {
    fn add(&mut self, what: String, count: u64) {
        let sum = self.0.entry(what).or_default();
        *sum = sum.saturating_add(count);
    }

    fn top(self) -> Vec<Counted> {
        let mut all: Vec<_> = self
            .0
            .into_iter()
            .map(|(what, count)| Counted { what, count })
            .collect();
        all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.what.cmp(&b.what)));
        all.truncate(MOST);
        all
    }
}

/// Counts and prints.
pub(super) fn summary(args: &SummaryArgs) -> Result<u8, Trouble> {
    let filter = Filter {
        since: args
            .since
            .as_deref()
            .map(|text| since::since("--since", text))
            .transpose()?,
        ..Filter::default()
    };
    let trail = trail()?;
    let mut tallies: [Tally; 5] = Default::default();
    let [operations, paths, programs, commands, decisions] = &mut tallies;
    let (mut types, mut records, mut unreadable) = (BTreeMap::new(), 0, 0);
    let (mut first, mut last) = (None, None);
    for record in trail.records()? {
        let Ok(record) = record else {
            unreadable += 1;
            continue;
        };
        if !filter.admits(&record) {
            continue;
        }
        records += 1;
        *types.entry(record.entry.event.name()).or_default() += 1;
        first.get_or_insert_with(|| record.time.clone());
        last = Some(record.time);
        match record.entry.event {
            Event::Denial {
                op,
                path,
                program,
                count,
                ..
            } => {
                operations.add(word(&op), count);
                paths.add(path, count);
                programs.add(program.unwrap_or_else(|| "not known".to_owned()), count);
            }
            Event::RunStart { argv, .. } => {
                let shown: Vec<_> = argv.iter().map(|word| quoted(word.as_ref())).collect();
                commands.add(shown.join(" "), 1);
            }
            Event::ApprovalDecided { outcome, by, .. } => decisions.add(format!("{outcome} by {}", by.kind), 1),
            _ => {}
        }
    }
    let [operations, paths, programs, commands, decisions] = tallies.map(Tally::top);
    let summary = Summary {
        schema: SCHEMA,
        records,
        unreadable,
        first,
        last,
        types,
        denied_operations: operations,
        denied_paths: paths,
        denied_programs: programs,
        commands,
        decisions,
    };
    let printed = if args.json {
        serde_json::to_vec(&summary).map(|mut line| {
            line.push(b'\n');
            line
        })
    } else {
        Ok(text(&summary).into_bytes())
    };
    match printed {
        Ok(bytes) => drop(render::document(&bytes)),
        Err(error) => render::trouble(&format!("the summary could not be written: {error}")),
    }
    Ok(0)
}

fn text(summary: &Summary) -> String {
    let mut rows = Rows::default();
    rows.row("records", &summary.records.to_string());
    if let (Some(first), Some(last)) = (&summary.first, &summary.last) {
        rows.row("first", &visible(first));
        rows.row("last", &visible(last));
    }
    if summary.unreadable > 0 {
        let what = format!(
            "{} lines; `ringfence audit verify` tells what became of them",
            summary.unreadable
        );
        rows.row("unreadable", &what);
    }
    for (name, count) in &summary.types {
        rows.row(name, &count.to_string());
    }
    for (heading, list) in [
        ("Denied, by operation", &summary.denied_operations),
        ("Denied, by path", &summary.denied_paths),
        ("Denied, by program", &summary.denied_programs),
        ("Commands", &summary.commands),
        ("Decisions", &summary.decisions),
    ] {
        if !list.is_empty() {
            rows.heading(heading);
        }
        for Counted { what, count } in list {
            rows.row(&count.to_string(), &visible(what));
        }
    }
    rows.text
}
