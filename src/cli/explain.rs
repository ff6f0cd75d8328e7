//! `ringfence explain`: the policy of a run, and what each backend would do for it. Nothing is run.

use ringfence::exec::new_run_id;
use ringfence::selection::Selection;
use ringfence::{Error, ErrorCode, ErrorReport, Runner};

use super::args::RunArgs;
use super::documents::Documents;
use super::dry_run::DryRun;
use super::explanation::{BackendPlan, Explained};
use super::places::state_dir;
use super::render;
use super::request::{Asked, request};
use super::{UNAVAILABLE, USAGE};

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
    let Asked {
        mut request,
        withheld,
        standing,
    } = request(args, run_id)?;
    if !args.has_command() {
        request.argv = vec!["true".into()];
    }
    let runner = Runner::with(Selection::of_this_system(state_dir()?, std::env::var_os("PATH")));
    let spec = runner.resolve(request)?;
    let considered = runner.explain(&spec);
    let explained = Explained {
        run: DryRun::new(&spec, &withheld, &standing),
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
