//! Shell texts of any length: bash runs them as it would with `-c`, and nothing of how they came is left.

use std::fs::{self, File};

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use crate::support::{Case, Report, World, for_each_user, text};

/// Lines that do nothing and are more than an argument can hold.
fn padding() -> Vec<u8> {
    b":\n".repeat(100_000)
}

/// Writes a shell text into the workspace.
fn write(world: &World, text: impl AsRef<[u8]>) {
    fs::write(world.inside("text"), text).unwrap();
}

/// A run of the text in the workspace.
fn case() -> Case {
    Case::new(WorkspaceWrite).options(["--command-file", "$W/text"])
}

/// What a text prints when it is short, and when it is long, which must be the same.
fn same(world: &World, before: &[u8], after: &[u8]) -> Report {
    write(world, [before, after].concat());
    let short = case().run_in(world);
    write(world, [before, &padding(), after].concat());
    let long = case().run_in(world);
    for fact in ["/exitCode", "/signal", "/stdout/text"] {
        assert_eq!(short.field(fact), long.field(fact), "{short}\n{long}");
    }
    assert!(!short.has("/command") && long.has("/command"), "{long}");
    long
}

#[test]
fn a_text_of_any_length_is_bash_c() {
    for_each_user(|world| {
        let long = same(world, b"", b"echo \"$0 $# $- $?\"; cat; exit 7");
        assert_eq!(long.assert_exit(7).stdout(), "bash 0 hBc 0\n");
        let long = same(world, b"", b"echo lost > f; kill -TERM $$; echo never");
        assert_eq!(long.field("/signal"), "SIGTERM");
        assert_eq!(text(world.inside("f")), "lost\n");
        same(world, b"trap 'echo bye' EXIT\n", b"if").assert_exit(2);
        same(world, b"-x || exit $?\n", b"exit 1").assert_exit(127);
        same(world, b"+x || exit $?\n", b"exit 1").assert_exit(127);
    });
}

#[test]
fn every_byte_of_a_long_text_is_the_commands() {
    let odd: Vec<u8> = (1..=255).filter(|byte| *byte != b'\'').collect();
    let start = [b"v='", odd.as_slice(), b"'\n"].concat();
    for_each_user(|world| {
        let long = same(world, &start, b"printf %s \"$v\" | od -An -tx1 | tr -d ' \\n'");
        let seen = long
            .stdout()
            .as_bytes()
            .chunks(2)
            .map(|pair| str::from_utf8(pair).unwrap());
        let seen: Vec<_> = seen.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
        assert_eq!(seen, odd);
        let whole = [
            start.as_slice(),
            &padding(),
            b"printf %s \"$BASH_EXECUTION_STRING\" > seen",
        ]
        .concat();
        write(world, &whole);
        case().run_in(world).assert_exit(0);
        assert!(fs::read(world.inside("seen")).unwrap() == whole);
    });
}

#[test]
fn newlines_at_the_end_belong_to_a_document_that_nothing_closes() {
    for_each_user(|world| {
        let long = same(world, b"", b"cat <<END\nlast\n\n\n");
        assert_eq!(long.stdout(), "last\n\n\n");
    });
}

#[test]
fn a_long_text_leaves_standard_input_alone() {
    for_each_user(|world| {
        write(world, [padding(), b"cat".to_vec()].concat());
        fs::write(world.inside("in"), "input\n").unwrap();
        let report = case().options(["--stdin", "$W/in"]).run_in(world);
        assert_eq!(report.assert_exit(0).stdout(), "input\n");
    });
}

#[test]
fn nothing_that_a_long_text_starts_has_its_descriptor() {
    for_each_user(|world| {
        // The fourth is the directory that ls reads.
        write(
            world,
            [padding(), b"ls /proc/self/fd; ls /proc/$$/fd".to_vec()].concat(),
        );
        let report = case().run_in(world);
        assert_eq!(report.assert_exit(0).assert_full().stdout(), "0\n1\n2\n3\n0\n1\n2\n");
        let mut passed = world.command(world.program());
        passed.args(["run", "--command-file", "text"]);
        let outcome = world.outcome(passed);
        assert_eq!(outcome.stdout(), "0\n1\n2\n3\n0\n1\n2\n", "{outcome}");
    });
}

