//! Where one attempt is made: what lies there before, who is beside it, and how it looks.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use ringfence::SandboxMode::{self, ReadOnly};

use crate::support::{Neighbour, World};

use super::TRIED;
use super::snapshot::snapshot;
use super::way::{PRELUDE, Way};

/// How old the furniture is: half a century.
const AGE: Duration = Duration::from_hours(24 * 365 * 50);

/// What is undone when an attempt is over, however it ended.
pub(super) struct Scene<'a> {
    way: &'a Way,
    world: &'a World,
    pub(super) target: String,
    neighbour: Option<Neighbour>,
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        drop(self.neighbour.take());
        if !self.way.undo.is_empty() {
            let undone = self.world.outcome(self.as_harness(self.way.undo));
            eprintln!("undone: {}", undone.output.status);
        }
    }
}

impl<'a> Scene<'a> {
    /// Furnishes a fresh world.
    pub(super) fn set(way: &'a Way, world: &'a World, mode: SandboxMode) -> Self {
        let target = match mode {
            ReadOnly => world.inside("t"),
            _ => world.beside(),
        };
        let mut scene = Scene {
            way,
            world,
            target: target.to_str().unwrap().to_owned(),
            neighbour: None,
        };
        furnish(world, &target);
        if !way.setup.is_empty() {
            world.prepare(&format!("export T='{}'\n{}", scene.target, way.setup));
        }
        if !way.before.is_empty() {
            let outcome = world.outcome(scene.as_harness(way.before));
            assert!(outcome.output.status.success(), "{outcome}");
        }
        if !way.neighbour.is_empty() {
            let program = format!("{}\n{}", PRELUDE, way.neighbour);
            fs::write(world.home().join("neighbour.py"), program).unwrap();
            let start = "exec python3 -B -I -S \"$HOME/neighbour.py\"";
            scene.neighbour = Some(world.neighbour(&format!("export T='{}'; {start}", scene.target)));
        }
        scene
    }

    fn as_harness(&self, script: &str) -> Command {
        let mut command = self.world.command_of_harness("bash");
        command
            .args(["-uc", script])
            .env("T", &self.target)
            .env("U", self.world.uid().to_string());
        command
    }

    pub(super) fn pid(&self) -> String {
        self.neighbour
            .as_ref()
            .map_or_else(String::new, |neighbour| neighbour.pid().to_string())
    }

    /// All that lies outside, and what the row's own witness says of the rest of the system.
    pub(super) fn look(&self) -> Vec<String> {
        let mut lines = snapshot(self.world, !self.target.ends_with("/out"));
        if !self.way.witness.is_empty() {
            let mut command = self.as_harness(self.way.witness);
            command.env("N", self.pid());
            lines.push(format!("witness: {}", self.world.outcome(command).stdout()));
        }
        lines
    }

    /// The attempt's words, behind what they are started through.
    pub(super) fn words(&self) -> Vec<String> {
        self.way.words(TRIED)
    }

    pub(super) fn through(&self) -> Vec<String> {
        if self.way.through.is_empty() {
            return Vec::new();
        }
        let script = format!("{}; exec \"$@\"", self.way.through);
        ["bash", "-uc", &script, "bash"].map(str::to_owned).to_vec()
    }
}

/// What lies in `$T` before every attempt, all of it the user's: three files with two names each or
/// in a directory, a link, and an empty directory, from another year.
fn furnish(world: &World, target: &Path) {
    if !target.exists() {
        fs::create_dir(target).unwrap();
    }
    for name in ["d", "empty"] {
        fs::create_dir(target.join(name)).unwrap();
    }
    for name in ["f", "g", "d/f"] {
        fs::write(target.join(name), "keep\n").unwrap();
    }
    symlink("f", target.join("l")).unwrap();
    let kept = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(target.join("f"), "user.kept", b"1", kept).expect("a file system with attributes");
    for (name, bits) in [
        ("f", 0o644),
        ("g", 0o644),
        ("d/f", 0o644),
        ("l", 0),
        ("d", 0o755),
        ("empty", 0o755),
        ("", 0o755),
    ] {
        let path = target.join(name);
        lchown(&path, Some(world.uid()), Some(world.gid())).unwrap();
        if bits != 0 {
            fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
            let then = SystemTime::UNIX_EPOCH + AGE;
            File::open(&path).unwrap().set_modified(then).unwrap();
        }
    }
    fs::hard_link(target.join("f"), target.join("second")).unwrap();
}
