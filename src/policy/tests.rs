//! A sentence a rule. Here stands what the tests share.

mod breadth;
mod difference;
mod opening;
mod precedence;
mod roots;

use std::fs;
use std::path::{Path, PathBuf};

use ringfence_backend::{PinnedPath, SandboxExecutionPolicy, SandboxMode, Temp, WorkspaceRoot};

use super::{Deployment, PolicyError, SessionPolicy, Surroundings, host_temp, open_root, open_writable, resolve};

use SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};

/// A small tree with a workspace, a cache beside it, a temp area and a home.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["work/sub", "other", "cache/deep", "temp", "home/project"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("cache/file"), "").unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.pin(name).path().to_owned()
    }

    fn pin(&self, name: &str) -> PinnedPath {
        PinnedPath::open(&self.dir.path().join(name)).unwrap()
    }

    fn root(&self, name: &str) -> WorkspaceRoot {
        open_root(&self.dir.path().join(name)).unwrap()
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings {
            caller_dir: self.root("work"),
            host_temp: vec![self.pin("temp")],
            home: Some(self.path("home")),
            state_dir: Some(self.path("home").join("state")),
            allow_broad_root: false,
        }
    }

    fn session(&self, id: &str, mode: Option<SandboxMode>, root: &str) -> SessionPolicy {
        SessionPolicy {
            id: id.to_owned(),
            mode,
            root: self.root(root),
        }
    }

    /// The policy of a deployment, without session and grant.
    fn of(&self, deployment: &Deployment) -> Result<SandboxExecutionPolicy, PolicyError> {
        resolve(deployment, None, None, &self.surroundings())
    }
}

fn mode(mode: SandboxMode) -> Deployment {
    Deployment {
        mode,
        ..Deployment::default()
    }
}

fn writable(policy: &SandboxExecutionPolicy) -> Vec<&Path> {
    let mut roots: Vec<_> = policy.writable().iter().map(PinnedPath::path).collect();
    roots.sort();
    roots
}

#[test]
fn every_refusal_says_a_way_out_that_keeps_the_confinement() {
    let world = World::new();
    let errors = [
        open_root(Path::new("/x/nowhere")).unwrap_err(),
        open_writable(&world.path("work"), Path::new("x")).unwrap_err(),
        open_writable(Path::new("/"), Path::new("dev/null")).unwrap_err(),
        host_temp(Some(&world.path("cache/file")), Path::new("/no-workspace")).unwrap_err(),
        world
            .of(&Deployment {
                temp: Some(Temp::Host),
                ..mode(ReadOnly)
            })
            .unwrap_err(),
        world
            .of(&Deployment {
                temp: Some(Temp::None),
                ..mode(DangerFullAccess)
            })
            .unwrap_err(),
        world
            .of(&Deployment {
                writable: vec![world.pin("cache")],
                ..mode(ReadOnly)
            })
            .unwrap_err(),
        world
            .of(&Deployment {
                writable: vec![world.pin("cache")],
                ..mode(DangerFullAccess)
            })
            .unwrap_err(),
        world
            .of(&Deployment {
                root: Some(world.root("home")),
                ..mode(WorkspaceWrite)
            })
            .unwrap_err(),
    ];
    for error in errors {
        let hint = error.hint();
        assert!(!hint.is_empty() && !hint.contains("danger"), "{error}: {hint}");
    }
    let root = Deployment {
        root: Some(open_root(Path::new("/")).unwrap()),
        ..mode(WorkspaceWrite)
    };
    let hint = world.of(&root).unwrap_err().hint();
    assert!(!hint.contains("allow-broad-root"), "{hint}");
}
