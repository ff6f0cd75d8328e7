//! From the options, the profile and the environment to a request: the only room that reads the
//! user's environment. Each thing is looked up only when this run's policy turns on it.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use ringfence::Door;
use ringfence::exec::env::{EnvChanges, Environment, command_environment};
use ringfence::exec::managed::ManagedEnv;
use ringfence::exec::{DEFAULT_MAX_OUTPUT, DEFAULT_MAX_SPILL};
use ringfence::policy::{git_worktree, host_temp, open_protected, open_root, open_writable};
use ringfence::profile::{self, Profile};
use ringfence::{
    Capture, Deployment, Error, ExecRequest, Input, PinnedPath, SandboxExecutionPolicy, SandboxMode, Surroundings,
    Temp, WorkspaceRoot, resolve,
};

use super::args::{BackendChoice, RunArgs, bash};
use super::command_file;
use super::limits::limits;
use super::values;

/// What the options of `run` come to.
pub(crate) struct Asked {
    /// The run.
    pub(crate) request: ExecRequest,
    /// The names of the caller's variables that the command does not get.
    pub(crate) withheld: Vec<OsString>,
}

/// Makes the request for the run `run_id`.
///
/// # Errors
/// [`Error`] for values that make no sense, and for a policy that cannot be.
pub(crate) fn request(args: &RunArgs, run_id: &str) -> Result<Asked, Error> {
    let timeout = args
        .timeout
        .as_deref()
        .map(|text| values::duration("--timeout", text))
        .transpose()?;
    let grace = args
        .grace
        .as_deref()
        .map(|text| values::duration("--grace", text))
        .transpose()?;
    let max_output = match &args.max_output {
        Some(text) => values::size("--max-output", text)?,
        None => DEFAULT_MAX_OUTPUT,
    };
    let limits = limits(&args.limit)?;
    let max_spill = match &args.max_spill {
        Some(text) => values::size_or_none("--max-spill", text)?,
        None => DEFAULT_MAX_SPILL,
    };
    capture_only(args)?;
    let profile = args.profile.as_deref().map(load).transpose()?;
    let changes = env_changes(args, profile.as_ref())?;
    let Environment { vars, removed } =
        command_environment(env::vars_os(), &changes, args.json, &ManagedEnv::default())?;
    let policy = policy(args, profile.as_ref())?;

    let request = ExecRequest {
        run_id: run_id.to_owned(),
        argv: command(args)?,
        policy,
        workdir: args.workdir.as_deref().map(not_empty).transpose()?,
        env: vars,
        capture: if args.json {
            Capture::Captured {
                max_stdout: max_output,
                max_stderr: max_output,
                max_spill,
                merge: args.merge,
            }
        } else {
            Capture::Passthrough
        },
        input: input(args.stdin.as_deref()),
        timeout,
        grace,
        evidence: args.evidence.unwrap_or_default(),
        backend: match args.backend {
            Some(BackendChoice::Named(backend)) => Some(backend),
            Some(BackendChoice::Auto) | None => None,
        },
        limits,
    };
    Ok(Asked {
        request,
        withheld: removed,
    })
}

/// The command's words, with the text of the file if there is one.
fn command(args: &RunArgs) -> Result<Vec<OsString>, Error> {
    match &args.command_file {
        Some(file) => Ok(bash(command_file::read(file)?)),
        None => Ok(args.argv()),
    }
}

/// What is changed of the environment: an option on a name stands above what the profile says of it.
fn env_changes(args: &RunArgs, profile: Option<&Profile>) -> Result<EnvChanges, Error> {
    let mut changes = EnvChanges {
        set: args
            .env
            .iter()
            .map(|text| values::variable(text))
            .collect::<Result<_, _>>()?,
        keep: args.keep_env.clone(),
        unset: args.unset_env.clone(),
        ..EnvChanges::default()
    };
    if let Some(profile) = profile {
        let said = |name: &&OsString| !args.keep_env.contains(name) && !args.unset_env.contains(name);
        changes.inherit = profile.env.inherit.unwrap_or_default();
        changes.keep.extend(profile.env.keep.iter().filter(said).cloned());
        changes.unset.extend(profile.env.drop.iter().filter(said).cloned());
    }
    Ok(changes)
}

fn input(stdin: Option<&Path>) -> Input {
    match stdin {
        None => Input::Default,
        Some(dash) if dash == Path::new("-") => Input::Callers,
        Some(file) => Input::File(file.to_owned()),
    }
}

/// Joined to the workspace, an empty path (often an unset variable) would quietly mean the workspace.
fn not_empty(workdir: &Path) -> Result<PathBuf, Error> {
    if workdir.as_os_str().is_empty() {
        return Err(Error::Workdir {
            path: PathBuf::new(),
            source: Errno::ENOENT.into(),
        });
    }
    Ok(workdir.to_owned())
}

