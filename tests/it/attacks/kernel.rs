//! Calls that pass by mounts and Landlock, and files that neither of them covers.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::PathBuf;

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{Uid, geteuid};
use ringfence::SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};

use crate::support::{CONTAINER, Case, World, for_each_user, names, text};

use super::{EVIDENCE, compile_calls, unconfined};

#[test]
fn the_newer_mount_calls_are_refused_in_a_new_user_namespace_too() {
    for_each_user(|world| {
        compile_calls(world);
        let free = unconfined(world, "mounting");
        assert!(free.contains("done") && free.contains("9\n"), "{free}");
        for evidence in EVIDENCE {
            let case = Case::new(WorkspaceWrite).options(evidence);
            let report = case.shell("\"$HOME/calls\" mounting").run_in(world);
            report.assert_exit(0);
            assert_eq!(report.stdout(), "1\n".repeat(8), "{report}");
        }
    });
}

/// A control group of a user's, removed when dropped.
struct ControlGroup {
    path: PathBuf,
    file: PathBuf,
}

impl ControlGroup {
    /// None where the harness may not make one.
    fn of(world: &World) -> Option<Self> {
        let mounts = text("/proc/self/mounts");
        let root = mounts
            .lines()
            .find_map(|line| line.contains(" cgroup2 ").then(|| line.split(' ').nth(1).unwrap()))?;
        let own = text("/proc/self/cgroup");
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
        let name = format!("ringfence-test-{}-{}", std::process::id(), world.uid());
        let path = PathBuf::from(root).join(own).join(name);
        fs::create_dir(&path).ok()?;
        let group = Self {
            file: path.join("cgroup.procs"),
            path,
        };
        for path in [&group.path, &group.file] {
            chown(path, Some(world.uid()), Some(world.uid())).unwrap();
        }
        Some(group)
    }

    fn state(&self) -> (u32, i64, u32) {
        let about = fs::metadata(&self.file).unwrap();
        (about.mode() & 0o7777, about.mtime(), about.uid())
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(self.path.join("ringfence-test-new"));
        let _ = fs::remove_dir(&self.path);
    }
}

#[test]
fn a_control_group_of_the_users_keeps_its_metadata() {
    for_each_user(|world| {
        let Some(group) = ControlGroup::of(world) else {
            eprintln!("NOT RUN, needs a control group that may be changed");
            return;
        };
        compile_calls(world);
        let name = group.path.file_name().unwrap().to_str().unwrap();
        let words = format!("cgroup {name}/cgroup.procs");
        let before = group.state();
        let free = unconfined(world, &words);
        assert!(
            free.starts_with("done") && group.state().0 == 0o601,
            "unconfined it works: {free}"
        );
        world.prepare(&format!("chmod {:o} {}", before.0, group.file.display()));
        let plain = format!(
            "chmod 601 {0}/cgroup.procs; touch -d 2001-01-01 {0}/cgroup.procs; mkdir {0}/ringfence-test-new",
            group.path.display()
        );
        let before = group.state();
        for evidence in EVIDENCE {
            for mode in [ReadOnly, WorkspaceWrite] {
                let text = format!("\"$HOME/calls\" {words}; {plain}; exit 0");
                let report = Case::new(mode).options(evidence).shell(&text).run_in(world);
                report.assert_exit(0).assert_full();
                assert!(!report.stdout().contains("done"), "{report}");
                assert_eq!(group.state(), before, "{report}");
                assert!(!group.path.join("ringfence-test-new").exists(), "{report}");
            }
        }
    });
}

/// A message queue of a user's, removed when dropped.
struct Queue<'a> {
    world: &'a World,
    name: String,
}

impl<'a> Queue<'a> {
    fn of(world: &'a World, name: &str) -> Self {
        compile_calls(world);
        let name = format!("ringfence-test-{name}-{}-{}", std::process::id(), world.uid());
        assert_eq!(unconfined(world, &format!("queue make {name}")), "done\n");
        Self { world, name }
    }

    /// Its mode bits, or the errno.
    fn look(&self) -> String {
        unconfined(self.world, &format!("queue look {}", self.name))
    }

    /// What a confined attempt at it says.
    fn attack(&self, evidence: [&str; 2], what: &str) -> String {
        let text = format!("\"$HOME/calls\" queue {what} {}", self.name);
        let report = Case::new(WorkspaceWrite)
            .options(evidence)
            .shell(&text)
            .run_in(self.world);
        report.assert_exit(0).assert_full();
        report.stdout().to_owned()
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        unconfined(self.world, &format!("queue remove {}", self.name));
    }
}

#[test]
fn a_message_queue_that_outlives_the_run_is_neither_made_nor_removed() {
    for_each_user(|world| {
        let kept = Queue::of(world, "kept");
        let new = Queue::of(world, "new");
        assert_eq!(unconfined(world, &format!("queue remove {}", new.name)), "done\n");
        for evidence in EVIDENCE {
            assert_eq!(kept.attack(evidence, "remove"), "1\n");
            assert_eq!(new.attack(evidence, "make"), "1\n");
            assert_eq!((kept.look(), new.look()), ("600\n".to_owned(), "2\n".to_owned()));
        }
    });
}

