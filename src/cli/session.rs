//! `ringfence session`: make a session, look at it, switch its mode.

use std::fmt::Write as _;
use std::path::Path;

use ringfence::audit::{Durability, Entry, Event as Record, Trail};
use ringfence::config::{Recording, Settings};
use ringfence::exec::new_run_id;
use ringfence::facts::SCHEMA;
use ringfence::session::{Event, Listed, New, Session};
use ringfence::{Error, ErrorCode, ErrorReport, SandboxMode};
use serde::Serialize;

use super::args::SessionCommand;
use super::documents::Documents;
use super::places::{state_dir, workspace};
use super::standing::{deployed, sessions};
use super::text::{Rows, shown, twin, visible};
use super::{UNAVAILABLE, USAGE, render};

/// What is told, as a document and in words.
struct Told {
    document: Document,
    text: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Document {
    One(View),
    All(Vec<Row>),
}

/// Does what was asked and returns the exit status of the program.
pub(crate) fn session(command: &SessionCommand) -> u8 {
    let (json, outcome) = match command {
        SessionCommand::New {
            workspace,
            mode,
            id,
            json,
        } => (*json, new(workspace.as_deref(), *mode, id.as_deref())),
        SessionCommand::Show { id, json } => (*json, show(id)),
        SessionCommand::List { json } => (*json, list()),
        SessionCommand::Mode { id, mode, json } => (*json, switch(id, *mode)),
    };
    let mut documents = Documents::new(json);
    match outcome {
        Ok(Told { document, text }) => {
            documents.deliver(&document);
            if !documents.on_stdout() {
                render::sessions(&text);
            }
            0
        }
        Err(error) => {
            documents.deliver(&ErrorReport::new(&new_run_id(), &error));
            if !documents.on_stdout() {
                render::error(&error);
            }
            match error.code() {
                ErrorCode::Internal | ErrorCode::AuditUnwritable => UNAVAILABLE,
                _ => USAGE,
            }
        }
    }
}

/// A session, as a document shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View {
    schema: u32,
    id: String,
    cwd: String,
    /// The path in base64, when it is no UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd_bytes: Option<String>,
    mode: Option<SandboxMode>,
    /// The mode of its next run, unless that asks for a stricter one; null when it could have none.
    effective_mode: Option<SandboxMode>,
    created_at: String,
    events: Vec<Event>,
    /// Why it can have no run, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// A session in the list: as it is, or why nothing can be said of it.
#[derive(Serialize)]
#[serde(untagged)]
enum Row {
    Session(View),
    Unreadable {
        schema: u32,
        id: String,
        error: ringfence::error::ErrorBody,
    },
}

fn new(named: Option<&Path>, mode: Option<SandboxMode>, id: Option<&str>) -> Result<Told, Error> {
    let cwd = workspace(named)?;
    let settings = deployed(Some(&cwd))?;
    if let Some(mode) = mode {
        settings.allows(mode, "--mode")?;
    }
    let new = New { cwd: &cwd, mode, id };
    let session = sessions()?.create(new, |session| {
        let event = Record::SessionCreated {
            cwd: session.cwd().to_string_lossy().into_owned(),
            mode,
        };
        record(&settings, session, event)
    })?;
    Ok(Told {
        text: format!("{}\n", session.id()),
        document: Document::One(View::of(&session, &Ok(settings))),
    })
}

fn show(id: &str) -> Result<Told, Error> {
    let session = sessions()?.load(id)?;
    let view = View::of(&session, &settings_of(&session));
    Ok(Told {
        text: view.text(),
        document: Document::One(view),
    })
}

fn list() -> Result<Told, Error> {
    let mut text = String::new();
    let mut rows = Vec::new();
    for Listed { id, session } in sessions()?.list()? {
        rows.push(match session {
            Ok(session) => {
                let view = View::of(&session, &settings_of(&session));
                let mode = view.effective_mode.map_or("no run", SandboxMode::name);
                let _ = writeln!(text, "{id}  {mode}  {}", shown(session.cwd()));
                Row::Session(view)
            }
            Err(error) => {
                let _ = writeln!(text, "{id}  {}", visible(&error.to_string()));
                Row::Unreadable {
                    schema: SCHEMA,
                    error: ErrorReport::new(&id, &error.into()).error,
                    id,
                }
            }
        });
    }
    Ok(Told {
        document: Document::All(rows),
        text,
    })
}

fn switch(id: &str, to: SandboxMode) -> Result<Told, Error> {
    let store = sessions()?;
    let settings = settings_of(&store.load(id)?)?;
    settings.allows(to, &format!("the session {id}"))?;
    let session = store.switch(id, to, |before| {
        let event = Record::ModeChanged {
            from: before.mode(),
            to,
        };
        record(&settings, before, event)
    })?;
    Ok(Told {
        text: format!("from its next run on, the session {} is in {to}\n", session.id()),
        document: Document::One(View::of(&session, &Ok(settings))),
    })
}

/// What is deployed where a session is.
fn settings_of(session: &Session) -> Result<Settings, Error> {
    deployed(Some(&session.root()?))
}

/// Writes what is about to happen to a session into the trail.
fn record(settings: &Settings, session: &Session, event: Record) -> Result<(), Error> {
    if settings.audit() == Recording::Off {
        return Ok(());
    }
    let entry = Entry {
        session: Some(session.id().to_owned()),
        run: None,
        event,
    };
    let Some(state) = state_dir()? else { return Ok(()) };
    let recorded = Trail::open(&state).and_then(|trail| trail.append(&[entry], Durability::Disk));
    match recorded {
        Ok(_) => Ok(()),
        Err(error) if settings.audit() == Recording::Required => Err(error.into()),
        Err(error) => {
            render::trouble(&format!("this is not recorded: {error}"));
            Ok(())
        }
    }
}

impl View {
    fn of(session: &Session, settings: &Result<Settings, Error>) -> Self {
        let standing = settings.as_ref().map(|settings| {
            let mode = session.mode().unwrap_or(settings.mode());
            settings.allows(mode, &format!("the session {}", session.id()))?;
            Ok::<_, Error>(mode)
        });
        let (effective_mode, problem) = match standing {
            Ok(Ok(mode)) => (Some(mode), None),
            Ok(Err(error)) => (None, Some(error.to_string())),
            Err(error) => (None, Some(error.to_string())),
        };
        let cwd = session.cwd();
        Self {
            schema: SCHEMA,
            id: session.id().to_owned(),
            cwd: cwd.to_string_lossy().into_owned(),
            cwd_bytes: twin(cwd.as_os_str().as_encoded_bytes()),
            mode: session.mode(),
            effective_mode,
            created_at: session.events().first().map(Event::time).unwrap_or_default(),
            events: session.events().to_vec(),
            problem,
        }
    }

    fn text(&self) -> String {
        let mut rows = Rows::default();
        rows.row("session", &visible(&self.id));
        rows.row("directory", &visible(&self.cwd));
        let mode = match (self.mode, self.effective_mode) {
            (Some(mode), _) => mode.name().to_owned(),
            (None, Some(mode)) => format!("{mode}, from the deployment"),
            (None, None) => "none of its own".to_owned(),
        };
        rows.row("mode", &mode);
        if let Some(problem) = &self.problem {
            rows.row("problem", &visible(problem));
        }
        for event in &self.events {
            let what = match event {
                Event::Created { mode: None, .. } => "made".to_owned(),
                Event::Created { mode: Some(mode), .. } => format!("made, in {mode}"),
                Event::Mode { to, .. } => format!("switched to {to}"),
                _ => continue,
            };
            rows.row(&event.time(), &what);
        }
        rows.text
    }
}
