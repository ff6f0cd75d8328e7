//! Paths inside a writable root that stay as they are.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;

use ringfence::SandboxMode::WorkspaceWrite;
use serde_json::Value;

use crate::support::{CONTAINER, Case, Report, World, for_each_user, names, text};

/// A directory with a file, and a file, each beneath directories that may be written.
const KEPT: &str = "mkdir -p a/kept/deep b; echo keep > a/kept/f; echo keep > a/kept/deep/g; echo keep > b/conf; \
    chmod 640 b/conf; touch -d 2001-01-01 b/conf a/kept/f";

const PROTECT: [&str; 4] = ["--protect", "a/kept", "--protect", "b/conf"];

/// What the protected paths are: content, mode bits and times of each file.
fn kept(world: &World) -> String {
    world.prepare(
        "stat -c '%n %a %Y %i' a a/kept a/kept/deep a/kept/f b b/conf; cat a/kept/f a/kept/deep/g b/conf; ls a/kept b",
    )
}

/// Every way to change the protected paths or to put something else in their places.
const ATTEMPTS: [(&str, &str); 19] = [
    ("write", "echo x > a/kept/f"),
    ("write", "echo x >> b/conf"),
    ("create", "echo x > a/kept/new"),
    ("truncate", "python3 -c 'import os; os.truncate(\"b/conf\", 0)'"),
    ("remove", "rm -f a/kept/f"),
    ("remove", "rm -f b/conf"),
    ("remove", "rmdir a/kept/deep; rm -r a/kept/deep"),
    ("rename", "mv a/kept a/other"),
    ("rename", "mv a away"),
    ("rename", "echo x > n; mv -f n b/conf"),
    ("rename", "echo x > n; mv -f n a/kept/f"),
    (
        "rename",
        "mkdir swap; python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"swap\", -100, b\"a/kept\", 2)'",
    ),
    ("mkdir", "mkdir a/kept/d"),
    ("symlink", "ln -s x a/kept/l"),
    ("link", "python3 -c 'import os; os.link(\"b/conf\", \"stolen\")'"),
    ("chmod", "chmod 777 b/conf"),
    ("utime", "touch b/conf"),
    (
        "xattr",
        "setfattr -n user.a -v b b/conf || python3 -c 'import os; os.setxattr(\"b/conf\", \"user.a\", b\"b\")'",
    ),
    ("write", "cd b; echo x > ../a/kept/../kept/f"),
];

#[test]
fn what_is_protected_stays_as_it_is_whatever_is_tried_and_each_attempt_is_recorded() {
    for_each_user(|world| {
        for evidence in ["auto", "strict"] {
            world.prepare(&format!("rm -rf *; {KEPT}"));
            let before = kept(world);
            for (op, attempt) in ATTEMPTS {
                let report = Case::new(WorkspaceWrite)
                    .options(PROTECT)
                    .options(["--evidence", evidence])
                    .shell(&format!("{attempt}; true"))
                    .run_in(world);
                assert_eq!(kept(world), before, "{attempt}: {report}");
                report.assert_full().assert_denied(true);
                let denials = report.field("/sandbox/denials").as_array().unwrap();
                let denial = denials.iter().find(|denial| denial["op"] == op);
                let denial = denial.unwrap_or_else(|| panic!("{attempt} by {evidence}: no {op} is recorded: {report}"));
                assert_eq!(denial["loosen"], Value::Null, "protection wins: {report}");
                world.prepare("rm -rf n swap stolen");
            }
        }
    });
}

#[test]
fn everything_beside_what_is_protected_goes_on_changing() {
    Case::new(WorkspaceWrite)
        .setup(KEPT)
        .options(PROTECT)
        .shell(
            "set -e; echo x > a/new; mv a/new a/newer; mkdir a/d b/d; echo y > b/other; mv b/other b/d/; rm -r a/d; \
             chmod 700 a; touch b; echo z > top; mv top a/top; cat a/kept/f",
        )
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_denied(false).assert_full();
            assert_eq!(report.stdout(), "keep\n");
            assert_eq!(names(world.inside("a")), ["kept", "newer", "top"]);
            assert_eq!(names(world.inside("b/d")), ["other"]);
        });
}

