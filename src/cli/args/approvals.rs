//! What `ringfence approvals`, `approve` and `deny` take.

use clap::{Args, Subcommand};

/// What `ringfence approvals` does.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// Show the requests that wait for an answer
    List {
        /// Show those that have an end, too
        #[arg(long)]
        all: bool,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show everything of a request
    Show {
        /// Its id, the beginning of it, or its short code
        id: String,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}

const ANSWER_STATUS: &str = "\
Exit status:
  0 answered, 1 not answered, 2 not possible as asked, 4 the request has expired,
  5 there is no terminal, or nobody waits for the answer any more";

/// What `ringfence approve` and `ringfence deny` take.
#[derive(Args, Debug)]
#[command(after_help = ANSWER_STATUS)]
pub(crate) struct AnswerArgs {
    /// The request: its id, the beginning of it, or its short code
    pub(crate) id: String,
    /// Answer at once, without the card; recorded as asserted and not as seen
    #[arg(long)]
    pub(crate) yes: bool,
    /// What is said beside it, for whoever asked and for the record
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) reason: Option<String>,
}
