//! What `ringfence retry` takes.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use ringfence::SandboxMode;
use ringfence::config::Answerer;

use super::{MODES, one_of, path};

pub(crate) const RETRY_EXAMPLES: &str = "\
Exit status:
  the command's own once it was allowed and ran; 1 cancelled, 2 not possible as asked, 3 rejected,
  4 expired, 5 nobody could be asked or nothing can confine it. The report is the authority.

Example:
  ringfence retry 019… --write ~/.npm --justification 'npm needs its cache'";

/// What `ringfence retry` takes.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("change").required(true).args(["mode", "write"]))]
pub(crate) struct RetryArgs {
    /// The finished run: the runId of its report
    pub(crate) run: String,
    /// Ask for this looser mode
    #[arg(short, long, value_parser = one_of(&MODES))]
    pub(crate) mode: Option<SandboxMode>,
    /// Ask that PATH may change as well
    #[arg(long, value_name = "PATH", value_parser = path())]
    pub(crate) write: Option<PathBuf>,
    /// Why it is needed, for whoever decides
    #[arg(long, value_name = "TEXT")]
    pub(crate) justification: String,
    /// Who is asked: tty, queue or hook [default: as deployed, else tty, then queue]
    #[arg(long, value_name = "HOW", value_parser = one_of(&ANSWERERS))]
    pub(crate) answer: Option<Answerer>,
    /// How long to wait for an answer, such as 90s or 15m [default: 15m]
    #[arg(long, value_name = "DUR", allow_hyphen_values = true)]
    pub(crate) wait: Option<OsString>,
    /// Give a variable the value that it had (repeatable); values are not kept
    #[arg(long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub(crate) env: Vec<OsString>,
    /// Capture the output, and print one JSON report in its place
    #[arg(long)]
    pub(crate) json: bool,
}

const ANSWERERS: [(&str, Answerer); 3] = [
    (Answerer::Tty.name(), Answerer::Tty),
    (Answerer::Queue.name(), Answerer::Queue),
    (Answerer::Hook.name(), Answerer::Hook),
];