#[test]
fn nothing_is_made_on_the_host_for_what_is_not_there_and_that_is_named() {
    for_each_user(|world| {
        let case = |options: &[&str]| {
            Case::new(WorkspaceWrite)
                .options(["--protect", "missing/deep", "--protect", "gone"])
                .options(options.iter().copied())
                .shell("ls -A; touch gone")
                .run_in(world)
        };
        let report = case(&[]);
        report.assert_exit(0).assert_partial(&["protected-paths"]);
        assert_eq!(report.stdout(), "");
        assert_eq!(names(world.workspace()), ["gone"]);
        world.prepare("rm gone");
        case(&["--require", "full"]).assert_error("SANDBOX_UNAVAILABLE");
        assert!(names(world.workspace()).is_empty());
    });
}

#[test]
fn without_mounts_protection_is_named_as_missing() {
    Case::new(WorkspaceWrite)
        .setup(KEPT)
        .inside(CONTAINER)
        .options(PROTECT)
        .argv(["true"])
        .run_as_each_user(|_, report| {
            let open = report.field("/sandbox/ungoverned").as_array().unwrap();
            assert!(open.contains(&"protected-paths".into()), "{report}");
        });
}

#[test]
fn a_link_is_protected_at_its_target_and_can_itself_be_exchanged() {
    for_each_user(|world| {
        world.prepare("mkdir real; echo keep > real/f; ln -s real link; ln -s nowhere dangling");
        let report = Case::new(WorkspaceWrite)
            .options(["--protect", "link", "--protect", "dangling"])
            .shell("echo x > link/f; echo x > real/f; mv real r2; true")
            .run_in(world);
        report.assert_denied(true).assert_partial(&["protected-paths"]);
        assert_eq!(text(world.inside("real/f")), "keep\n");
    });
}

#[test]
fn names_of_any_bytes_can_be_protected() {
    for_each_user(|world| {
        let odd: [&[u8]; 4] = [b"with space", b"quo'te\"s", b"new\nline", b"no\xffutf8"];
        for name in odd {
            let name = OsString::from_vec(name.to_vec());
            let file = world.inside("x").with_file_name(&name);
            std::fs::write(&file, "keep\n").unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
        }
        let case = odd.iter().fold(Case::new(WorkspaceWrite), |case, name| {
            case.options([OsString::from("--protect"), OsString::from_vec(name.to_vec())])
        });
        let report = case.shell("for f in *; do echo x > \"$f\"; done; true").run_in(world);
        report.assert_full().assert_denied(true);
        assert_eq!(
            report.field("/sandbox/denials").as_array().unwrap().len(),
            4,
            "{report}"
        );
        for name in odd {
            let file = world.inside("x").with_file_name(OsString::from_vec(name.to_vec()));
            assert_eq!(text(&file), "keep\n", "{}", file.display());
        }
    });
}

#[test]
fn a_loop_of_links_and_an_empty_path_are_refused_and_what_lies_outside_needs_nothing() {
    for_each_user(|world| {
        world.prepare("ln -s b a; ln -s a b; echo keep > $OUT/f");
        for (path, ok) in [("a", false), ("", false), ("/etc/passwd", true), ("$OUT/f", true)] {
            let path = world.expand(path.as_ref());
            let report = Case::new(WorkspaceWrite)
                .options([OsString::from("--protect"), path.clone()])
                .argv(["true"])
                .run_in(world);
            if ok {
                report.assert_full();
            } else {
                report.assert_error("POLICY_INVALID");
                assert!(report.text("/error/message").contains("protected path"), "{report}");
            }
        }
    });
}

/// Commits, whoever the user is.
const GIT: &str = "git -c user.name=a -c user.email=a@b";

fn assert_git(world: &World, hooks: &str, config: &str, report: &Report) {
    assert!(!world.inside(hooks).join("pre-commit").exists(), "{report}");
    assert!(!text(world.inside(config)).contains("fsmonitor"), "{report}");
}

