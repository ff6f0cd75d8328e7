//! What `doctor` found, in words. Whatever comes from the host is made safe for a terminal here.

use super::super::text::{Rows, visible};
use super::brokers::BrokerRow;
use super::hard_links::HardLinks;
use super::layers::LayerRow;
use super::modes::ModeRow;
use super::{BackendRow, Findings};

/// All of it.
pub(crate) fn text(findings: &Findings) -> String {
    let mut rows = Rows::default();
    rows.heading("Layers");
    findings.layers.iter().for_each(|row| layer(&mut rows, row));
    rows.heading("Backends");
    findings.backends.iter().for_each(|row| backend(&mut rows, row));
    rows.heading("Denials known by watching");
    findings.evidence.iter().for_each(|row| layer(&mut rows, row));
    rows.heading("Modes");
    findings.modes.iter().for_each(|row| mode(&mut rows, row));
    super::deployment::text(&mut rows, &findings.deployment);
    brokers(&mut rows, &findings.brokers, findings.brokers_complete);
    hard_links(&mut rows, &findings.hard_links);
    rows.text
}

fn layer(rows: &mut Rows, row: &LayerRow) {
    let detail = row.detail.as_deref().map(visible);
    let state = match (row.available, detail) {
        (Some(true), None) => "yes".to_owned(),
        (Some(true), Some(detail)) => format!("yes, {detail}"),
        (Some(false), None) => "no".to_owned(),
        (Some(false), Some(detail)) => format!("no: {detail}"),
        (None, detail) => detail.unwrap_or_else(|| "not tried".to_owned()),
    };
    rows.row(&format!("  {}", row.layer), &state);
    rest(rows, row.cost, row.advice);
}

fn backend(rows: &mut Rows, row: &BackendRow) {
    let state = if row.usable { "usable" } else { "not usable" };
    let reason = row.reason.as_deref().map(|reason| format!(": {}", visible(reason)));
    rows.row(
        &format!("  {}", row.backend),
        &format!("{state}{}", reason.unwrap_or_default()),
    );
    rest(rows, row.cost, row.advice);
}

fn mode(rows: &mut Rows, row: &ModeRow) {
    let open: Vec<_> = row.ungoverned.iter().map(|effect| effect.word()).collect();
    let state = match (row.enforcement, &row.reason) {
        (Some(enforcement), _) if open.is_empty() => format!("{enforcement} enforcement"),
        (Some(enforcement), _) => format!("{enforcement} enforcement; not governed: {}", open.join(", ")),
        (None, Some(reason)) => visible(reason),
        (None, None) => "nothing is confined".to_owned(),
    };
    rows.row(&format!("  {}", row.mode), &state);
    if let (Some(_), Some(reason)) = (row.enforcement, &row.reason) {
        rows.row("", &visible(reason));
    }
    rest(rows, row.cost, row.advice.as_deref());
}

/// Each kind has what it would do beside its first address, and each door its advice once.
fn brokers(rows: &mut Rows, found: &[BrokerRow], complete: bool) {
    if found.is_empty() && complete {
        return;
    }
    rows.heading("Within reach of a command, and what it could have them do outside of its run");
    let mut last = None;
    for row in found {
        let address = visible(&row.address);
        let detail = row.detail.map(|why| format!(" (not tried: {why})")).unwrap_or_default();
        if last.replace(row.broker) == Some(row.broker) {
            rows.row("", &format!("{address}{detail}"));
        } else {
            rows.row(
                &format!("  {}", row.broker),
                &format!("{address}{detail}: {}", row.does),
            );
        }
    }
    if !complete {
        rows.row("", "not every place could be asked: there may be more");
    }
    let mut doors: Vec<_> = found.iter().map(|row| (row.advice, row.cost)).collect();
    doors.sort_unstable();
    doors.dedup();
    for (advice, cost) in doors {
        rows.advice(Some(&format!("{advice}; {cost}")));
    }
}

fn hard_links(rows: &mut Rows, found: &HardLinks) {
    if found.total == 0 && found.complete {
        return;
    }
    rows.heading("Hard links from the workspace to outside");
    for file in &found.files {
        let names = format!("{} of {} names in the workspace", file.inside, file.links);
        rows.row("  ", &format!("{}: {names}", visible(&file.path)));
    }
    more(rows, found.total, found.files.len());
    if found.total > 0 {
        rows.row("", "One file has several names: a run that may write here changes it");
        rows.row(
            "",
            "under all of them. Package stores (pnpm, uv, cargo) and local clones",
        );
        rows.row("", "of git make such links on purpose.");
    }
    if let Some(detail) = &found.detail {
        rows.row("  not all seen", &visible(detail));
        rows.row(
            "",
            "there may be more, and what is listed may have its other names in here",
        );
    }
    for place in &found.not_looked_at {
        rows.row("  ", &format!("{}: {}", visible(&place.path), visible(&place.reason)));
    }
    more(rows, found.not_looked_at_total, found.not_looked_at.len());
    rest(rows, found.cost.as_deref(), found.advice);
}

fn more(rows: &mut Rows, total: usize, listed: usize) {
    if total > listed {
        rows.row("", &format!("and {} more", total - listed));
    }
}

/// What a row costs, and what to do.
fn rest(rows: &mut Rows, cost: Option<&str>, advice: Option<&str>) {
    if let Some(cost) = cost {
        rows.row("", &format!("cost: {cost}"));
    }
    rows.advice(advice);
}
