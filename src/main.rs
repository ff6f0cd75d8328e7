//! The program `ringfence`: reads the command line and hands over to a subcommand.
#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    ringfence_backend::descriptor::heed_children();
    ExitCode::from(cli::main(std::env::args_os().collect()))
}
