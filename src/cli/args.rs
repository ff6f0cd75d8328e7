//! The command line, as clap reads it.
//!
//! What clap refuses is a usage error and is told on stderr. Durations, sizes and variables stay
//! text here and are read in `values`, so that a wrong one is a typed error with a document.

mod approvals;
mod audit;
mod retry;
mod session;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) use approvals::{AnswerArgs, ApprovalsCommand};
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};
use ringfence::config::Recording;
use ringfence::{BackendId, Evidence, Require, SandboxMode, Temp};

pub(crate) use audit::{
    AuditArgs, AuditCommand, CheckpointArgs, ExportArgs, KeyArgs, ListArgs, PruneArgs, ShowArgs, SummaryArgs, TailArgs,
    VerifyArgs,
};
pub(crate) use retry::RetryArgs;
pub(crate) use session::SessionCommand;

const EXAMPLES: &str = "\
Examples:
  ringfence run -- make test                       look, change nothing (read-only)
  ringfence run -m workspace-write -- make test    change only what is under this directory
  ringfence run --json -t 60s -c 'ls | wc -l'      capture, and print one JSON report
  ringfence explain -m workspace-write             what each backend would do for that
  ringfence doctor                                 what this host can confine";

const RUN_EXAMPLES: &str = "\
Modes:
  read-only           changes nothing on the host; a private scratch directory exists for the run
  workspace-write     changes what is under the workspace, the temp area and each --write PATH
  danger-full-access  confines nothing

Exit status:
  the command's own; 128+N after signal N; 124 after the deadline; 125 when Ringfence could not
  run it; 126 when it is not executable; 127 when it was not found

Example:
  ringfence run -m workspace-write --write ~/.cache/pip -t 10m -- pip install .";

/// Run a command so that it can change only the files it was meant to change
#[derive(Debug, Parser)]
#[command(name = "ringfence", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command, confined
    #[command(after_help = RUN_EXAMPLES, override_usage = RUN_USAGE)]
    Run(Box<RunArgs>),
    /// Show the policy of a run, and what each backend would do for it; run nothing
    #[command(override_usage = EXPLAIN_USAGE)]
    Explain(Box<RunArgs>),
    /// Ask for one looser run of a finished one, and run it when the answer is yes
    #[command(after_help = retry::RETRY_EXAMPLES)]
    Retry(RetryArgs),
    /// Show what this host can confine, and how to make it better
    Doctor(DoctorArgs),
    /// The trail of what was run, refused and decided
    Audit(AuditArgs),
    /// Keep a directory and a mode from one run to the next
    #[command(subcommand)]
    Session(SessionCommand),
    /// Show the requests for one looser run
    #[command(subcommand)]
    Approvals(ApprovalsCommand),
    /// Allow what a request asks for, once
    Approve(AnswerArgs),
    /// Refuse what a request asks for
    Deny(AnswerArgs),
}

const RUN_USAGE: &str = "ringfence run [OPTIONS] [--] PROGRAM [ARG]...\n       ringfence run [OPTIONS] -c TEXT\n       ringfence run [OPTIONS] --command-file FILE";

const EXPLAIN_USAGE: &str = "ringfence explain [OPTIONS of run] [--] [PROGRAM [ARG]...]";

