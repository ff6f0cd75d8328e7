//! What `ringfence audit` takes.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use ringfence::audit::Event;
use ringfence::audit::export::Format;
use ringfence::facts::Operation;

use super::{one_of, path};

const LIST_EXAMPLES: &str = "\
Examples:
  ringfence audit list --since 1h --denied
  ringfence audit list --path '/etc/**' --op write --json";

const VERIFY_EXAMPLES: &str = "\
Exit status:
  0 when the trail verifies, 6 when it does not or when that cannot be proven

Without a checkpoint that was kept elsewhere nobody can tell that the newest records were cut off, or
that somebody who may write the state directory wrote the whole trail anew.

Example:
  ringfence audit checkpoint > /mnt/elsewhere/checkpoint
  ringfence audit verify --against /mnt/elsewhere/checkpoint";

const EXPORT_EXAMPLES: &str = "\
Exit status:
  0 when every record was given out, 1 when there are some of a newer version, which are left out

Examples:
  ringfence audit export --format ocsf --since 1d --output events.ndjson
  ringfence audit export --format journal | systemd-journal-remote --output=ringfence.journal -";

const STATUS: &str = "\
Exit status:
  0 done, 1 not there or not all of it, 2 not possible as asked, 5 the trail cannot be read or written,
  6 it does not verify";

/// What `ringfence audit` takes.
#[derive(Args, Debug)]
#[command(after_help = STATUS)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
}

/// Its subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List records, oldest first
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Show one record, or everything about a run
    Show(ShowArgs),
    /// Show the newest records
    Tail(TailArgs),
    /// Count what was run, refused and decided
    Summary(SummaryArgs),
    /// Check that nothing was changed, removed or put in another order
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Print how many records there are and the root of their tree, to be kept elsewhere
    Checkpoint(CheckpointArgs),
    /// Give out the records in the form of another engine
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Make a key that signs checkpoints, and print the key that verifies them
    Key(KeyArgs),
    /// Remove what is old, in whole files, and record that
    Prune(PruneArgs),
}

/// Which records are listed.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Not older than DUR, such as 90s, 1h or 7d, or not before TIME, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "DUR|TIME")]
    pub(crate) since: Option<OsString>,
    /// About a path like GLOB: * within a name, ** over slashes
    #[arg(long, value_name = "GLOB")]
    pub(crate) path: Option<String>,
    /// Denials of this operation
    #[arg(long, value_parser = one_of(&OPERATIONS))]
    pub(crate) op: Option<Operation>,
    /// Of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = PossibleValuesParser::new(Event::NAMES))]
    pub(crate) kind: Option<String>,
    /// Of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Of this run
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// Denials, and the ends of runs in which something was denied
    #[arg(long)]
    pub(crate) denied: bool,
    /// Decisions of this kind of decider
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(DECIDERS))]
    pub(crate) decided_by: Option<String>,
    /// Print the records as JSON, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is given out, and where to.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The form of the records
    #[arg(long, value_parser = one_of(&FORMATS))]
    pub(crate) format: Format,
    /// Not older than DUR, or not before TIME
    #[arg(long, value_name = "DUR|TIME")]
    pub(crate) since: Option<OsString>,
    /// Write to FILE, readable by nobody else, in place of standard output
    #[arg(short, long, value_name = "FILE", value_parser = path())]
    pub(crate) output: Option<PathBuf>,
}

/// What is shown.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The number or the id of a record, or the id of a run or a request
    #[arg(value_name = "ID|SEQ|RUN")]
    pub(crate) what: String,
    /// Print the records as JSON, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// How much of the end is shown.
#[derive(Args, Debug)]
pub(crate) struct TailArgs {
    /// Go on as records are written
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// How many records to begin with
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) lines: usize,
    /// Print the records as JSON, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the counts are printed.
#[derive(Args, Debug)]
pub(crate) struct SummaryArgs {
    /// Not older than DUR, or not before TIME
    #[arg(long, value_name = "DUR|TIME")]
    pub(crate) since: Option<OsString>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the trail is held against.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// Prove that the trail continues the one of this checkpoint
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) against: Option<PathBuf>,
    /// Accept the checkpoint only with a signature of this key
    #[arg(long, value_name = "KEY", requires = "against")]
    pub(crate) vkey: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a checkpoint is signed.
#[derive(Args, Debug)]
pub(crate) struct CheckpointArgs {
    /// Sign it with the key in FILE
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) key: Option<PathBuf>,
}

/// Where the key goes.
#[derive(Args, Debug)]
pub(crate) struct KeyArgs {
    /// The file that is made; it must not exist yet
    #[arg(value_name = "FILE", value_parser = path())]
    pub(crate) file: PathBuf,
}

/// What is kept.
#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
pub(crate) struct PruneArgs {
    /// Keep what is not older than DUR, such as 90d
    #[arg(long, value_name = "DUR")]
    pub(crate) keep: Option<OsString>,
    /// Keep no more than BYTES, such as 500m or 2g
    #[arg(long, value_name = "BYTES")]
    pub(crate) keep_bytes: Option<OsString>,
}

const FORMATS: [(&str, Format); 7] = [
    ("jsonl", Format::Jsonl),
    ("ocsf", Format::Ocsf),
    ("ecs", Format::Ecs),
    ("csv", Format::Csv),
    ("journal", Format::Journal),
    ("syslog", Format::Syslog),
    ("syslog-octets", Format::SyslogOctets),
];

const DECIDERS: [&str; 7] = ["policy", "rule", "tty", "queue", "hook", "mcp", "clock"];

const OPERATIONS: [(&str, Operation); 15] = [
    ("create", Operation::Create),
    ("write", Operation::Write),
    ("truncate", Operation::Truncate),
    ("remove", Operation::Remove),
    ("rename", Operation::Rename),
    ("link", Operation::Link),
    ("symlink", Operation::Symlink),
    ("mkdir", Operation::Mkdir),
    ("mknod", Operation::Mknod),
    ("chmod", Operation::Chmod),
    ("chown", Operation::Chown),
    ("utime", Operation::Utime),
    ("xattr", Operation::Xattr),
    ("flags", Operation::Flags),
    ("mount", Operation::Mount),
];
