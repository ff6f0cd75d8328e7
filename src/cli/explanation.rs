//! What each backend would do for a run, as a document and in words.

use std::fmt::Write as _;

use ringfence::selection::Considered;
use ringfence::{BackendId, Door, Effect};
use serde::Serialize;

use super::dry_run::{DryRun, describe, left_open, word};
use super::text::visible;

/// The document of `explain`: that of `run --dry-run`, and what each backend would do.
#[derive(Debug, Serialize)]
pub(crate) struct Explained<'a> {
    #[serde(flatten)]
    pub(crate) run: DryRun<'a>,
    pub(crate) backends: Vec<BackendPlan<'a>>,
    #[serde(skip)]
    pub(crate) considered: &'a [Considered],
}

/// What one backend would do.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BackendPlan<'a> {
    backend: BackendId,
    /// Whether it is the one that would serve.
    serves: bool,
    /// Why it would not serve.
    reason: Option<&'a str>,
    enforcement: Option<&'static str>,
    ungoverned: Vec<Effect>,
    not_confined: &'a [Door],
    steps: Vec<String>,
    /// The same in its own words: options of bubblewrap, a profile.
    rendered: &'a [String],
}

impl<'a> BackendPlan<'a> {
    pub(crate) fn new(considered: &'a Considered, serving: BackendId) -> Self {
        let plan = considered.plan.as_ref();
        let enforcement = plan.ok().and_then(|plan| plan.enforcement.as_ref());
        Self {
            backend: considered.backend,
            serves: considered.backend == serving,
            reason: plan.err().map(String::as_str),
            enforcement: enforcement.map(word),
            ungoverned: enforcement.map(left_open).unwrap_or_default(),
            not_confined: plan.map_or(&[], |plan| &plan.not_confined),
            steps: plan.map_or_else(|_| Vec::new(), |plan| plan.steps.iter().map(describe).collect()),
            rendered: &considered.rendered,
        }
    }
}

/// What one backend would do, in words.
pub(crate) fn text(backend: &BackendPlan<'_>, considered: &Considered) -> String {
    let mut text = String::new();
    let serves = if backend.serves { ", which would serve" } else { "" };
    let _ = match (backend.reason, backend.enforcement) {
        (Some(reason), _) => writeln!(text, "backend {}: {}", considered.backend, visible(reason)),
        (None, Some(enforcement)) => writeln!(text, "backend {}{serves}: {enforcement}", considered.backend),
        (None, None) => writeln!(text, "backend {}{serves}", considered.backend),
    };
    for (number, step) in (1..).zip(&backend.steps) {
        let _ = writeln!(text, "  {number}. {step}");
    }
    if !backend.rendered.is_empty() {
        let _ = writeln!(text, "  in its own words:");
    }
    for line in backend.rendered {
        let _ = writeln!(text, "    {}", visible(line));
    }
    text
}
