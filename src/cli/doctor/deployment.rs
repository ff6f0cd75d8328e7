//! What is deployed here, and whether anybody could answer a request for an approval.

use std::path::Path;

use nix::unistd::{AccessFlags, access};
use ringfence::config::{Answerer, Approval, ApprovalPolicy, Origin, Settings};
use ringfence::{Error, Require, SandboxMode, WorkspaceRoot};
use serde::Serialize;

use super::super::places::state_dir;
use super::super::standing::deployed;
use super::super::text::{Rows, listed, visible, word};

/// What is deployed, as far as it can be read.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeploymentRow {
    /// The files that count, the first before the others.
    files: Vec<FileRow>,
    /// Why no run can take place, in a sentence, and what to do.
    error: Option<String>,
    advice: Option<String>,
    mode: Option<SandboxMode>,
    /// The loosest mode that is allowed, where a file sets one.
    ceiling: Option<SandboxMode>,
    require: Option<Require>,
    audit: Option<&'static str>,
    approvals: Option<ApprovalsRow>,
}

#[derive(Debug, Serialize)]
struct FileRow {
    path: String,
    origin: String,
}

/// Whether anybody could answer.
#[derive(Debug, Serialize)]
pub(crate) struct ApprovalsRow {
    /// Whether anybody is asked.
    asked: bool,
    /// Who could answer.
    answerers: Vec<&'static str>,
    /// Who is named and could not, each with a reason.
    missing: Vec<String>,
    advice: Option<&'static str>,
}

/// Reads what is deployed for a workspace.
pub(super) fn examine(root: Option<&WorkspaceRoot>) -> DeploymentRow {
    match deployed(root) {
        Ok(settings) => of(&settings),
        Err(error) => refused(&error),
    }
}

fn of(settings: &Settings) -> DeploymentRow {
    let file = |path: &Path, origin: Origin| FileRow {
        path: path.to_string_lossy().into_owned(),
        origin: origin.to_string(),
    };
    DeploymentRow {
        files: settings.sources().iter().map(|it| file(&it.path, it.origin)).collect(),
        error: None,
        advice: None,
        mode: Some(settings.mode()),
        ceiling: settings.ceiling_said_in().map(|_| settings.ceiling()),
        require: Some(settings.require()),
        audit: Some(settings.audit().name()),
        approvals: Some(approvals(settings.approval())),
    }
}

fn refused(error: &Error) -> DeploymentRow {
    DeploymentRow {
        files: Vec::new(),
        error: Some(error.to_string()),
        advice: error.hint(),
        mode: None,
        ceiling: None,
        require: None,
        audit: None,
        approvals: None,
    }
}

fn approvals(approval: &Approval) -> ApprovalsRow {
    let asked = approval.policy() == ApprovalPolicy::Ask;
    let (mut answerers, mut missing) = (Vec::new(), Vec::new());
    for answerer in approval.answerers() {
        match unable(*answerer, approval) {
            None => answerers.push(answerer.name()),
            Some(reason) => missing.push(format!("{}: {reason}", answerer.name())),
        }
    }
    let advice = (asked && answerers.is_empty()).then_some(
        "nobody could approve anything, and every request would end unanswered: name \"tty\" or \"queue\" in \
         approval.answerers, mend the hook, or say so with approval.policy = \"never\"",
    );
    ApprovalsRow {
        asked,
        answerers,
        missing,
        advice,
    }
}

/// Why an answerer could not answer, in a sentence.
fn unable(answerer: Answerer, approval: &Approval) -> Option<String> {
    match answerer {
        Answerer::Queue => match state_dir() {
            Ok(Some(_)) => None,
            Ok(None) => Some("no state directory is known".to_owned()),
            Err(error) => Some(error.to_string()),
        },
        Answerer::Hook => match approval.hook().and_then(<[String]>::first) {
            Some(program) if runs(Path::new(program)) => None,
            Some(program) => Some(format!("{program} is not there, or cannot be executed")),
            None => Some("there is no approval.hook".to_owned()),
        },
        // Whether there is a terminal is known when somebody is asked.
        _ => None,
    }
}

fn runs(program: &Path) -> bool {
    program.is_file() && access(program, AccessFlags::X_OK).is_ok()
}

/// The rows in words.
pub(super) fn text(rows: &mut Rows, row: &DeploymentRow) {
    rows.heading("Deployment");
    if let Some(error) = &row.error {
        rows.row("  files", &visible(error));
        rows.advice(row.advice.as_deref());
        return;
    }
    let files = if row.files.is_empty() {
        "none".to_owned()
    } else {
        listed(row.files.iter().map(|file| &file.path))
    };
    rows.row("  files", &files);
    let named = |mode: Option<SandboxMode>| mode.map_or("none", SandboxMode::name);
    rows.row("  default mode", named(row.mode));
    rows.row("  ceiling", named(row.ceiling));
    rows.row("  required", &row.require.as_ref().map(word).unwrap_or_default());
    rows.row("  recorded", row.audit.unwrap_or_default());
    let Some(approvals) = &row.approvals else { return };
    let who = if !approvals.asked {
        "nobody is asked, every request is rejected".to_owned()
    } else if approvals.answerers.is_empty() {
        "nobody can answer".to_owned()
    } else {
        approvals.answerers.join(", ")
    };
    rows.row("  approvals", &who);
    for reason in &approvals.missing {
        rows.row("", &format!("not {}", visible(reason)));
    }
    rows.advice(approvals.advice);
}
