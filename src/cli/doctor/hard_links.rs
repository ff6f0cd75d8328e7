//! Hard links from the workspace to elsewhere: files that have a name here, and one that is not.
//!
//! Such a file is inside of every writable root that one of its names is in. No layer of
//! confinement can tell its names apart (docs/adr/0002-layers.md), so they are counted beforehand.

mod walk;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use ringfence::WorkspaceRoot;
use serde::Serialize;

use super::twin;
use walk::{Bounds, Cut, Walk, walk};

/// A tree with more names than this is looked at in part.
const NAMES: usize = 200_000;
/// So is one that takes longer.
const TIME: Duration = Duration::from_secs(2);
/// How many paths are listed of each list.
const LISTED: usize = 20;

const ADVICE: &str =
    "copy a file in place (`cp FILE FILE.new && mv FILE.new FILE`), or keep it as it is with `--protect FILE`";

/// The hard links of a workspace.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HardLinks {
    /// Absent when there is none.
    pub(super) workspace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_bytes: Option<String>,
    /// The first of them by their paths.
    pub(super) files: Vec<LinkedFile>,
    /// How many there are.
    pub(super) total: usize,
    /// Whether every name was looked at.
    pub(super) complete: bool,
    /// Why not.
    pub(super) detail: Option<String>,
    /// The first places that were not looked at.
    pub(super) not_looked_at: Vec<NotLookedAt>,
    /// How many there are.
    pub(super) not_looked_at_total: usize,
    /// What the advice costs.
    pub(super) cost: Option<String>,
    /// What to do. Absent when nothing is to be done.
    pub(super) advice: Option<&'static str>,
}

/// A file with a name outside.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LinkedFile {
    /// One of its names in the workspace.
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    /// How many names it has.
    pub(super) links: u64,
    /// How many of them were found inside.
    pub(super) inside: u64,
}

/// A place that was not looked at.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NotLookedAt {
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    pub(super) reason: String,
}

/// Looks through a workspace, or says why there is none.
pub(super) fn examine(root: Result<WorkspaceRoot, String>) -> HardLinks {
    let bounds = Bounds {
        names: NAMES,
        time: TIME,
    };
    match root {
        Ok(root) => told(&root, walk(&root, &bounds)),
        Err(reason) => HardLinks {
            detail: Some(reason),
            ..HardLinks::default()
        },
    }
}

fn told(root: &WorkspaceRoot, mut found: Walk) -> HardLinks {
    found.linked.sort_by(|a, b| a.path.cmp(&b.path));
    found.unread.sort_by(|a, b| a.path.cmp(&b.path));
    let total = found.linked.len();
    let unread = found.unread.len();
    let (workspace, workspace_bytes) = text(root.path());
    let detail = match (&found.cut, unread) {
        (Some(Cut::Names), _) => Some(format!("the search ended after {NAMES} names")),
        (Some(Cut::Time), _) => Some(format!("the search ended after {} seconds", TIME.as_secs())),
        (None, 0) => None,
        (None, _) => Some("some places could not be looked at".to_owned()),
    };
    let bytes: u64 = found.linked.iter().map(|file| file.bytes).sum();
    HardLinks {
        workspace: Some(workspace),
        workspace_bytes,
        files: found
            .linked
            .into_iter()
            .take(LISTED)
            .map(|file| {
                let (path, path_bytes) = text(&root.path().join(file.path));
                LinkedFile {
                    path,
                    path_bytes,
                    links: file.links,
                    inside: file.inside,
                }
            })
            .collect(),
        total,
        complete: detail.is_none(),
        detail,
        not_looked_at: found
            .unread
            .into_iter()
            .take(LISTED)
            .map(|place| {
                let (path, path_bytes) = text(&root.path().join(place.path));
                NotLookedAt {
                    path,
                    path_bytes,
                    reason: place.reason,
                }
            })
            .collect(),
        not_looked_at_total: unread,
        cost: (total > 0).then(|| format!("copies of all of them take {bytes} bytes")),
        advice: (total > 0).then_some(ADVICE),
    }
}

/// A path as text, and its base64 twin.
fn text(path: &Path) -> (String, Option<String>) {
    (path.to_string_lossy().into_owned(), twin(path.as_os_str().as_bytes()))
}
