//! From the options, the profile and the environment to a request: the only room that reads the
//! user's environment. Each thing is looked up only when this run's policy turns on it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use ringfence::exec::env::{EnvChanges, Environment, command_environment};
use ringfence::exec::managed::ManagedEnv;
use ringfence::exec::{DEFAULT_MAX_OUTPUT, DEFAULT_MAX_SPILL};
use ringfence::profile::Profile;
use ringfence::{Capture, Error, ExecRequest, Input};

use super::args::{BackendChoice, RunArgs, bash};
use super::command_file;
use super::limits::limits;
use super::policy::{load, policy};
use super::standing::Standing;
use super::values;

/// What the options of `run` come to.
pub(crate) struct Asked {
    /// The run.
    pub(crate) request: ExecRequest,
    /// The names of the caller's variables that the command does not get.
    pub(crate) withheld: Vec<OsString>,
    /// What stood before it was asked for.
    pub(crate) standing: Standing,
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
    let standing = Standing::of(args, profile.as_ref())?;
    let policy = policy(args, profile.as_ref(), &standing)?;

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
        standing,
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

#[cfg(test)]
mod tests {
    use ringfence::exec::env::Inherit;
    use ringfence::profile::ProfileEnv;

    use super::*;

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
        assert!(matches!(Standing::of(&args, None), Err(Error::Policy(_))));
        assert!(matches!(not_empty(Path::new("")), Err(Error::Workdir { .. })));
    }

    #[test]
    fn a_dash_is_the_callers_input() {
        assert!(matches!(input(Some(Path::new("-"))), Input::Callers));
        assert!(matches!(input(Some(Path::new("f"))), Input::File(file) if file == Path::new("f")));
        assert!(matches!(input(None), Input::Default));
    }
}
