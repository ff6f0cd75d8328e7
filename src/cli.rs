//! The program's subcommands. `args` reads the command line, only `render` prints.

mod args;
mod doctor;
mod documents;
mod dry_run;
mod render;
mod request;
mod run;
mod signals;
mod text;
mod values;

use std::ffi::OsString;

use args::{Cli, Command};

/// Exit status of `run` when Ringfence could not run the command, wrong usage included.
const RUN_REFUSED: u8 = 125;
/// Exit status of the other subcommands for wrong usage.
const USAGE: u8 = 2;

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
            command: Command::Doctor(args),
        }) => doctor::doctor(&args),
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
