//! From what is kept of a run to the same run once more: everything is found as it was, or it is not done.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::OFlag;
use ringfence_backend::{PinnedPath, SandboxExecutionPolicy, Temp};

use crate::approval::MAX_HASHED;
use crate::bytes::sha256;
use crate::error::Error;
use crate::exec::env::NO_TERMINAL;
use crate::exec::limits::Resource;
use crate::exec::{Capture, Evidence, ExecRequest, ExecSpec, Input};
use crate::policy::{
    ApprovedChange, Deployment, Field, SessionPolicy, Surroundings, host_temp, open_protected, open_root,
    open_writable, refuse_broad, resolve,
};
use crate::runs::{Executable, KeptInput, KeptPolicy, KeptRun, Place};

use super::{Change, Circumstances};

/// The policy as it was, and the looser one.
#[derive(Debug)]
pub(super) struct Policies {
    pub(super) standing: SandboxExecutionPolicy,
    pub(super) looser: SandboxExecutionPolicy,
}

/// Resolves both policies.
///
/// # Errors
/// [`Error::NotStrictlyLooser`] when something is no longer as it was; [`Error::Policy`] for a policy that cannot be.
pub(super) fn policies(kept: &KeptPolicy, change: &Change, around: &Circumstances) -> Result<Policies, Error> {
    let root = open_root(kept.root.path())?;
    same(&kept.root, root.pinned(), "the workspace")?;
    let area = match kept.temp {
        Temp::Host => host_temp(around.tmpdir.as_deref(), root.path())?,
        Temp::Private | Temp::None => Vec::new(),
    };
    let mut writable = Vec::new();
    for place in &kept.writable {
        let pinned = open_writable(root.path(), place.path())?;
        same(place, &pinned, "a writable root")?;
        if pinned != *root.pinned() && !area.contains(&pinned) {
            writable.push(pinned);
        }
    }
    let protected = kept
        .protected
        .iter()
        .map(|path| open_protected(root.path(), path.0.as_ref()))
        .collect::<Result<_, _>>()?;
    let deployment = Deployment {
        mode: kept.mode,
        root: Some(root.clone()),
        writable,
        protected,
        temp: chosen(kept),
        closed: kept.closed.clone(),
        require: kept.require.max(around.require),
        ceiling: around.ceiling,
    };
    let session = kept.session.as_ref().map(|id| SessionPolicy {
        id: id.clone(),
        mode: Some(kept.mode),
        root: root.clone(),
    });
    let mut surroundings = Surroundings {
        host_temp: area,
        home: around.home.clone(),
        state_dir: around.state_dir.clone(),
        // What was insisted on then holds for the same roots now; a new one is looked at below.
        allow_broad_root: true,
        ..Surroundings::of(root.clone())
    };
    let standing = resolve(&deployment, session.as_ref(), None, &surroundings)?;
    let mut then: Vec<_> = kept.writable.iter().map(Place::path).collect();
    let mut now: Vec<_> = standing.writable().iter().map(PinnedPath::path).collect();
    then.sort();
    now.sort();
    if then != now {
        return Err(changed("the temp area", "is not the one that it was"));
    }
    let approved = match change {
        Change::Mode(mode) => ApprovedChange::Mode(*mode),
        Change::Write(path) => ApprovedChange::Write(open_writable(root.path(), path)?),
    };
    if let Change::Mode(_) = change {
        surroundings.host_temp = host_temp(around.tmpdir.as_deref(), root.path())?;
    }
    let looser = resolve(&deployment, session.as_ref(), Some(&approved), &surroundings)?;
    surroundings.allow_broad_root = false;
    for opened in looser.writable().iter().filter(|it| !standing.writable().contains(it)) {
        let field = if surroundings.host_temp.contains(opened) {
            Field::TempDirectory
        } else {
            Field::ApprovedRoot
        };
        refuse_broad(field, opened.path(), &surroundings)?;
    }
    Ok(Policies { standing, looser })
}

/// The temp area, where it was chosen and does not just belong to the mode.
fn chosen(kept: &KeptPolicy) -> Option<Temp> {
    use ringfence_backend::SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};
    let usual = match kept.mode {
        ReadOnly => Temp::Private,
        WorkspaceWrite | DangerFullAccess => Temp::Host,
    };
    (kept.temp != usual).then_some(kept.temp)
}

