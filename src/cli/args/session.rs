//! What `ringfence session` takes.

use std::path::PathBuf;

use clap::Subcommand;
use ringfence::SandboxMode;

use super::{MODES, one_of, path};

const STATUS: &str = "\
Exit status:
  0 done, 2 not possible as asked, 5 nothing can be kept or recorded";

/// What `ringfence session` does.
#[derive(Debug, Subcommand)]
#[command(after_help = STATUS)]
pub(crate) enum SessionCommand {
    /// Make a session, and print its id
    New {
        /// Its directory, for ever [default: this one]
        #[arg(short = 'C', long, value_name = "DIR", value_parser = path())]
        workspace: Option<PathBuf>,
        /// Its mode [default: none of its own, so that of the deployment]
        #[arg(short, long, value_parser = one_of(&MODES))]
        mode: Option<SandboxMode>,
        /// Its id: up to 64 letters, digits, `.`, `_` and `-` [default: one is made up]
        #[arg(long, value_name = "NAME")]
        id: Option<String>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show a session and what happened to it
    Show {
        /// Its id
        id: String,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show every session
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Switch a session to a mode, from its next run on
    Mode {
        /// Its id
        id: String,
        /// The mode
        #[arg(value_parser = one_of(&MODES))]
        mode: SandboxMode,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}
