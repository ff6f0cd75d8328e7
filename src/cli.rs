//! The program's subcommands. `args` reads the command line, only `render` prints.

mod answerers;
mod approvals;
mod args;
mod audit;
mod command_file;
mod doctor;
mod documents;
mod dry_run;
mod explain;
mod explanation;
mod limits;
mod notes;
mod places;
mod policy;
mod render;
mod request;
mod retry;
mod run;
mod session;
mod signals;
mod standing;
mod text;
mod values;

use std::ffi::OsString;

use args::{Cli, Command, DoctorArgs};
use documents::Documents;
use ringfence::exec::new_run_id;
use ringfence::{ErrorReport, SandboxMode};

/// Exit status of `run` when Ringfence could not run the command, wrong usage included.
const RUN_REFUSED: u8 = 125;
/// Exit status of `doctor` when `workspace-write` cannot be enforced in full.
const NOT_IN_FULL: u8 = 1;
/// Exit status of the other subcommands for wrong usage.
const USAGE: u8 = 2;

/// Exit status of the other subcommands when no backend can serve.
const UNAVAILABLE: u8 = 5;

/// Runs the program with these words, the first being its own name; returns its exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    // No option comes before the subcommand, so the first word tells which one was meant.
    let refused = if words.get(1).is_some_and(|word| word == "run") {
        RUN_REFUSED
    } else {
        USAGE
    };
    match Cli::read(words) {
        Ok(Cli {
            command: Command::Run(args),
        }) => run::run(&args),
        Ok(Cli {
            command: Command::Explain(args),
        }) => explain::explain(&args),
        Ok(Cli {
            command: Command::Retry(args),
        }) => retry::retry(&args),
        Ok(Cli {
            command: Command::Doctor(args),
        }) => doctor(&args),
        Ok(Cli {
            command: Command::Audit(args),
        }) => audit::audit(&args),
        Ok(Cli {
            command: Command::Session(command),
        }) => session::session(&command),
        Ok(Cli {
            command: Command::Approvals(command),
        }) => approvals::approvals(&command),
        Ok(Cli {
            command: Command::Approve(args),
        }) => approvals::answer(&args, true),
        Ok(Cli {
            command: Command::Deny(args),
        }) => approvals::answer(&args, false),
        Err(answer) if answer.use_stderr() => {
            render::usage(&answer);
            refused
        }
        Err(answer) => {
            render::help(&answer);
            0
        }
    }
}

/// Tells what the host gives; returns the exit status.
fn doctor(args: &DoctorArgs) -> u8 {
    let mut documents = Documents::new(args.json);
    let findings = match doctor::examine(args.workspace.as_deref()) {
        Ok(findings) => findings,
        Err(error) => {
            documents.deliver(&ErrorReport::new(&new_run_id(), &error));
            if !documents.on_stdout() {
                render::error(&error);
            }
            return USAGE;
        }
    };
    documents.deliver(&findings);
    if !documents.on_stdout() {
        render::doctor(&findings);
    }
    if findings.in_full(SandboxMode::WorkspaceWrite) {
        0
    } else {
        NOT_IN_FULL
    }
}
