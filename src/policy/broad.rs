//! Roots so broad that `workspace-write` would protect next to nothing.

use std::path::Path;

use ringfence_backend::{HOST_TEMP, user_temp};

use super::{Breadth, Field, PolicyError, Surroundings};

/// Refuses a writable root that is too broad, unless the user insists on it.
pub(crate) fn refuse(field: Field, root: &Path, surroundings: &Surroundings) -> Result<(), PolicyError> {
    let home = surroundings.home.as_deref();
    let state = surroundings.state_dir.as_deref();
    let found = match field {
        Field::TempDirectory => breadth_of_temp(root, home).or_else(|| {
            let state = state.filter(|state| !is_in_temp_area(state));
            state.and_then(|state| reaches(root, state))
        }),
        Field::WorkspaceRoot | Field::WritableRoot | Field::ApprovedRoot => breadth(root, home, state),
        // It opens nothing.
        Field::ProtectedPath => None,
    };
    match found {
        Some(breadth) if !surroundings.allow_broad_root => Err(PolicyError::TooBroad {
            field,
            path: root.to_owned(),
            breadth,
        }),
        _ => Ok(()),
    }
}

/// The comparison is by name: the home and the state directory need not exist.
fn breadth(root: &Path, home: Option<&Path>, state: Option<&Path>) -> Option<Breadth> {
    let holds = |path: Option<&Path>| path.is_some_and(|path| path.starts_with(root));
    breadth_of_temp(root, home)
        .or_else(|| holds(home).then_some(Breadth::AboveHome))
        .or_else(|| state.and_then(|state| reaches(root, state)))
}

/// Whether a root has to do with the state directory: it lies there, or the other way round.
fn reaches(root: &Path, state: &Path) -> Option<Breadth> {
    (state.starts_with(root) || root.starts_with(state)).then_some(Breadth::HoldsState)
}

/// A state directory in the host's temp area is not used, so nothing of it has to be kept from runs.
fn is_in_temp_area(state: &Path) -> bool {
    HOST_TEMP.iter().any(|area| state.starts_with(area)) || user_temp().is_some_and(|area| state.starts_with(area))
}

/// The host's temp area belongs to everybody, and people put things into it: a throwaway home
/// (`HOME=/tmp/h`), and the state directory with it. `/tmp` is writable for the command all the
/// same, because that is what the area is; a caller whose records lie in there has to treat them
/// as written by anybody, and keep nothing there that it trusts. So only a temp directory that is
/// no temp directory at all is refused, and one that a state directory elsewhere lies in.
fn breadth_of_temp(root: &Path, home: Option<&Path>) -> Option<Breadth> {
    if root.parent().is_none() {
        return Some(Breadth::WholeFileSystem);
    }
    home.is_some_and(|home| home == root).then_some(Breadth::Home)
}
