//! What stands before a run is asked for: the session, the deployment, and the mode that follows.

use std::env;
use std::path::{Path, PathBuf};

use ringfence::config::{self, Files, Recording, Settings};
use ringfence::error::NotApproved;
use ringfence::profile::{Place, Profile};
use ringfence::session::{Session, SessionError, Store};
use ringfence::{Error, SandboxMode, WorkspaceRoot};

use super::args::RunArgs;
use super::places::{home, state_dir, workspace};

/// What stands before a run is asked for.
#[derive(Debug)]
pub(crate) struct Standing {
    /// The directory of the run: the session's, the one named, or the caller's.
    pub(crate) root: WorkspaceRoot,
    /// The session of the run, and the store that it comes from.
    pub(crate) session: Option<(Store, Session)>,
    /// What is deployed.
    pub(crate) settings: Settings,
    /// The mode of the run.
    pub(crate) mode: SandboxMode,
    /// Where the mode comes from, in words.
    pub(crate) mode_from: String,
    /// Whether the run is recorded.
    pub(crate) recording: Recording,
}

impl Standing {
    /// Finds the session and the deployment, and settles the mode.
    ///
    /// # Errors
    /// [`Error`] for a session or a file that cannot be used, and for a mode that is looser than they allow.
    pub(super) fn of(args: &RunArgs, profile: Option<&Profile>) -> Result<Self, Error> {
        let session = args.session.as_deref().map(session).transpose()?;
        let root = match &session {
            Some((_, session)) => same_root(session, args.workspace.as_deref())?,
            None => workspace(args.workspace.as_deref())?,
        };
        let settings = deployed(Some(&root))?;
        let (mode, mode_from) = mode(args, profile, session.as_ref().map(|(_, it)| it), &settings)?;
        settings.allows(mode, &mode_from)?;
        let recording = settings.recording(args.audit)?;
        Ok(Self {
            root,
            session,
            settings,
            mode,
            mode_from,
            recording,
        })
    }

    /// Where the ceiling comes from, in words; absent when there is none.
    pub(crate) fn ceiling_from(&self) -> Option<String> {
        self.settings.ceiling_said_in().map(Place::to_string)
    }
}

/// The sessions of this user.
///
/// # Errors
/// [`Error::Session`] where none can be kept.
pub(crate) fn sessions() -> Result<Store, Error> {
    let path = state_dir()?.ok_or_else(|| SessionError::State {
        reason: "no state directory is known, because neither RINGFENCE_STATE_DIR nor HOME is set".to_owned(),
    })?;
    Ok(Store::open(&path)?)
}

fn session(id: &str) -> Result<(Store, Session), Error> {
    let store = sessions()?;
    let session = store.load(id)?;
    Ok((store, session))
}

/// The session's directory. Naming it again changes nothing; naming another is a mistake.
fn same_root(session: &Session, named: Option<&Path>) -> Result<WorkspaceRoot, Error> {
    let root = session.root()?;
    let Some(path) = named else { return Ok(root) };
    if workspace(Some(path))? == root {
        return Ok(root);
    }
    Err(Error::Input {
        field: "--workspace".to_owned(),
        value: path.into(),
        reason: format!(
            "the session {} has the directory {}, and never another",
            session.id(),
            root.path().display()
        ),
        hint: "leave -C out, or make a session in that directory with `ringfence session new -C DIR`".to_owned(),
    })
}

/// What is deployed for a workspace. Only here is it known where the files are.
///
/// # Errors
/// [`Error::Config`] for a file that is there and cannot be used.
pub(crate) fn deployed(workspace: Option<&WorkspaceRoot>) -> Result<Settings, Error> {
    let (home, user) = (home(), user_file());
    let files = Files {
        system: Some(Path::new(config::SYSTEM_FILE)),
        user: user.as_deref(),
        workspace,
        home: home.as_deref(),
    };
    Ok(config::load(&files)?)
}

/// The user's file: beneath `$XDG_CONFIG_HOME`, else beneath `.config` in the home.
fn user_file() -> Option<PathBuf> {
    let xdg = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let xdg = xdg.filter(|path| path.is_absolute());
    let base = xdg.or_else(|| home().map(|home| home.join(".config")))?;
    Some(base.join("ringfence/config.toml"))
}

/// The mode of a run, and where it comes from: an option stands above the profile, and the profile above what
/// the session or the deployment says. In a session neither can be looser than that.
fn mode(
    args: &RunArgs,
    profile: Option<&Profile>,
    session: Option<&Session>,
    settings: &Settings,
) -> Result<(SandboxMode, String), Error> {
    let default = || match settings.mode_said_in() {
        Some(place) => place.to_string(),
        None => "the default".to_owned(),
    };
    let standing = match session.and_then(|it| Some((it, it.mode()?))) {
        Some((session, mode)) => (mode, format!("the session {}", session.id())),
        None => (settings.mode(), default()),
    };
    let option = args.mode.map(|mode| (mode, "--mode".to_owned()));
    let asked = option.or_else(|| profile.map(|it| (it.mode, format!("the profile {}", it.name))));
    let Some((mode, from)) = asked else { return Ok(standing) };
    if let Some(session) = session
        && mode > standing.0
    {
        // Where nobody could approve it either, that is what has to be said.
        settings.allows(mode, &from)?;
        return Err(NotApproved::Required {
            what: format!(
                "{from} asks for {mode}, and the session {} runs in {}",
                session.id(),
                standing.0
            ),
        }
        .into());
    }
    Ok((mode, from))
}