/// The request for the same command under another policy.
///
/// # Errors
/// [`Error::NotStrictlyLooser`] when the environment or the input is no longer as it was.
pub(super) fn request(
    kept: &KeptRun,
    policy: SandboxExecutionPolicy,
    around: &Circumstances,
) -> Result<ExecRequest, Error> {
    let usual: Vec<(OsString, OsString)> = NO_TERMINAL.map(|(name, value)| (name.into(), value.into())).into();
    let sources = [
        around.given_env.as_slice(),
        around.callers_env.as_slice(),
        usual.as_slice(),
    ];
    let env = kept.env.restore(&sources).map_err(|names| {
        let names: Vec<_> = names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        Error::NotStrictlyLooser {
            reason: format!("the environment is not as it was: {} differs", names.join(", ")),
            hint: "give each value as it was with --env NAME=VALUE, or start a new run".to_owned(),
        }
    })?;
    let mut limits = BTreeMap::new();
    for (name, value) in &kept.limits {
        let resource = Resource::ALL.into_iter().find(|it| it.name() == name);
        let resource = resource.ok_or_else(|| changed("the limits", "name a resource that is not known here"))?;
        limits.insert(resource, *value);
    }
    Ok(ExecRequest {
        run_id: around.run_id.clone(),
        argv: kept.argv.iter().map(|word| word.0.clone()).collect(),
        policy,
        workdir: Some(kept.workdir.path().to_owned()),
        env,
        capture: around.capture,
        input: input(&kept.input, around)?,
        timeout: kept.timeout_ms.map(Duration::from_millis),
        grace: Some(Duration::from_millis(kept.grace_ms)),
        backend: kept.backend,
        evidence: match kept.evidence.as_str() {
            "strict" => Evidence::Strict,
            "off" => Evidence::Off,
            _ => Evidence::Auto,
        },
        limits,
    })
}

fn input(kept: &KeptInput, around: &Circumstances) -> Result<Input, Error> {
    match kept {
        KeptInput::Nothing => Ok(match around.capture {
            Capture::Captured { .. } => Input::Default,
            Capture::Passthrough => Input::Bytes(Vec::new()),
        }),
        KeptInput::Callers => Ok(match around.capture {
            Capture::Captured { .. } => Input::Callers,
            Capture::Passthrough => Input::Default,
        }),
        KeptInput::File { state } => {
            let path: PathBuf = state.file.path().to_owned();
            match Executable::at(&path) {
                Ok(now) if now == *state => Ok(Input::File(path)),
                _ => Err(changed("the file on standard input", "is not as it was")),
            }
        }
        KeptInput::Unknown => Err(changed("what the command reads", "cannot be told from something else")),
        KeptInput::Bytes { sha256 } => match &around.input {
            Some(bytes) if crate::bytes::sha256(bytes) == *sha256 => Ok(Input::Bytes(bytes.clone())),
            _ => Err(changed("what the command reads", "is not what it was")),
        },
    }
}

/// Refuses a run that its session would not serve any more: what was switched off since is not brought back
/// by an approval of something else.
///
/// # Errors
/// [`Error::NotStrictlyLooser`].
pub(super) fn session_allows(kept: &KeptPolicy, around: &Circumstances) -> Result<(), Error> {
    match (&kept.session, around.session_mode) {
        (Some(id), Some(mode)) if kept.mode > mode => Err(Error::NotStrictlyLooser {
            reason: format!(
                "the run had {}, and its session {id} was switched to {mode} since",
                kept.mode
            ),
            hint: "run it in the session as it is now, and ask from that run".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Refuses another directory than the one that the first run began in.
///
/// # Errors
/// [`Error::NotStrictlyLooser`].
pub(super) fn same_workdir(then: &Place, spec: &ExecSpec) -> Result<(), Error> {
    if *then == Place::at(spec.workdir(), spec.workdir_id()) {
        return Ok(());
    }
    let now = spec.workdir().display();
    Err(changed("the working directory", &format!("{now} is not what it was")))
}

/// What the command will read, in a text, and its content: the run is then given that very content,
/// whatever becomes of the file.
///
/// # Errors
/// [`Error::NotStrictlyLooser`] for a file that cannot be read any more.
pub(super) fn stdin(kept: &KeptInput) -> Result<(String, Option<Vec<u8>>), Error> {
    let text = |input: &KeptInput| serde_json::to_string(input).unwrap_or_default();
    let KeptInput::File { state } = kept else {
        return Ok((text(kept), None));
    };
    let path = state.file.path();
    let unread = |error: io::Error| changed("the file on standard input", &format!("cannot be read: {error}"));
    let state = Executable::at(path).map_err(unread)?;
    let content = content(path).map_err(unread)?;
    let digest = content.as_deref().map(sha256).unwrap_or_default();
    Ok((format!("{} {digest}", text(&KeptInput::File { state })), content))
}

/// The content of a file; nothing of what is no regular file, or too large to be held.
fn content(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut content = Vec::new();
    file.take(MAX_HASHED + 1).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= MAX_HASHED).then_some(content))
}

/// Refuses what stands under the same name and is something else.
pub(super) fn same(then: &Place, now: &PinnedPath, what: &str) -> Result<(), Error> {
    if then.is(now) {
        return Ok(());
    }
    Err(changed(what, &format!("{} is not what it was", now.path().display())))
}

pub(super) fn changed(what: &str, how: &str) -> Error {
    Error::NotStrictlyLooser {
        reason: format!("{what} {how}"),
        hint: "start a new run with what is there now".to_owned(),
    }
}
