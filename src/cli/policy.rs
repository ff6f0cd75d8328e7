//! From the options and the profile to the policy of a run.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;

use ringfence::policy::{git_worktree, host_temp, open_protected, open_writable, settled};
use ringfence::profile::{self, Profile};
use ringfence::{
    Deployment, Door, Error, PinnedPath, SandboxExecutionPolicy, SandboxMode, SessionPolicy, Surroundings, Temp,
    WorkspaceRoot, resolve,
};

use super::args::RunArgs;
use super::places::{home, state_dir};
use super::standing::Standing;

/// The doors that are closed. An option stands above the profile.
fn closed(args: &RunArgs, profile: Option<&Profile>) -> BTreeSet<Door> {
    let doors = [
        (Door::Network, args.network, profile.and_then(|it| it.network)),
        (
            Door::UnixSockets,
            args.unix_sockets,
            profile.and_then(|it| it.unix_sockets),
        ),
    ];
    let is_closed =
        |(door, asked, said): (Door, Option<bool>, Option<bool>)| (asked.or(said) == Some(false)).then_some(door);
    doors.into_iter().filter_map(is_closed).collect()
}

/// Resolves the policy of a run.
///
/// # Errors
/// [`Error`] for a policy that cannot be.
pub(super) fn policy(
    args: &RunArgs,
    profile: Option<&Profile>,
    standing: &Standing,
) -> Result<SandboxExecutionPolicy, Error> {
    let (root, mode) = (&standing.root, standing.mode);
    let temp = args.temp.or(profile.and_then(|it| it.temp));
    let asked = args.require.or(profile.and_then(|it| it.require)).unwrap_or_default();
    let writable = args
        .write
        .iter()
        .map(|path| open_writable(root.path(), path))
        .collect::<Result<_, _>>()?;
    let mut writable: Vec<PinnedPath> = writable;
    let named = args
        .protect
        .iter()
        .chain(profile.into_iter().flat_map(|it| &it.protect));
    let mut protected = named
        .map(|path| open_protected(root.path(), path))
        .collect::<Result<Vec<_>, _>>()?;
    if profile.is_some_and(|it| it.git_worktree)
        && let Some(worktree) = git_worktree(root.path())?
    {
        writable.push(worktree.repository);
        protected.extend(worktree.protected);
    }
    let surroundings = surroundings(root, mode, temp, args.allow_broad_root)?;
    let deployment = Deployment {
        mode,
        root: Some(root.clone()),
        writable,
        protected,
        temp,
        closed: closed(args, profile),
        require: asked.max(standing.settings.require()),
        ceiling: standing.settings.ceiling(),
    };
    let Some((store, session)) = &standing.session else {
        return Ok(resolve(&deployment, None, None, &surroundings)?);
    };
    let session = SessionPolicy {
        id: session.id().to_owned(),
        mode: Some(mode),
        root: root.clone(),
    };
    let policy = resolve(&deployment, Some(&session), None, &surroundings)?;
    store.is_out_of_reach_of(&policy)?;
    Ok(policy)
}

pub(super) fn load(name_or_file: &str) -> Result<Profile, Error> {
    profile::load(name_or_file).map_err(|error| Error::Input {
        field: "--profile".to_owned(),
        value: name_or_file.into(),
        reason: error.to_string(),
        hint: error.hint(),
    })
}

/// What else bears on the policy. Home, state and temp area only matter where something is opened
/// for writing, so other modes are spared the search.
fn surroundings(
    root: &WorkspaceRoot,
    mode: SandboxMode,
    temp: Option<Temp>,
    allow_broad_root: bool,
) -> Result<Surroundings, Error> {
    let mut found = Surroundings {
        allow_broad_root,
        ..Surroundings::of(root.clone())
    };
    if mode == SandboxMode::WorkspaceWrite {
        found.home = home().map(|path| settled(&path));
        found.state_dir = state_dir()?.map(|path| settled(&path));
        if temp.unwrap_or(Temp::Host) == Temp::Host {
            found.host_temp = host_temp(env::var_os("TMPDIR").as_deref().map(Path::new), root.path())?;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_above_the_profile() {
        let directory = tempfile::tempdir().unwrap();
        let args = RunArgs {
            workspace: Some(directory.path().to_owned()),
            ..RunArgs::default()
        };
        let profile = load("workspace-write").unwrap();
        let policy = |args: &RunArgs| policy(args, Some(&profile), &Standing::of(args, Some(&profile)).unwrap());
        assert_eq!(policy(&args).unwrap().mode(), SandboxMode::WorkspaceWrite);
        let stricter = RunArgs {
            mode: Some(SandboxMode::ReadOnly),
            ..args
        };
        assert_eq!(policy(&stricter).unwrap().mode(), SandboxMode::ReadOnly);
    }

    #[test]
    fn nothing_asked_for_is_read_only() {
        let directory = tempfile::tempdir().unwrap();
        let args = RunArgs {
            workspace: Some(directory.path().to_owned()),
            ..RunArgs::default()
        };
        let policy = policy(&args, None, &Standing::of(&args, None).unwrap()).unwrap();
        assert_eq!((policy.mode(), policy.temp()), (SandboxMode::ReadOnly, Temp::Private));
        assert!(policy.writable().is_empty());
    }
}
