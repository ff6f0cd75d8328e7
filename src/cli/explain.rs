//! `ringfence explain`: the policy of a run, and what each backend would do for it. Nothing is run.

use std::fmt::Write as _;

use ringfence::exec::new_run_id;
use ringfence::selection::{Considered, Selection};
use ringfence::{BackendId, Door, Effect, Error, ErrorCode, ErrorReport, Runner};
use serde::Serialize;

use super::args::RunArgs;
use super::documents::Documents;
use super::dry_run::{DryRun, describe, left_open, word};
use super::policy::state_dir;
use super::render;
use super::request::{Asked, request};
use super::text::visible;
use super::{UNAVAILABLE, USAGE};

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
    fn new(considered: &'a Considered, serving: BackendId) -> Self {
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

/// Explains a run and returns the exit status of the program.
pub(crate) fn explain(args: &RunArgs) -> u8 {
    let run_id = new_run_id();
    let mut documents = Documents::new(args.json);
    match documents
        .open(args)
        .and_then(|()| attempt(args, &run_id, &mut documents))
    {
        Ok(()) => 0,
        Err(error) => {
            documents.deliver(&ErrorReport::new(&run_id, &error));
            if !documents.on_stdout() {
                render::error(&error);
            }
            if error.code() == ErrorCode::SandboxUnavailable {
                UNAVAILABLE
            } else {
                USAGE
            }
        }
    }
}

fn attempt(args: &RunArgs, run_id: &str, documents: &mut Documents) -> Result<(), Error> {
    let Asked { mut request, withheld } = request(args, run_id)?;
    if !args.has_command() {
        request.argv = vec!["true".into()];
    }
    let runner = Runner::with(Selection::of_this_system(state_dir()?, std::env::var_os("PATH")));
    let spec = runner.resolve(request)?;
    let considered = runner.explain(&spec);
    let explained = Explained {
        run: DryRun::new(&spec, &withheld),
        backends: considered
            .iter()
            .map(|it| BackendPlan::new(it, spec.plan().backend))
            .collect(),
        considered: &considered,
    };
    documents.deliver(&explained);
    if !documents.on_stdout() {
        render::explanation(&explained);
    }
    Ok(())
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