/// What `ringfence run` takes, and `ringfence explain`.
#[derive(Args, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "a switch is on or off")]
pub(crate) struct RunArgs {
    /// What the command may change [default: what is deployed, else read-only]
    #[arg(short, long, value_parser = one_of(&MODES))]
    pub(crate) mode: Option<SandboxMode>,
    /// The directory that workspace-write opens [default: this one]
    #[arg(short = 'C', long, value_name = "DIR", value_parser = path())]
    pub(crate) workspace: Option<PathBuf>,
    /// The session that the run belongs to: its directory, and its mode
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Where the command starts, from the workspace [default: the workspace]
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub(crate) workdir: Option<PathBuf>,
    /// Run `bash -c TEXT` in place of PROGRAM
    #[arg(short = 'c', value_name = "TEXT")]
    pub(crate) text: Option<OsString>,
    /// The same with the text of FILE, or - for standard input; up to 64 MiB
    #[arg(long, value_name = "FILE|-", value_parser = path())]
    pub(crate) command_file: Option<PathBuf>,
    /// Let PATH change as well (repeatable)
    #[arg(long, value_name = "PATH", value_parser = path())]
    pub(crate) write: Vec<PathBuf>,
    /// Keep PATH as it is although it lies where the command may write (repeatable)
    #[arg(long, value_name = "PATH", value_parser = path())]
    pub(crate) protect: Vec<PathBuf>,
    /// The temp area: none, one of the run's own, or the host's
    #[arg(long, value_parser = one_of(&TEMPS))]
    pub(crate) temp: Option<Temp>,
    /// Whether the command reaches the network [default: host]
    #[arg(long, value_parser = one_of(&DOORS))]
    pub(crate) network: Option<bool>,
    /// Whether the command can make sockets to other programs of this machine [default: host]
    #[arg(long, value_parser = one_of(&DOORS))]
    pub(crate) unix_sockets: Option<bool>,
    /// The means of confinement [default: auto]
    #[arg(long, value_name = "NAME", value_parser = one_of(&BACKENDS))]
    pub(crate) backend: Option<BackendChoice>,
    /// How complete enforcement must be for the command to run
    #[arg(long, value_parser = one_of(&REQUIRES))]
    pub(crate) require: Option<Require>,
    /// How denials are known: watched where possible, watched or not run at all, or read from words
    #[arg(long, value_parser = one_of(&EVIDENCES))]
    pub(crate) evidence: Option<Evidence>,
    /// Whether the run is recorded, at least as the deployment says [default: on]
    #[arg(long, value_parser = one_of(&RECORDINGS))]
    pub(crate) audit: Option<Recording>,
    /// Accept /, your home or the parent of Ringfence's state as workspace
    #[arg(long)]
    pub(crate) allow_broad_root: bool,
    /// A profile, by its name or its file
    #[arg(short, long, value_name = "NAME|FILE")]
    pub(crate) profile: Option<String>,
    /// Stop the command after DUR, such as 90s or 10m [default: 2m with --json, else none]
    #[arg(short, long, value_name = "DUR", allow_hyphen_values = true)]
    pub(crate) timeout: Option<OsString>,
    /// Time between asking the command to stop and killing it [default: 3s]
    #[arg(long, value_name = "DUR", allow_hyphen_values = true)]
    pub(crate) grace: Option<OsString>,
    /// Set a variable for the command (repeatable)
    #[arg(long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub(crate) env: Vec<OsString>,
    /// Hand on a variable that is withheld, such as a token (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) keep_env: Vec<OsString>,
    /// Withhold a variable (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) unset_env: Vec<OsString>,
    /// Standard input from FILE, or - for the caller's own
    #[arg(long, value_name = "FILE|-", value_parser = path())]
    pub(crate) stdin: Option<PathBuf>,
    /// Limit a resource: as, core, cpu, fsize, nofile or nproc, such as fsize=100m or cpu=30s (repeatable)
    #[arg(long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub(crate) limit: Vec<OsString>,
    /// Bytes kept of each stream with --json, such as 64000 or 1MiB [default: 64000]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub(crate) max_output: Option<OsString>,
    /// Bytes of a longer stream that go to a file with --json, 0 for none [default: 64MiB]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub(crate) max_spill: Option<OsString>,
    /// Keep both streams as one with --json, in the order in which they are written
    #[arg(long)]
    pub(crate) merge: bool,
    /// Capture the output, and print one JSON report in its place
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the JSON report to FILE as well
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) report: Option<PathBuf>,
    /// Write the JSON report to the open descriptor N as well
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) report_fd: Option<i32>,
    /// Tell what happens, while it does, as lines of JSON on the open descriptor N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) events_fd: Option<i32>,
    /// Show what would be done, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The program and its arguments; options end here
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

/// What `ringfence doctor` takes.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// The workspace that is searched for hard links to outside [default: this directory]
    #[arg(short = 'C', long, value_name = "DIR", value_parser = path())]
    pub(crate) workspace: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// A backend by name, or the first that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackendChoice {
    Auto,
    Named(BackendId),
}

