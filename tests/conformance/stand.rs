//! Where a case is put to a backend: as whom, and on what a host.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::geteuid;
use ringfence::selection::Selection;
use ringfence_backend::conformance::{Bench, Case, cases};
use ringfence_backend::{BackendId, Coverage, Effect};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
use tempfile::TempDir;

/// The first word of this program as the process of one case.
pub(crate) const INNER: &str = "--conformance-case";

/// The word for a kernel without Landlock.
const WITHOUT_LANDLOCK: &str = "without-landlock";

/// The user `nobody` and its group.
const NOBODY: u32 = 65_534;

/// `landlock_create_ruleset` (linux/unistd.h; the same on every architecture).
const LANDLOCK_CREATE_RULESET: i64 = 444;

/// What a host gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    /// All that this one does.
    Whole,
    /// A kernel without Landlock.
    NoLandlock,
    /// No capability, and no further user namespace.
    Container,
}

/// A container without capabilities in which no further user namespace can be made.
const CONTAINER: [&str; 9] = [
    "bwrap",
    "--dev-bind",
    "/",
    "/",
    "--unshare-user",
    "--disable-userns",
    "--cap-drop",
    "ALL",
    "--",
];

/// A backend, a user and a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stand {
    backend: BackendId,
    host: Host,
    /// None for the user of the harness.
    user: Option<u32>,
}

impl fmt::Display for Stand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.host {
            Host::Whole => "",
            Host::NoLandlock => "_without_landlock",
            Host::Container => "_in_a_container",
        };
        let user = match self.user {
            Some(_) => "nobody",
            None if geteuid().is_root() => "root",
            None => "caller",
        };
        write!(f, "{}{host}::as_{user}", self.backend)
    }
}

impl Stand {
    /// Everywhere that a backend has to stand.
    pub(crate) fn all_of(backend: BackendId) -> Vec<Self> {
        let hosts: &[Host] = match backend {
            BackendId::Landlock => &[Host::Whole, Host::Container],
            BackendId::Bwrap => &[Host::Whole, Host::NoLandlock],
            _ => &[Host::Whole],
        };
        // Only root can become somebody else.
        let users: &[Option<u32>] = if geteuid().is_root() {
            &[None, Some(NOBODY)]
        } else {
            &[None]
        };
        let stands = hosts.iter().flat_map(|host| {
            users.iter().map(|user| Self {
                backend,
                host: *host,
                user: *user,
            })
        });
        stands.collect()
    }

    /// What this host leaves open: pinned, so that a layer that does not work any more is no lesser host.
    fn left_open(self) -> &'static [Effect] {
        match self.host {
            Host::Whole => &[],
            // What other processes pass in over sockets.
            Host::NoLandlock => &[Effect::InheritedDescriptors],
            Host::Container => &[Effect::Devices, Effect::Metadata, Effect::ProtectedPaths],
        }
    }

    /// Runs a case here, in a process of its own.
    ///
    /// # Errors
    /// What it found.
    pub(crate) fn run(self, case: Case) -> Result<(), String> {
        let base = Base::new(self.user);
        let mut words: Vec<OsString> = Vec::new();
        if self.host == Host::Container {
            words.extend(CONTAINER.map(OsString::from));
        }
        let without = self.host == Host::NoLandlock;
        let open: Vec<_> = self.left_open().iter().map(|effect| effect.word()).collect();
        words.extend([base.program().into(), INNER.into(), self.backend.name().into()]);
        words.extend([
            if without { WITHOUT_LANDLOCK } else { "whole" }.into(),
            open.join(",").into(),
        ]);
        words.extend([case.name.into(), base.path().into()]);
        let mut command = process(&words[0]);
        command
            .args(&words[1..])
            .current_dir("/")
            .env_clear()
            .stdin(Stdio::null());
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        if let Some(user) = self.user {
            // The standard library drops the supplementary groups as well.
            command.uid(user).gid(user);
        }
        let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
        if output.status.success() {
            Ok(())
        } else {
            Err(format!(
                "{}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            ))
        }
    }
}

/// The process of one case: the backend's name, the kernel, what is left open on this host, the case, and where
/// its world is made.
///
/// # Errors
/// What the case found, or that the host is another than it should be.
pub(crate) fn inner(words: &[OsString]) -> Result<(), String> {
    let [backend, kernel, open, name, base] = words else {
        return Err(format!("no words of a case: {words:?}"));
    };
    if kernel == WITHOUT_LANDLOCK {
        take_landlock_away()?;
    }
    let selection = Selection::of_this_system(None, None);
    let backend = selection
        .backends()
        .find(|it| OsStr::new(it.id().name()) == backend)
        .ok_or("there is no such backend")?;
    let case = cases()
        .find(|case| OsStr::new(case.name) == name)
        .ok_or("there is no such case")?;
    let bench = Bench::new(backend, Path::new(base))?;
    let host = bench.host();
    if kernel == WITHOUT_LANDLOCK && host.landlock_abi != 0 {
        return Err(format!(
            "there is no Landlock, and the backend found {}",
            host.landlock_abi
        ));
    }
    let open_here = Coverage::PROMISED
        .into_iter()
        .filter(|effect| !host.coverage.governs(*effect));
    let left: Vec<_> = open_here.map(Effect::word).collect();
    if OsStr::new(&left.join(",")) != open {
        return Err(format!(
            "{left:?} are open here, and {} should be: {:?}",
            open.display(),
            host.missing
        ));
    }
    case.check(&bench)
}

/// Makes the kernel answer, to this process and all that it starts, as one without Landlock.
fn take_landlock_away() -> Result<(), String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let rules = [(LANDLOCK_CREATE_RULESET, Vec::new())].into();
    let missing = SeccompAction::Errno(nix::errno::Errno::ENOSYS as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, missing, arch);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

/// A directory of a user's for one world, with this program beside it where that user can execute it.
pub(crate) struct Base(TempDir);

impl Base {
    /// Makes it outside of every temp area.
    pub(crate) fn new(user: Option<u32>) -> Self {
        let base = Self(TempDir::with_prefix_in("ringfence-conformance-", parent()).expect("a fresh directory"));
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
        provide(&std::env::current_exe().unwrap(), &base.program());
        if let Some(user) = user {
            chown(base.path(), Some(user), Some(user)).unwrap();
        }
        base
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    fn program(&self) -> PathBuf {
        self.path().join("program")
    }
}

/// A directory that no temp area covers and that every user can reach.
fn parent() -> PathBuf {
    if geteuid().is_root() {
        return PathBuf::from("/var/lib");
    }
    let temp = std::env::temp_dir();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let fit = [Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR"))), home]
        .into_iter()
        .flatten()
        .find(|path| {
            path.is_dir()
                && ![&*temp, Path::new("/tmp"), Path::new("/var/tmp")]
                    .iter()
                    .any(|area| path.starts_with(area))
        });
    fit.expect("the target directory or HOME must lie outside the temp area")
}

/// Puts a file at a second place: a hard link where the file system allows, else a copy.
fn provide(from: &Path, to: &Path) {
    if fs::hard_link(from, to).is_err() {
        // Made by another process: had this one open for writing what it is about to execute, a child of
        // another thread could keep it busy.
        let copied = process("cp").arg(from).arg(to).status();
        assert!(
            copied.is_ok_and(|status| status.success()),
            "{} could not be copied",
            from.display()
        );
    }
}

#[allow(clippy::disallowed_methods, reason = "the one place where tests start processes")]
fn process(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}
