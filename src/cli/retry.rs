//! `ringfence retry`: one approved, strictly looser run of exactly what ran before.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use ringfence::approval::{Bound, Desk, Request, Withdrawal};
use ringfence::audit::Trail;
use ringfence::config::{Recording, Settings};
use ringfence::error::NotApproved;
use ringfence::exec::new_run_id;
use ringfence::policy::open_root;
use ringfence::retry::{Change, Circumstances, Finished, Retry};
use ringfence::selection::Selection;
use ringfence::session::SessionError;
use ringfence::{Abort, Capture, Error, ErrorCode, ErrorReport, RunReport, Runner, SandboxMode};

use super::answerers::approval_settings;
use super::args::RetryArgs;
use super::documents::Documents;
use super::places::{home, state_dir};
use super::run::{follow, status};
use super::signals::StopSignals;
use super::standing::{deployed, sessions};
use super::{UNAVAILABLE, USAGE, render, values};

/// Exit status when the request was withdrawn.
const CANCELLED: u8 = 1;
/// Exit status when the answer was no.
const REJECTED: u8 = 3;
/// Exit status when nobody answered in time.
const EXPIRED: u8 = 4;

/// Asks, and runs the command once when the answer is yes; returns the exit status of the program.
pub(crate) fn retry(args: &RetryArgs) -> u8 {
    let run_id = new_run_id();
    let mut documents = Documents::new(args.json);
    match attempt(args, &run_id, &mut documents) {
        Ok((report, told)) => {
            documents.deliver(&report);
            if !documents.on_stdout() {
                render::notes(&report);
            }
            status(&report, told)
        }
        Err(error) => {
            documents.deliver(&ErrorReport::new(&run_id, &error));
            if !documents.on_stdout() {
                render::error(&error);
            }
            refused(&error)
        }
    }
}

fn attempt(args: &RetryArgs, run_id: &str, documents: &mut Documents) -> Result<(RunReport, Option<i32>), Error> {
    if args.justification.trim().is_empty() {
        return Err(Error::Input {
            field: "--justification".to_owned(),
            value: args.justification.clone().into(),
            reason: "it says nothing".to_owned(),
            hint: "say in a sentence why it is needed: whoever decides reads it".to_owned(),
        });
    }
    let state = state_dir()?;
    let runner = Runner::with(Selection::of_this_system(state.clone(), env::var_os("PATH")));
    let finished = Finished::find(&runner, &args.run)?;
    let root = open_root(finished.workspace())?;
    let settings = deployed(Some(&root))?;
    let session = finished.session().map(str::to_owned);
    let session_mode = mode_now(session.as_deref(), &settings)?;
    // What was approved is recorded in any case, and so is the run that it was approved for.
    let runner = runner.with_audit(settings.audit().max(Recording::On), settings.sources());
    let retry = Retry::of(
        finished,
        &change(args)?,
        &circumstances(args, run_id, state.clone(), &settings, session_mode)?,
    )?;
    let state = state.unwrap_or_default();
    let desk = Desk::open(
        &state,
        Arc::new(Trail::open(&state)?),
        approval_settings(args, &settings)?,
    )?;
    // While somebody is asked, a signal withdraws the request.
    let signals = StopSignals::watch(true)?;
    let approved = retry.ask(&runner, &desk, &asker(), &args.justification, &Waiting(signals.abort()));
    signals.finish();
    let approved = approved?;
    // What was deployed or switched while it was asked for holds as well.
    let now = deployed(Some(&root))?;
    if now != settings || mode_now(session.as_deref(), &now)? != session_mode {
        return Err(NotApproved::Changed {
            request: approved.request().to_owned(),
            changed: Bound::Policy,
        }
        .into());
    }
    follow(args.json, documents, |abort, tell| approved.run(&runner, abort, tell))
}

/// Whoever waits for the answer at this end.
struct Waiting<'a>(&'a Abort);

impl Withdrawal for Waiting<'_> {
    fn is_withdrawn(&self) -> bool {
        self.0.requests() > 0
    }

    fn waits(&self, request: &Request) {
        render::waits(request);
    }
}

fn change(args: &RetryArgs) -> Result<Change, Error> {
    match (args.mode, &args.write) {
        (Some(mode), None) => Ok(Change::Mode(mode)),
        (None, Some(path)) => Ok(Change::Write(path.clone())),
        _ => Err(Error::Input {
            field: "--mode".to_owned(),
            value: OsString::new(),
            reason: "a retry is looser in exactly one thing".to_owned(),
            hint: "give either --mode or --write".to_owned(),
        }),
    }
}

fn circumstances(
    args: &RetryArgs,
    run_id: &str,
    state_dir: Option<PathBuf>,
    settings: &Settings,
    session_mode: Option<SandboxMode>,
) -> Result<Circumstances, Error> {
    let given = args.env.iter().map(|text| values::variable(text));
    Ok(Circumstances {
        run_id: run_id.to_owned(),
        given_env: given.collect::<Result<_, _>>()?,
        callers_env: env::vars_os().collect(),
        home: home(),
        state_dir,
        ceiling: settings.ceiling(),
        require: settings.require(),
        session_mode,
        tmpdir: env::var_os("TMPDIR").map(PathBuf::from),
        capture: if args.json {
            Capture::captured()
        } else {
            Capture::Passthrough
        },
        input: None,
    })
}

/// The mode that the next run of the session would have; nothing where there is no such session here.
fn mode_now(session: Option<&str>, settings: &Settings) -> Result<Option<SandboxMode>, Error> {
    let Some(id) = session else { return Ok(None) };
    match sessions()?.load(id) {
        Ok(session) => Ok(Some(session.mode().unwrap_or(settings.mode()))),
        Err(SessionError::Unknown { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Who asks, as far as this process knows.
fn asker() -> String {
    let parent = std::os::unix::process::parent_id();
    let name = std::fs::read_to_string(format!("/proc/{parent}/comm")).unwrap_or_default();
    match name.trim() {
        "" => format!("process {parent}"),
        name => format!("{name}, process {parent}"),
    }
}

/// The exit status of a retry that did not run.
const fn refused(error: &Error) -> u8 {
    match error.code() {
        ErrorCode::ApprovalRejected => REJECTED,
        ErrorCode::ApprovalExpired => EXPIRED,
        ErrorCode::ApprovalCancelled => CANCELLED,
        ErrorCode::ApprovalUnavailable | ErrorCode::SandboxUnavailable | ErrorCode::AuditUnwritable => UNAVAILABLE,
        _ => USAGE,
    }
}
