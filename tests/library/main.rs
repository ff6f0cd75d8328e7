//! The library in a host's process: what it holds, and runs in the background.
//!
//! A binary of its own, in which one test runs at a time: descriptors, threads and children are
//! counted for the whole process. Run by root, every test runs as an unprivileged user, too.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod background;
mod launcher;
mod soak;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ringfence::policy::open_root;
use ringfence::{Deployment, ExecRequest, SandboxExecutionPolicy, SandboxMode, Surroundings, Temp, resolve};

/// The user `nobody` and its group.
const NOBODY: u32 = 65534;
/// The test that runs the others, and must not run itself.
const AS_NOBODY: &str = "every_test_holds_for_an_unprivileged_user_as_well";

/// Keeps every other test of this process waiting.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A workspace.
struct Place(tempfile::TempDir);

impl Place {
    /// Outside of the host's temp directories where this user may, inside otherwise.
    fn new() -> Self {
        Self(
            tempfile::tempdir_in("/var/lib")
                .or_else(|_| tempfile::tempdir())
                .unwrap(),
        )
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn policy(&self, mode: SandboxMode) -> SandboxExecutionPolicy {
        let deployment = Deployment {
            mode,
            temp: Some(Temp::Private),
            ..Deployment::default()
        };
        let surroundings = Surroundings::of(open_root(self.root()).unwrap());
        resolve(&deployment, None, None, &surroundings).unwrap()
    }
}

/// A captured run of a shell text.
fn request(policy: &SandboxExecutionPolicy, text: &str) -> ExecRequest {
    let argv = ["bash", "-c", text].map(Into::into).to_vec();
    let mut request = ExecRequest::new(argv, policy.clone());
    request.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    request
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "this is no run: the tests themselves are started"
)]
fn every_test_holds_for_an_unprivileged_user_as_well() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let open = |path: &Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    open(place.root());
    let program = place.root().join("tests");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    open(&program);
    let output = std::process::Command::new(&program)
        .args(["--skip", AS_NOBODY])
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("test result: ok."), "{said}");
}