/// The policy of the run: options stand above the profile, and the profile above read-only.
/// Refuses what means nothing when the streams are the caller's own.
fn capture_only(args: &RunArgs) -> Result<(), Error> {
    let given = [
        ("--merge", args.merge),
        ("--max-output", args.max_output.is_some()),
        ("--max-spill", args.max_spill.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given && !args.json) {
        None => Ok(()),
        Some((option, _)) => Err(Error::Input {
            field: option.to_owned(),
            value: OsString::new(),
            reason: "without --json nothing is captured: the streams are the caller's own".to_owned(),
            hint: "give --json too, or leave it out".to_owned(),
        }),
    }
}

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

fn policy(args: &RunArgs, profile: Option<&Profile>) -> Result<SandboxExecutionPolicy, Error> {
    let mode = args.mode.or(profile.map(|it| it.mode)).unwrap_or(SandboxMode::ReadOnly);
    let temp = args.temp.or(profile.and_then(|it| it.temp));
    let require = args.require.or(profile.and_then(|it| it.require)).unwrap_or_default();
    let root = workspace(args.workspace.as_deref())?;
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
    let surroundings = surroundings(&root, mode, temp, args.allow_broad_root)?;
    let deployment = Deployment {
        mode,
        root: Some(root),
        writable,
        protected,
        temp,
        closed: closed(args, profile),
        require,
    };
    Ok(resolve(&deployment, None, None, &surroundings)?)
}

fn load(name_or_file: &str) -> Result<Profile, Error> {
    profile::load(name_or_file).map_err(|error| Error::Input {
        field: "--profile".to_owned(),
        value: name_or_file.into(),
        reason: error.to_string(),
        hint: error.hint(),
    })
}

/// The directory named, else the one the caller is in.
fn workspace(named: Option<&Path>) -> Result<WorkspaceRoot, Error> {
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
        caller_dir: root.clone(),
        host_temp: Vec::new(),
        home: None,
        state_dir: None,
        allow_broad_root,
    };
    if mode == SandboxMode::WorkspaceWrite {
        found.home = home().map(|path| settled(&path));
        found.state_dir = state_dir().map(|path| settled(&path));
        if temp.unwrap_or(Temp::Host) == Temp::Host {
            found.host_temp = host_temp(env::var_os("TMPDIR").as_deref().map(Path::new), root.path())?;
        }
    }
    Ok(found)
}

fn home() -> Option<PathBuf> {
    absolute(env::var_os("HOME").as_deref())
}

/// Where Ringfence keeps its own records: `$RINGFENCE_STATE_DIR`, else a directory of its own
/// beneath the XDG state directory. Nothing when the environment names no place.
pub(crate) fn state_dir() -> Option<PathBuf> {
    let own = absolute(env::var_os("RINGFENCE_STATE_DIR").as_deref());
    let xdg = || absolute(env::var_os("XDG_STATE_HOME").as_deref()).map(|state| state.join("ringfence"));
    own.or_else(xdg)
        .or_else(|| home().map(|home| home.join(".local/state/ringfence")))
}

/// A relative path would be another place in each directory, so it names none.
fn absolute(value: Option<&OsStr>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

/// A path that is canonical as far as it exists.
fn settled(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    for existing in path.ancestors() {
        match PinnedPath::open(existing) {
            Ok(pinned) => {
                return rest
                    .iter()
                    .rev()
                    .fold(pinned.path().to_owned(), |sum, name| sum.join(name));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => rest.extend(existing.file_name()),
            Err(_) => break,
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use ringfence::exec::env::Inherit;
    use ringfence::profile::ProfileEnv;

    use super::*;

    #[test]
    fn a_path_is_canonical_as_far_as_it_exists() {
        let directory = tempfile::tempdir().unwrap();
        let real = PinnedPath::open(directory.path()).unwrap().path().to_owned();
        std::os::unix::fs::symlink(&real, real.join("link")).unwrap();
        assert_eq!(settled(&real.join("link")), real);
        assert_eq!(settled(&real.join("link/a/b")), real.join("a/b"));
        assert_eq!(settled(Path::new("/no-such-place/a")), Path::new("/no-such-place/a"));
    }

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
        let policy = |args: &RunArgs| policy(args, Some(&profile));
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
        let policy = policy(&args, None).unwrap();
        assert_eq!((policy.mode(), policy.temp()), (SandboxMode::ReadOnly, Temp::Private));
        assert!(policy.writable().is_empty());
    }

    #[test]
    fn an_option_on_a_variable_stands_above_what_the_profile_says_of_it() {
        let profile = Profile {
            env: ProfileEnv {
                inherit: Some(Inherit::None),
                keep: vec!["A".into(), "B".into()],
                drop: vec!["C".into(), "D".into()],
            },
            ..load("read-only").unwrap()
        };
        let args = RunArgs {
            keep_env: vec!["C".into()],
            unset_env: vec!["A".into()],
            ..RunArgs::default()
        };
        let changes = env_changes(&args, Some(&profile)).unwrap();
        assert_eq!(changes.inherit, Inherit::None);
        assert_eq!(changes.keep, ["C", "B"]);
        assert_eq!(changes.unset, ["A", "D"]);
        assert_eq!(env_changes(&args, None).unwrap().inherit, Inherit::Filtered);
    }

    #[test]
    fn an_empty_directory_name_means_no_directory() {
        let args = RunArgs {
            workspace: Some(PathBuf::new()),
            ..RunArgs::default()
        };
        assert!(matches!(policy(&args, None), Err(Error::Policy(_))));
        assert!(matches!(not_empty(Path::new("")), Err(Error::Workdir { .. })));
    }

    #[test]
    fn a_dash_is_the_callers_input() {
        assert!(matches!(input(Some(Path::new("-"))), Input::Callers));
        assert!(matches!(input(Some(Path::new("f"))), Input::File(file) if file == Path::new("f")));
        assert!(matches!(input(None), Input::Default));
    }
}
