//! `ringfence run`: resolve, run, report, and the exit status.

use std::borrow::Cow;

use ringfence::exec::new_run_id;
use ringfence::facts::LongCommand;
use ringfence::facts::{DenialEntry, SCHEMA};
use ringfence::selection::Selection;
use ringfence::{Abort, BackendId, Error, ErrorReport, Event, ExecSpec, RunReport, Runner, SandboxMode};

use serde::Serialize;

use super::args::RunArgs;
use super::documents::Documents;
use super::dry_run::DryRun;
use super::places::state_dir;
use super::render;
use super::request::{Asked, request};
use super::signals::StopSignals;
use super::standing::Standing;

/// Exit status of a run that its deadline ended, as timeout(1) has it.
const TIMED_OUT: u8 = 124;

/// Runs a command and returns the exit status of the program.
pub(crate) fn run(args: &RunArgs) -> u8 {
    let run_id = new_run_id();
    let mut documents = Documents::new(args.json);
    // A value that makes no sense is told to whoever is to get the report.
    let outcome = documents
        .open(args)
        .and_then(|()| attempt(args, &run_id, &mut documents));
    outcome.unwrap_or_else(|error| {
        let refusal = ErrorReport::new(&run_id, &error);
        documents.event("run.end", &refusal);
        documents.deliver(&refusal);
        if !documents.on_stdout() {
            render::error(&error);
        }
        error.exit_status()
    })
}

fn attempt(args: &RunArgs, run_id: &str, documents: &mut Documents) -> Result<u8, Error> {
    let Asked {
        request,
        withheld,
        standing,
    } = request(args, run_id)?;
    let runner = Runner::with(Selection::of_this_system(state_dir()?, std::env::var_os("PATH")));
    let runner = if args.dry_run {
        runner
    } else {
        recorded(runner, &standing)
    };
    let spec = runner.resolve(request)?;
    if args.dry_run {
        show(&DryRun::new(&spec, &withheld, &standing), documents);
        return Ok(0);
    }
    let (report, told) = execute(&runner, spec, args.json, documents)?;
    documents.event("run.end", &report);
    documents.deliver(&report);
    if !documents.on_stdout() {
        render::notes(&report);
    }
    Ok(status(&report, told))
}

/// The runner that records what is deployed to be recorded.
fn recorded(runner: Runner, standing: &Standing) -> Runner {
    runner.with_audit(standing.recording, standing.settings.sources())
}

fn execute(
    runner: &Runner,
    spec: ExecSpec,
    captured: bool,
    documents: &mut Documents,
) -> Result<(RunReport, Option<i32>), Error> {
    follow(captured, documents, |abort, tell| runner.run_watched(spec, abort, tell))
}

/// Follows a run: signals of this process reach it, and whoever reads events hears of it. Tells the report, and
/// the signal that told this process to stop.
pub(super) fn follow(
    captured: bool,
    documents: &mut Documents,
    run: impl FnOnce(&Abort, &mut dyn FnMut(Event<'_>)) -> Result<RunReport, Error>,
) -> Result<(RunReport, Option<i32>), Error> {
    let signals = StopSignals::watch(captured)?;
    let report = run(signals.abort(), &mut |event| match event {
        Event::Started(spec) => documents.event("run.start", &Start::of(spec)),
        Event::Stopped(command) if command.is_still_so() && signals.stop_along() => command.resume(),
        Event::Stopped(_) => {}
        Event::Denied(denial, loosening) => documents.event("denial", &DenialEntry(denial, loosening)),
    });
    let told = signals.finish();
    Ok((report?, told))
}

/// What is told of a run when it starts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Start<'a> {
    schema: u32,
    run_id: &'a str,
    argv: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a LongCommand>,
    workdir: Cow<'a, str>,
    mode: SandboxMode,
    backend: BackendId,
}

impl<'a> Start<'a> {
    fn of(spec: &'a ExecSpec) -> Self {
        Self {
            schema: SCHEMA,
            run_id: spec.run_id(),
            argv: spec.argv().iter().map(|arg| arg.to_string_lossy()).collect(),
            command: spec.long_command(),
            workdir: spec.workdir().to_string_lossy(),
            mode: spec.policy().mode(),
            backend: spec.plan().backend,
        }
    }
}

fn show(plan: &DryRun<'_>, documents: &mut Documents) {
    documents.deliver(plan);
    if !documents.on_stdout() {
        render::dry_run(plan);
    }
}

/// The exit status of a run that took place. Who told Ringfence to stop hears that it did, and
/// never that all went well.
pub(super) fn status(report: &RunReport, told: Option<i32>) -> u8 {
    match told {
        Some(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        None if report.timed_out => TIMED_OUT,
        None => report.exit.shell_status(),
    }
}

#[cfg(test)]
mod tests {
    use ringfence::Exit;

    use super::super::render::tests::report;
    use super::*;

    #[test]
    fn the_exit_status_is_the_commands_own() {
        assert_eq!(status(&report(), None), 0);
        let failed = RunReport {
            exit: Exit::Code(125),
            ..report()
        };
        assert_eq!(status(&failed, None), 125);
        let killed = RunReport {
            exit: Exit::Signal(9),
            ..report()
        };
        assert_eq!(status(&killed, None), 137);
    }

    #[test]
    fn a_deadline_counts_more_than_how_the_command_ended() {
        let late = RunReport {
            timed_out: true,
            exit: Exit::Code(0),
            ..report()
        };
        assert_eq!(status(&late, None), 124);
    }

    #[test]
    fn being_told_to_stop_is_never_success() {
        assert_eq!(status(&report(), Some(15)), 143);
        assert_eq!(
            status(
                &RunReport {
                    timed_out: true,
                    ..report()
                },
                Some(2)
            ),
            130
        );
    }
}