const MODES: [(&str, SandboxMode); 3] = [
    (SandboxMode::ReadOnly.name(), SandboxMode::ReadOnly),
    (SandboxMode::WorkspaceWrite.name(), SandboxMode::WorkspaceWrite),
    (SandboxMode::DangerFullAccess.name(), SandboxMode::DangerFullAccess),
];
const TEMPS: [(&str, Temp); 3] = [("none", Temp::None), ("private", Temp::Private), ("host", Temp::Host)];
/// Whether a door is open.
const DOORS: [(&str, bool); 2] = [("host", true), ("none", false)];
const EVIDENCES: [(&str, Evidence); 3] = [
    ("auto", Evidence::Auto),
    ("strict", Evidence::Strict),
    ("off", Evidence::Off),
];
const RECORDINGS: [(&str, Recording); 3] = [
    (Recording::Off.name(), Recording::Off),
    (Recording::On.name(), Recording::On),
    (Recording::Required.name(), Recording::Required),
];
const REQUIRES: [(&str, Require); 2] = [("full", Require::Full), ("partial", Require::Partial)];
const BACKENDS: [(&str, BackendChoice); 5] = [
    ("auto", BackendChoice::Auto),
    (BackendId::Landlock.name(), BackendChoice::Named(BackendId::Landlock)),
    (BackendId::Bwrap.name(), BackendChoice::Named(BackendId::Bwrap)),
    (BackendId::Seatbelt.name(), BackendChoice::Named(BackendId::Seatbelt)),
    (BackendId::None.name(), BackendChoice::Named(BackendId::None)),
];

/// Reads a path. An empty one passes: what it is given for refuses it, with a typed error.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// Reads one of a few words; any other is refused with the list and the nearest of them.
fn one_of<T: Copy + Send + Sync + 'static>(choices: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(choices.iter().map(|(word, _)| *word)).try_map(move |given| {
        choices
            .iter()
            .find(|(word, _)| *word == given)
            .map(|(_, value)| *value)
            .ok_or("not one of the words")
    })
}

/// What runs a shell text. Without the dashes bash would take one that begins with a sign for an option.
pub(crate) fn bash(text: OsString) -> Vec<OsString> {
    let mut words = vec!["bash".into(), "-c".into()];
    if matches!(text.as_encoded_bytes().first(), Some(b'-' | b'+')) {
        words.push("--".into());
    }
    words.push(text);
    words
}

impl Cli {
    /// Reads the command line, and what clap's own rules cannot say of it.
    pub(crate) fn read(words: Vec<OsString>) -> Result<Self, clap::Error> {
        let cli = Self::try_parse_from(words)?;
        match &cli.command {
            Command::Run(args) => args.one_command("run")?,
            // Of a policy something can be said without a command.
            Command::Explain(args) if args.has_command() => args.one_command("explain")?,
            _ => {}
        }
        Ok(cli)
    }
}

impl RunArgs {
    /// The command's words: those given, or bash with the text.
    pub(crate) fn argv(&self) -> Vec<OsString> {
        match &self.text {
            Some(text) => bash(text.clone()),
            None => self.command.clone(),
        }
    }

    /// Whether a command was given, in whatever way.
    pub(crate) fn has_command(&self) -> bool {
        self.text.is_some() || self.command_file.is_some() || !self.command.is_empty()
    }

    fn one_command(&self, subcommand: &str) -> Result<(), clap::Error> {
        let is_dash = |path: &Option<PathBuf>| path.as_deref().is_some_and(|path| path == Path::new("-"));
        let problem = match (&self.text, self.command.first(), &self.command_file) {
            (None, None, None) => (
                ErrorKind::MissingRequiredArgument,
                "there is nothing to run: give PROGRAM and its arguments, -c TEXT or --command-file FILE".to_owned(),
            ),
            (Some(_), _, Some(_)) => (
                ErrorKind::ArgumentConflict,
                "-c and --command-file each give the whole command: leave one of them out".to_owned(),
            ),
            (None, Some(word), Some(_)) => (
                ErrorKind::ArgumentConflict,
                format!(
                    "--command-file gives the whole command, and `{}` comes on top of it: leave one of them out",
                    word.display()
                ),
            ),
            (None, None, Some(_)) if is_dash(&self.command_file) && is_dash(&self.stdin) => (
                ErrorKind::ArgumentConflict,
                "--command-file - and --stdin - both read standard input: give one of them a file".to_owned(),
            ),
            (Some(_), Some(word), None) => (
                ErrorKind::ArgumentConflict,
                format!(
                    "-c takes the whole command as one TEXT, and `{}` comes on top of it: \
                     quote the text as one word, or leave -c out",
                    word.display()
                ),
            ),
            _ => return Ok(()),
        };
        let mut command = Cli::command();
        command.build();
        let run = command.find_subcommand_mut(subcommand);
        Err(match run {
            Some(run) => run.error(problem.0, problem.1),
            None => clap::Error::raw(problem.0, problem.1),
        })
    }
}

#[cfg(test)]
mod tests;
