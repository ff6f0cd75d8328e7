//! Names that nobody expects, wherever a path can be given, under each backend.

mod places;
mod roots;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};
use serde_json::Value;

use crate::support::{Case, World, for_each_user, names, text};

/// The backends that confine, each by its name.
pub(crate) const NAMED: [[&str; 2]; 2] = [["--backend", "landlock"], ["--backend", "bwrap"]];

/// Spaces, quotes, newlines, what mount tables escape, what looks like an option or a word of bubblewrap's, what a
/// shell would run, and bytes that are no text.
const NAMES: [&[u8]; 14] = [
    b"a b",
    b" lead and trail ",
    b"it's \"quoted\"",
    b"new\nline",
    b"tab\ttab",
    b"back\\slash",
    b"back\\040slash",
    b"-rf",
    b"--bind",
    b"$(touch x)`touch y`",
    b"x (deleted)",
    b"\xc3\xa4\xf0\x9f\x98\x80",
    b"\xff\xfe\x80",
    b"\x1b[31m\x07",
];

/// For each user, each backend and each name.
fn for_each_name(test: impl Fn(&World, [&str; 2], &OsStr)) {
    for_each_user(|world| {
        for backend in NAMED {
            for name in NAMES {
                eprintln!("{backend:?} and {}", name.escape_ascii());
                test(world, backend, OsStr::from_bytes(name));
            }
        }
    });
}

/// Makes a directory that belongs to the user of the world.
fn make(world: &World, path: &Path) {
    let mut command = world.command("mkdir");
    command.args(["-p", "--"]).arg(path);
    assert_eq!(world.outcome(command).status(), 0);
}

/// The path of a record, byte for byte.
fn bytes(record: &Value) -> Vec<u8> {
    record["pathBytes"].as_str().map_or_else(
        || record["path"].as_str().unwrap().as_bytes().to_vec(),
        |twin| base64::engine::general_purpose::STANDARD.decode(twin).unwrap(),
    )
}

fn case(backend: [&str; 2]) -> Case {
    Case::new(WorkspaceWrite).options(backend).options(["--temp", "none"])
}

#[test]
fn a_workspace_of_any_name_can_be_worked_in_and_what_lies_beside_it_cannot() {
    for_each_name(|world, backend, name| {
        let workspace = world.inside("ws").with_file_name(name).join("deep");
        make(world, &workspace);
        let report = case(backend)
            .options([OsString::from("-C"), workspace.clone().into()])
            .shell("pwd > out && mkdir d && mv out d/out && chmod 600 d/out && echo x > ../beside; exit 0")
            .run_in(world);
        report.assert_exit(0).assert_full().assert_denied(true);
        let told = fs::read(workspace.join("d/out")).unwrap();
        assert_eq!(told, [workspace.as_os_str().as_bytes(), b"\n"].concat(), "{report}");
        assert!(!workspace.with_file_name("beside").exists());
        let denials = report.field("/sandbox/denials").as_array().unwrap();
        let refused = workspace.with_file_name("beside");
        assert_eq!(
            denials.iter().map(bytes).collect::<Vec<_>>(),
            [refused.as_os_str().as_bytes()],
            "{report}"
        );
        world.prepare("rm -rf ./* ./-* ./' '*");
    });
}

#[test]
fn a_writable_root_of_any_name_is_opened_and_nothing_else() {
    for_each_name(|world, backend, name| {
        let root = world.beside().join(name);
        make(world, &root);
        make(world, &world.beside().join("closed"));
        let report = case(backend)
            .options([OsString::from("--write"), root.clone().into()])
            .env("ROOT", root.clone())
            .shell("echo in > \"$ROOT/f\"; chmod 600 \"$ROOT/f\"; echo x > $OUT/f; echo x > $OUT/closed/f; exit 0")
            .run_in(world);
        report.assert_exit(0).assert_full();
        assert_eq!(text(root.join("f")), "in\n", "{report}");
        assert!(
            !world.outside("f").exists() && names(world.outside("closed")).is_empty(),
            "{report}"
        );
        fs::remove_dir_all(root).unwrap();
    });
}