#[test]
fn a_git_repository_can_be_worked_in_but_its_hooks_and_configuration_stay() {
    for_each_user(|world| {
        world.prepare("git init -q .");
        let report = Case::without_a_mode()
            .options(["--profile", "vcs/git"])
            .shell(&format!(
                "echo a > a && git add a && {GIT} commit -qm one && {GIT} checkout -qb other && git log --oneline | wc -l\n\
                 echo evil > .git/hooks/pre-commit; git config core.fsmonitor ./evil; mv .git/hooks .git/h2; mv .git g; \
                 rm -rf .git/hooks .git/config; mkdir .git; echo ok > .git/description; exit 0"
            ))
            .run_in(world);
        report.assert_exit(0).assert_full().assert_denied(true);
        assert_eq!(report.stdout(), "1\n");
        assert_git(world, ".git/hooks", ".git/config", &report);
        assert!(!names(world.inside(".git/hooks")).is_empty(), "the samples are there");
        assert_eq!(text(world.inside(".git/description")), "ok\n");
    });
}

#[test]
fn where_there_is_no_repository_yet_one_can_be_made() {
    Case::without_a_mode()
        .options(["--profile", "vcs/git"])
        .shell("ls -A; git init -q . && echo made")
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_partial(&["protected-paths"]);
            assert_eq!(report.stdout(), "made\n");
            assert!(world.inside(".git/config").exists());
        });
}

#[test]
fn a_linked_worktree_reaches_its_repository_but_not_what_git_runs_or_follows_there() {
    for_each_user(|world| {
        world.prepare(&format!(
            "git init -q $OUT/main; cd $OUT/main; {GIT} commit -q --allow-empty -m root; git worktree add -q $W/wt"
        ));
        let report = Case::without_a_mode()
            .options(["--workspace", "$W/wt", "--profile", "vcs/git-worktree"].map(|word| world.expand(word.as_ref())))
            .shell(&format!(
                "echo a > a && git add a && {GIT} commit -qm two && git log --oneline | wc -l\n\
                 main=$OUT/main; echo evil > $main/.git/hooks/pre-commit; git config core.fsmonitor ./evil\n\
                 echo gitdir: /tmp > .git; echo / > $main/.git/worktrees/wt/commondir; echo x > $main/a; exit 0"
            ))
            .env("OUT", world.beside())
            .run_in(world);
        report.assert_exit(0).assert_full().assert_denied(true);
        assert_eq!(report.stdout(), "2\n", "{report}");
        let main = world.outside("main/.git");
        assert!(!main.join("hooks/pre-commit").exists());
        assert!(!text(main.join("config")).contains("fsmonitor"));
        assert_eq!(text(main.join("worktrees/wt/commondir")), "../..\n");
        assert!(text(world.inside("wt/.git")).contains("worktrees/wt"));
        assert!(!world.outside("main/a").exists(), "the main working tree is outside");
    });
}

#[test]
fn a_forged_worktree_opens_nothing() {
    for_each_user(|world| {
        // A command of an earlier run can write `.git`, and a directory that pretends to be a repository.
        world.prepare(
            "git init -q $OUT/main; mkdir -p fake; echo $OUT/main/.git > fake/commondir; echo $W/wt/.git > fake/gitdir; \
             mkdir wt; echo gitdir: $OUT/main/.git > wt/.git",
        );
        for pointer in ["$OUT/main/.git", "$W/fake"] {
            world.prepare(&format!("echo gitdir: {pointer} > wt/.git"));
            let report = Case::without_a_mode()
                .options(
                    ["--workspace", "$W/wt", "--profile", "vcs/git-worktree"].map(|word| world.expand(word.as_ref())),
                )
                .shell("echo x > $OUT/main/.git/description; exit 0")
                .env("OUT", world.beside())
                .run_in(world);
            report.assert_denied(true);
            assert_ne!(
                text(world.outside("main/.git/description")),
                "x\n",
                "{pointer}: {report}"
            );
        }
    });
}