#[test]
fn a_message_queue_of_the_hosts_keeps_its_mode_bits() {
    for_each_user(|world| {
        let kept = Queue::of(world, "mode");
        for evidence in EVIDENCE {
            let said = kept.attack(evidence, "change");
            assert_eq!(kept.look(), "600\n", "{evidence:?}: {said}");
        }
    });
}

/// Copies of the null device, made by root and given to the user. False where nobody can make them.
fn put_devices(world: &World) -> bool {
    if !geteuid().is_root() {
        eprintln!("NOT RUN, needs root");
        return false;
    }
    world.prepare("mkdir $OUT/granted");
    for path in [world.inside("null"), world.outside("granted/null")] {
        mknod(&path, SFlag::S_IFCHR, Mode::S_IRWXU, makedev(1, 3)).unwrap();
        nix::unistd::chown(&path, Some(Uid::from_raw(world.uid())), None).unwrap();
    }
    true
}

/// Writes them, by name and through a program.
const WRITE_DEVICES: &str = "echo x > null && echo written; echo x > \"$OUT/granted/null\" && echo written; \
    echo x | dd of=null conv=notrunc status=none && echo written; exit 0";

fn device_case() -> Case {
    let case = Case::new(WorkspaceWrite).options(["--write", "$OUT/granted"]);
    case.shell(WRITE_DEVICES)
}

#[test]
fn a_device_node_that_lies_in_the_workspace_already_is_not_written() {
    for_each_user(|world| {
        if !put_devices(world) {
            return;
        }
        assert_eq!(world.bash(WRITE_DEVICES).stdout(), "written\n".repeat(3));
        for evidence in EVIDENCE {
            let report = device_case().options(evidence).run_in(world);
            report.assert_exit(0).assert_full();
            assert_eq!(report.stdout(), "", "{report}");
            if report.field("/sandbox/evidence") == "observed" {
                report.assert_denied(true);
            }
        }
        let sink = Case::new(WorkspaceWrite).shell("echo x > /dev/null && echo sink");
        assert_eq!(sink.run_in(world).stdout(), "sink\n");
        assert_eq!(names(world.workspace()), ["null"]);
    });
}

#[test]
fn a_device_node_is_not_written_under_what_is_called_full_without_mounts_either() {
    for_each_user(|world| {
        if !put_devices(world) {
            return;
        }
        let report = device_case().inside(CONTAINER).run_in(world);
        report.assert_exit(0);
        if report.field("/sandbox/enforcement") == "full" {
            assert_eq!(report.stdout(), "", "{report}");
        }
    });
}

#[test]
fn the_runners_limits_are_not_the_commands_to_set() {
    for_each_user(|world| {
        compile_calls(world);
        let free = world.bash("sleep 60 & \"$HOME/calls\" limits $!; kill $!").stdout();
        assert_eq!(free, "done\n".repeat(4), "of any other process of the user's they are");
        for mode in [ReadOnly, WorkspaceWrite] {
            let text = "\"$HOME/calls\" limits $PPID; echo x > \"$OUT/new\"; mkdir \"$OUT/d\"; echo end; exit 3";
            let report = Case::new(mode)
                .options(["--report", "$OUT/report"])
                .shell(text)
                .run_in(world);
            report.assert_exit(3).assert_full().assert_denied(true);
            assert_eq!(report.stdout(), format!("{}end\n", "1\n".repeat(4)), "{report}");
            assert_eq!(names(world.beside()), ["report"]);
            let written: serde_json::Value = serde_json::from_str(&text_of(world)).unwrap();
            assert_eq!(written["exitCode"], 3, "{written:#}");
            assert_eq!(
                written["sandbox"]["denials"].as_array().map(Vec::len),
                Some(2),
                "{written:#}"
            );
        }
    });
}

#[test]
fn where_there_are_no_namespaces_nobody_elses_limits_and_priorities_are_the_commands_to_set() {
    let python = r"
import os, resource, sys
process = int(sys.argv[1])
def attempt(what, try_it):
    try: try_it(); print(what)
    except OSError: pass
attempt('files', lambda: resource.prlimit(process, resource.RLIMIT_NOFILE, (7, 7)))
attempt('priority', lambda: os.setpriority(os.PRIO_PROCESS, process, 19))
attempt('read', lambda: resource.prlimit(process, resource.RLIMIT_NOFILE))
attempt('own', lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
attempt('own priority', lambda: os.nice(1))
";
    for_each_user(|world| {
        let neighbour = world.neighbour("echo ready; exec sleep 600");
        let pid = neighbour.pid().to_string();
        let tried = |case: Case| case.argv(["python3", "-c", python, &pid]).run_in(world);
        let confined = tried(Case::new(ReadOnly).inside(CONTAINER));
        assert_eq!(confined.stdout(), "read\nown\nown priority\n", "{confined}");
        let free = tried(Case::new(DangerFullAccess));
        assert_eq!(free.stdout(), "files\npriority\nread\nown\nown priority\n", "{free}");
    });
}

fn text_of(world: &World) -> String {
    text(world.outside("report"))
}