#[test]
fn a_long_text_does_not_end_up_in_the_environment() {
    for_each_user(|world| {
        write(world, [padding(), b"env | wc -c".to_vec()].concat());
        let report = case().env("BASH_EXECUTION_STRING", "exported").run_in(world);
        let bytes: usize = report.assert_exit(0).stdout().trim().parse().unwrap();
        assert!(bytes < 10_000, "{report}");
    });
}

#[test]
fn a_long_text_that_comes_as_an_argument_is_run_as_well() {
    for_each_user(|world| {
        // Longer than is handed on as an argument, and not longer than can be one.
        let text = format!("{}echo $0 $1", ":\n".repeat(63_000));
        let report = Case::new(ReadOnly)
            .argv(["bash", "-c", &text, "name", "first"])
            .run_in(world);
        assert_eq!(report.assert_exit(0).stdout(), "name first\n");
        assert_eq!(report.field("/command/bytes"), text.len());
        assert_eq!(report.field("/argv/4"), "first");
        let report = Case::new(ReadOnly).shell(&text).run_in(world);
        assert_eq!(report.assert_exit(0).stdout(), "bash\n");
    });
}

#[test]
fn a_report_shows_the_beginning_of_a_long_text_and_its_length() {
    for_each_user(|world| {
        let text = [b"echo one\n".to_vec(), padding()].concat();
        write(world, &text);
        let report = case().options(["--report", "report"]).run_in(world);
        report.assert_exit(0);
        assert_eq!(report.field("/command/bytes"), text.len());
        assert_eq!(report.field("/command/shown"), 4096);
        assert_eq!(report.text("/argv/2").as_bytes(), &text[..4096]);
        assert!(fs::metadata(world.inside("report")).unwrap().len() < 16_384);
        let dry = case().options(["--dry-run"]).outcome_in(world);
        assert!(dry.stdout().len() < 16_384);
    });
}

#[test]
fn a_text_is_read_from_standard_input_or_a_pipe() {
    for_each_user(|world| {
        write(world, "echo hi > f; cat");
        let mut command = world.command(world.program());
        command.args(["run", "-m", "workspace-write", "--json", "--command-file", "-"]);
        command.stdin(File::open(world.inside("text")).unwrap());
        Report::read(world.outcome(command)).assert_exit(0);
        assert_eq!(text(world.inside("f")), "hi\n");
        let outcome = world.bash("\"$BIN\" run -m workspace-write --command-file <(echo 'echo piped > f')");
        assert_eq!(outcome.status(), 0, "{outcome}");
        assert_eq!(text(world.inside("f")), "piped\n");
    });
}

#[test]
fn a_file_that_holds_no_text_starts_nothing_and_is_named() {
    for_each_user(|world| {
        world.prepare(
            "mkdir dir; printf 'echo ran > ran\\n\\0' > nul; truncate -s 65m large; : > closed; chmod 0 closed",
        );
        let mut files = vec![
            ("none", "No such file"),
            ("dir", "directory"),
            ("nul", "offset 15"),
            ("large", "more than 67108864 bytes"),
            ("", "No such file"),
        ];
        if world.uid() != 0 {
            files.push(("closed", "Permission denied"));
        }
        for (file, reason) in files {
            let report = Case::new(WorkspaceWrite)
                .options(["--command-file", file])
                .run_in(world);
            report.assert_error("INPUT_INVALID");
            let message = report.text("/error/message");
            assert!(
                message.contains("--command-file") && message.contains(reason),
                "{report}"
            );
        }
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn a_file_and_another_command_are_too_much() {
    for_each_user(|world| {
        write(world, "echo ran > ran");
        case()
            .shell("echo ran > ran")
            .outcome_in(world)
            .assert_refused(&["--command-file"]);
        case()
            .argv(["touch", "ran"])
            .outcome_in(world)
            .assert_refused(&["--command-file"]);
        let both = Case::new(WorkspaceWrite).options(["--command-file", "-", "--stdin", "-"]);
        both.outcome_in(world).assert_refused(&["standard input"]);
        assert!(!world.inside("ran").exists());
    });
}
