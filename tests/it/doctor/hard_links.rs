//! Hard links from the workspace to outside.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringfence::SandboxMode::WorkspaceWrite;
use serde_json::{Value, json};

use super::{doctor, document, rows};
use crate::support::{Case, World, for_each_user, text};

fn found(world: &World, inside: &[&str], options: &[&str]) -> Value {
    document(world, inside, options, &[])["hardLinks"].take()
}

/// The paths that are listed, from the workspace on.
fn paths(world: &World, found: &Value) -> Vec<String> {
    let root = format!("{}/", world.workspace().display());
    let files = rows(found, "files").iter();
    files
        .map(|row| row["path"].as_str().unwrap().strip_prefix(&root).unwrap().to_owned())
        .collect()
}

#[test]
fn a_hard_link_to_outside_is_found_and_one_wholly_inside_is_not() {
    for_each_user(|world| {
        world.prepare(
            "echo keep > $OUT/f; mkdir d; ln $OUT/f d/linked; echo a > a; ln a d/b; echo c > c; \
             ln -s $OUT/f by-name; ln -s $OUT away",
        );
        let found = found(world, &[], &[]);
        assert_eq!(paths(world, &found), ["d/linked"], "{found}");
        assert_eq!(found["files"][0]["links"], 2);
        assert_eq!(found["files"][0]["inside"], 1);
        assert_eq!((&found["total"], &found["complete"]), (&json!(1), &json!(true)));
        assert_eq!(found["workspace"], world.workspace().to_str().unwrap());
        assert_eq!(found["cost"], "copies of all of them take 5 bytes");
        assert!(found["advice"].as_str().unwrap().contains("--protect"), "{found}");
        assert_eq!(text(world.outside("f")), "keep\n");
    });
}

#[test]
fn a_workspace_without_them_is_told_in_no_words() {
    for_each_user(|world| {
        world.prepare("echo a > a; ln a b; mkdir d");
        let found = found(world, &[], &[]);
        assert_eq!(
            (&found["total"], &found["complete"]),
            (&json!(0), &json!(true)),
            "{found}"
        );
        assert_eq!(
            (&found["cost"], &found["advice"]),
            (&Value::Null, &Value::Null),
            "{found}"
        );
        let words = doctor(world, &[], &[], &[]).stdout();
        assert!(!words.contains("Hard links"), "{words}");
    });
}

#[test]
fn what_is_found_can_be_changed_by_a_run_and_either_advice_ends_that() {
    for_each_user(|world| {
        world.prepare("for i in a b; do echo keep > $OUT/$i; ln $OUT/$i $i; done");
        assert_eq!(paths(world, &found(world, &[], &[])), ["a", "b"]);
        // The second advice.
        let run = |options: &[&str], script: &str| {
            let case = Case::new(WorkspaceWrite).options(options.iter().copied());
            case.shell(script).run_in(world)
        };
        run(&["--protect", "b"], "echo changed > b").assert_denied(true);
        assert_eq!(text(world.outside("b")), "keep\n");
        // The first.
        world.prepare("cp b b.new && mv b.new b");
        assert_eq!(paths(world, &found(world, &[], &[])), ["a"]);
        run(&[], "echo changed > a; echo changed > b").assert_exit(0);
        assert_eq!(
            (text(world.outside("a")), text(world.outside("b"))),
            ("changed\n".into(), "keep\n".into())
        );
    });
}

#[test]
fn the_workspace_is_the_one_that_is_named() {
    for_each_user(|world| {
        world.prepare("mkdir $OUT/other; echo a > $OUT/f; ln $OUT/f $OUT/other/g");
        assert_eq!(found(world, &[], &[])["total"], 0);
        let found = found(world, &[], &["-C", "$OUT/other"]);
        assert_eq!(found["total"], 1, "{found}");
        assert_eq!(found["files"][0]["path"], world.outside("other/g").to_str().unwrap());
    });
}

#[test]
fn a_long_list_is_cut_and_the_total_is_told() {
    for_each_user(|world| {
        world.prepare("mkdir $OUT/d; for i in $(seq 100 124); do echo > $OUT/d/$i; ln $OUT/d/$i $i; done");
        let found = found(world, &[], &[]);
        assert_eq!(found["total"], 25);
        let first: Vec<_> = (100..120).map(|number| number.to_string()).collect();
        assert_eq!(paths(world, &found), first);
        let words = doctor(world, &[], &[], &[]).stdout();
        assert!(words.contains(" and 5 more\n"), "{words}");
        assert!(words.contains("on purpose"), "{words}");
    });
}

#[test]
fn odd_bytes_in_a_name_are_shown_safely_and_kept_beside() {
    for_each_user(|world| {
        world.prepare(r"echo a > $OUT/f; ln $OUT/f $'a\xff\e[2J\n'");
        let words = doctor(world, &[], &[], &[]);
        assert!(!words.stdout().contains('\u{1b}'), "{words}");
        assert!(
            words.stdout().contains("/a\u{fffd}\\u{1b}[2J\\n: 1 of 2 names"),
            "{words}"
        );
        let found = found(world, &[], &[]);
        let path = world.workspace().join(OsStr::from_bytes(b"a\xff\x1b[2J\n"));
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        let twin = STANDARD.encode(path.as_os_str().as_bytes());
        assert_eq!(found["files"][0]["pathBytes"], twin, "{found}");
        assert!(found.get("workspaceBytes").is_none(), "{found}");
    });
}

#[test]
fn a_directory_that_cannot_be_read_is_named_as_not_looked_at() {
    for_each_user(|world| {
        world.prepare("mkdir closed open; echo a > $OUT/f; ln $OUT/f closed/f; ln $OUT/f open/f; chmod 0 closed");
        // Root reads it, and whoever has no capability does not.
        let without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"];
        let inside: &[&str] = if world.uid() == 0 { &without } else { &[] };
        let found = found(world, inside, &[]);
        let words = doctor(world, inside, &[], &[]).stdout();
        world.prepare("chmod 755 closed");
        assert_eq!(paths(world, &found), ["open/f"]);
        assert_eq!(
            (&found["complete"], &found["notLookedAtTotal"]),
            (&json!(false), &json!(1)),
            "{found}"
        );
        let closed = world.inside("closed");
        assert_eq!(found["notLookedAt"][0]["path"], closed.to_str().unwrap());
        assert_eq!(found["notLookedAt"][0]["reason"], "Permission denied");
        assert!(found["detail"].is_string(), "{found}");
        assert!(
            words.contains(&format!("{}: Permission denied", closed.display())),
            "{words}"
        );
    });
}

#[test]
fn another_mount_is_not_entered_and_a_file_mounted_here_does_not_pass_for_a_name() {
    for_each_user(|world| {
        world
            .prepare("mkdir d $OUT/d; echo a > $OUT/f; echo b > $OUT/d/f; ln $OUT/d/f $OUT/d/g; ln $OUT/f a; echo > b");
        // Mounted over b, the file has two names here, one of which is the one outside.
        let mount = "mount --bind $OUT/d d; mount --bind a b; exec \"$@\"";
        let inside = ["unshare", "-Urm", "bash", "-euc", mount, "-"];
        let found = found(world, &inside, &[]);
        assert_eq!(paths(world, &found), ["a"], "{found}");
        let left: Vec<_> = rows(&found, "notLookedAt").iter().map(|row| &row["path"]).collect();
        assert_eq!(
            left,
            [world.inside("b").to_str().unwrap(), world.inside("d").to_str().unwrap()]
        );
        assert_eq!(found["complete"], false);
    });
}