#[test]
fn a_protected_path_of_any_name_stays_and_the_record_has_its_bytes() {
    for_each_name(|world, backend, name| {
        let kept = world.inside("x").with_file_name(name);
        make(world, &kept);
        fs::write(kept.join("f"), "keep\n").unwrap();
        let report = case(backend)
            .options([OsString::from("--protect"), kept.clone().into()])
            .env("KEPT", kept.clone())
            .shell("rm -f -- \"$KEPT/f\"; mv -- \"$KEPT\" away; touch beside; exit 0")
            .run_in(world);
        report.assert_exit(0).assert_full().assert_denied(true);
        assert_eq!(text(kept.join("f")), "keep\n", "{report}");
        assert!(
            world.inside("beside").exists() && !world.inside("away").exists(),
            "{report}"
        );
        let denials = report.field("/sandbox/denials").as_array().unwrap();
        let refused = kept.join("f");
        let removal = denials
            .iter()
            .find(|record| record["op"] == "remove")
            .expect("a record of the removal");
        assert_eq!(bytes(removal), refused.as_os_str().as_bytes(), "{report}");
        fs::remove_dir_all(kept).unwrap();
    });
}

#[test]
fn a_working_directory_a_temp_directory_and_a_file_of_any_name_are_served() {
    for_each_name(|world, backend, name| {
        let workdir = world.inside("x").with_file_name(name);
        let temp = world.home().join(name);
        make(world, &workdir);
        make(world, &temp);
        let report = Case::new(WorkspaceWrite)
            .options(backend)
            .options([OsString::from("--workdir"), workdir.clone().into()])
            .env("TMPDIR", temp.clone())
            .env("NAME", name)
            .shell("pwd; echo in > \"./$NAME\"; echo temp > \"$TMPDIR/t\"; echo x > ~/beside; exit 0")
            .run_in(world);
        report.assert_exit(0).assert_full();
        assert_eq!(text(workdir.join(name)), "in\n", "{report}");
        assert_eq!(text(temp.join("t")), "temp\n", "{report}");
        assert!(!world.home().join("beside").exists(), "{report}");
        let shown = report.stdout();
        assert_eq!(
            shown,
            format!("{}\n", String::from_utf8_lossy(workdir.as_os_str().as_bytes())),
            "{report}"
        );
        fs::remove_dir_all(workdir).unwrap();
        fs::remove_dir_all(temp).unwrap();
    });
}

#[test]
fn in_read_only_the_record_of_a_file_of_any_name_has_its_bytes() {
    for_each_name(|world, backend, name| {
        let file = world.inside("x").with_file_name(name);
        let report = Case::new(ReadOnly)
            .options(backend)
            .env("NAME", name)
            .shell("echo x > \"./$NAME\"; exit 0")
            .run_in(world);
        report.assert_exit(0).assert_full().assert_denied(true);
        let denials = report.field("/sandbox/denials").as_array().unwrap();
        assert_eq!(
            denials.iter().map(bytes).collect::<Vec<_>>(),
            [file.as_os_str().as_bytes()],
            "{report}"
        );
        assert!(names(world.workspace()).is_empty());
    });
}

#[test]
fn a_path_that_is_too_long_is_refused() {
    for_each_user(|world| {
        for backend in NAMED {
            let long = PathBuf::from(OsString::from_vec(b"/x".repeat(2500)));
            for option in ["--write", "-C", "--workdir"] {
                let report = case(backend)
                    .options([OsStr::new(option), long.as_os_str()])
                    .argv(["touch", "ran"])
                    .run_in(world);
                assert!(
                    ["POLICY_INVALID", "WORKDIR_UNUSABLE"].contains(&report.text("/error/code")),
                    "{option}: {report}"
                );
                assert!(!world.inside("ran").exists());
            }
        }
    });
}
