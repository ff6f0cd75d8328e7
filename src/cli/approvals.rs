//! `ringfence approvals`, `approve` and `deny`: requests for one looser run, answered from elsewhere.

use std::env;
use std::fmt::Write as _;

use ringfence::approval::card::{Layout, card};
use ringfence::approval::{Answer, Listed, Moment, NotAnswered, Queue, State, around};
use ringfence::error::ErrorBody;
use ringfence::exec::new_run_id;
use ringfence::facts::SCHEMA;
use ringfence::{Error, ErrorReport};

use super::args::{AnswerArgs, ApprovalsCommand};
use super::documents::Documents;
use super::places::known_state_dir;
use super::text::{quoted, visible};
use super::{UNAVAILABLE, USAGE, render};

/// Exit status for a negative answer.
const NO: u8 = 1;
/// Exit status for what has expired.
const EXPIRED: u8 = 4;

/// Shows requests, and returns the exit status of the program.
pub(crate) fn approvals(command: &ApprovalsCommand) -> u8 {
    let (json, shown) = match command {
        ApprovalsCommand::List { all, json } => (*json, list(*all, *json)),
        ApprovalsCommand::Show { id, json } => (*json, show(id, *json)),
    };
    match shown {
        Ok(()) => 0,
        Err(error) => refused(&error, json),
    }
}

fn list(all: bool, json: bool) -> Result<(), NotAnswered> {
    let (listed, notes) = queue()?.list(all)?;
    for note in notes {
        render::trouble(&note);
    }
    let mut documents = Documents::new(json);
    documents.deliver(&listed);
    if !json {
        let rows: Vec<_> = listed.iter().map(row).collect();
        let text = if rows.is_empty() {
            "No request waits for an answer.\n".to_owned()
        } else {
            rows.concat()
        };
        render::requests(&text);
    }
    Ok(())
}

/// A request in a few lines: what it is, and not enough to answer it.
fn row(listed: &Listed) -> String {
    let request = &listed.request;
    let argv: Vec<_> = request.argv().iter().map(|word| quoted(word)).collect();
    let mut text = format!(
        "{}  {}  {}\n",
        visible(request.id()),
        visible(request.code()),
        listed.state.word()
    );
    let _ = writeln!(text, "    run     {}", argv.join(" "));
    for (number, line) in request.difference_text().iter().enumerate() {
        let name = if number == 0 { "looser" } else { "" };
        let _ = writeln!(text, "    {name:7} {}", visible(line));
    }
    let _ = writeln!(text, "    until   {}", visible(request.expires_at()));
    text
}

fn show(id: &str, json: bool) -> Result<(), NotAnswered> {
    let listed = queue()?.find(id)?;
    let mut documents = Documents::new(json);
    documents.deliver(&listed);
    if !json {
        let now = Moment::now().map_err(|source| Error::Host {
            doing: "looking at the clock",
            source,
        })?;
        let state = listed.state.word();
        let by = listed.decision.as_ref().map_or_else(String::new, |decision| {
            let by = decision.by();
            let reason = by
                .reason
                .as_deref()
                .map_or_else(String::new, |it| format!(": {}", visible(it)));
            format!(", by {}{reason}", visible(&by.principal))
        });
        let mut text = card(&listed.request, &now, Layout::default());
        if listed.state != State::Pending
            && let Some((_, rest)) = text.split_once('\n')
        {
            // Nobody is asked any more, so its first line would mislead.
            text = format!("── request  {} ── {state} ──\n{rest}", visible(listed.request.id()));
        }
        render::requests(&format!("{text} STATE    {state}{by}\n"));
    }
    Ok(())
}

/// Answers a request, and returns the exit status of the program.
pub(crate) fn answer(args: &AnswerArgs, allow: bool) -> u8 {
    match attempt(args, allow) {
        Ok(listed) => {
            let done = if allow { "allowed once" } else { "denied" };
            render::requests(&format!("{} is {done}\n", visible(listed.request.id())));
            0
        }
        Err(error) => refused(&error, false),
    }
}

fn attempt(args: &AnswerArgs, allow: bool) -> Result<Listed, NotAnswered> {
    let inside = around(env::var_os("RINGFENCE_RUN_ID"));
    if let Some(inside) = &inside {
        // Before anything is looked up: a command has no business there.
        let run = inside.run.clone();
        return Err(NotAnswered::Inside { run });
    }
    let queue = queue()?;
    let listed = queue.find(&args.id)?;
    let answer = Answer {
        allow,
        reason: args.reason.clone(),
    };
    if args.yes {
        queue.answer(&listed, &answer, inside.as_ref())?;
    } else {
        queue.answer_at_terminal(&listed, &answer, inside.as_ref())?;
    }
    Ok(listed)
}

fn queue() -> Result<Queue, Error> {
    Queue::open(&known_state_dir()?)
}

/// Says why there is no answer, and gives the exit status for it.
fn refused(error: &NotAnswered, json: bool) -> u8 {
    let mut documents = Documents::new(json);
    documents.deliver(&ErrorReport {
        schema: SCHEMA,
        run_id: new_run_id(),
        error: ErrorBody {
            code: error.code(),
            detail: None,
            message: error.to_string(),
            hint: error.hint().map(str::to_owned),
            tried: Vec::new(),
        },
    });
    if !json {
        render::not_answered(error);
    }
    match error {
        NotAnswered::Ambiguous { .. } | NotAnswered::Failed(Error::Input { .. }) => USAGE,
        NotAnswered::Expired { .. } => EXPIRED,
        NotAnswered::Lapsed { .. } | NotAnswered::NoTerminal { .. } | NotAnswered::Failed(_) => UNAVAILABLE,
        _ => NO,
    }
}
