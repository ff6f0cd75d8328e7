//! From the options and the profile to the policy of a run.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ringfence::policy::{git_worktree, host_temp, open_protected, open_root, open_writable, settled};
use ringfence::profile::{self, Profile};
use ringfence::{
    Deployment, Door, Error, PinnedPath, SandboxExecutionPolicy, SandboxMode, SessionPolicy, Surroundings, Temp,
    WorkspaceRoot, resolve,
};

use super::args::RunArgs;
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

/// The directory named, else the one the caller is in.
pub(super) fn workspace(named: Option<&Path>) -> Result<WorkspaceRoot, Error> {
    match named {
        Some(path) => Ok(open_root(path)?),
        // Gone, or out of reach: there is no workspace then, and none is made up.
        None => WorkspaceRoot::open(Path::new(".")).map_err(|source| Error::Workdir {
            path: ".".into(),
            source,
        }),
    }
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

pub(super) fn home() -> Option<PathBuf> {
    absolute(env::var_os("HOME").as_deref())
}

/// Where Ringfence keeps its own records: `$RINGFENCE_STATE_DIR`, else a directory of its own
/// beneath the XDG state directory. Nothing when the environment names no place.
///
/// # Errors
/// [`Error::Input`] when `$RINGFENCE_STATE_DIR` is relative: it would be another place in each directory.
pub(crate) fn state_dir() -> Result<Option<PathBuf>, Error> {
    const OWN: &str = "RINGFENCE_STATE_DIR";
    if let Some(own) = env::var_os(OWN).filter(|own| !own.is_empty()) {
        return match absolute(Some(&own)) {
            Some(path) => Ok(Some(path)),
            None => Err(Error::Input {
                field: OWN.to_owned(),
                value: own,
                reason: "it is relative, and would be another place in each directory".to_owned(),
                hint: "name it from the root on, or unset it".to_owned(),
            }),
        };
    }
    let xdg = absolute(env::var_os("XDG_STATE_HOME").as_deref()).map(|state| state.join("ringfence"));
    Ok(xdg.or_else(|| home().map(|home| home.join(".local/state/ringfence"))))
}

/// The same, where nothing can be done without it.
///
/// # Errors
/// [`Error::Input`] when it is relative, and when the environment names no place.
pub(crate) fn known_state_dir() -> Result<PathBuf, Error> {
    state_dir()?.ok_or_else(|| Error::Input {
        field: "RINGFENCE_STATE_DIR".to_owned(),
        value: "".into(),
        reason: "neither it nor HOME is set, so no state directory is known".to_owned(),
        hint: "name the state directory of the runs in question in RINGFENCE_STATE_DIR".to_owned(),
    })
}

/// The XDG Base Directory Specification has relative paths ignored.
fn absolute(value: Option<&OsStr>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_place_is_none() {
        assert_eq!(absolute(Some("state".as_ref())), None);
        assert_eq!(absolute(Some("".as_ref())), None);
        assert_eq!(absolute(Some("/state".as_ref())), Some("/state".into()));
    }

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
