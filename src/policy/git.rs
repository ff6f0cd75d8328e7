//! The repository of a linked git worktree, which lies outside of it.

use std::path::Path;

use ringfence_backend::{PinnedPath, Protected};

use super::open::open_protected;
use super::{PolicyError, open_writable};

/// The most that is read of a file by which git finds a repository, in bytes.
const LONGEST: u64 = 8192;

/// What a run in a linked worktree needs besides it, and what of that stays as it is.
#[derive(Clone, Debug)]
pub struct GitWorktree {
    /// The repository's own directory, which all its worktrees share.
    pub repository: PinnedPath,
    /// What git runs or follows from there: hooks, configuration, and the files that lead from the
    /// worktree to the repository and back.
    pub protected: Vec<Protected>,
}

/// Finds the repository of a linked worktree (gitrepository-layout(5)); none when `root` is no such
/// worktree.
///
/// The file `.git` in a worktree could be the work of a command of an earlier run. So it is believed only
/// when it names a place among the repository's own worktrees, which points back at this one: nobody
/// can arrange that who may not write there already.
///
/// # Errors
/// [`PolicyError`] when what was found cannot be opened.
pub fn git_worktree(root: &Path) -> Result<Option<GitWorktree>, PolicyError> {
    let link = root.join(".git");
    let named = first_line(&link).and_then(|line| line.strip_prefix("gitdir: ").map(|named| root.join(named)));
    let Some(private) = named.and_then(|named| PinnedPath::open(&named).ok()) else {
        return Ok(None);
    };
    let private = private.path();
    let points_back = first_line(&private.join("gitdir")).is_some_and(|back| same_file(&private.join(back), &link));
    let Some(common) = first_line(&private.join("commondir")).filter(|_| points_back) else {
        return Ok(None);
    };
    let repository = open_writable(Path::new("/"), &private.join(common))?;
    if private.parent() != Some(&repository.path().join("worktrees")) {
        return Ok(None);
    }
    let inside = ["hooks", "config"].map(|name| repository.path().join(name));
    let leading = ["gitdir", "commondir"].map(|name| private.join(name));
    let protected = inside
        .into_iter()
        .chain(leading)
        .chain([link])
        .map(|path| open_protected(Path::new("/"), &path))
        .collect::<Result<_, _>>()?;
    Ok(Some(GitWorktree { repository, protected }))
}

/// The first line of a small file that is no link.
fn first_line(file: &Path) -> Option<String> {
    let about = std::fs::symlink_metadata(file).ok()?;
    if !about.is_file() || about.len() > LONGEST {
        return None;
    }
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().next().map(str::to_owned)
}

/// Whether two paths lead to one file.
fn same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| PinnedPath::open(path).map(|found| found.id());
    matches!((id(one), id(other)), (Ok(one), Ok(other)) if one == other)
}
