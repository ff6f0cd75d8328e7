//! What the command reads, writes and finds in its environment, when its output is captured.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use crate::support::Case;

#[test]
fn a_captured_run_has_no_input_and_no_terminal() {
    Case::new(WorkspaceWrite)
        .shell("cat; [ -t 0 ] || echo no terminal; (: < /dev/tty) 2> /dev/null || echo none")
        .run_as_each_user(|_, report| {
            assert_eq!(report.stdout(), "no terminal\nnone\n");
        });
}

#[test]
fn both_streams_are_kept_whatever_the_status() {
    Case::new(WorkspaceWrite)
        .shell("echo out; echo err >&2")
        .run_as_each_user(|_, report| {
            report.assert_exit(0);
            assert_eq!((report.stdout(), report.stderr()), ("out\n", "err\n"));
            assert_eq!(report.field("/stdout/truncated"), false);
            assert_eq!(report.field("/stdout/bytes"), 4);
        });
}

#[test]
fn the_end_of_a_long_output_is_kept_and_the_rest_is_counted() {
    Case::new(WorkspaceWrite)
        .shell("head -c 3000000 /dev/zero | tr '\\0' x; echo END")
        .run_as_each_user(|_, report| {
            report.assert_exit(0);
            assert_eq!(report.field("/stdout/truncated"), true);
            assert_eq!(report.field("/stdout/bytes"), 3_000_004);
            assert!(report.stdout().ends_with("xEND\n"));
            assert!(
                report.stdout().len() <= 64_000,
                "{} bytes are kept",
                report.stdout().len()
            );
        });
}

#[test]
fn a_character_is_never_cut_in_two() {
    for cap in 2..9 {
        let case = Case::new(WorkspaceWrite).options([format!("--max-output={cap}")]);
        case.shell("printf 'a€€€€'").run_as_each_user(|_, report| {
            let kept = report.stdout();
            assert!(kept.len() <= cap && kept.chars().all(|c| c == '€'), "{cap}: {kept:?}");
            assert_eq!(kept.len(), cap / 3 * 3);
            assert_eq!(report.field("/stdout/lossyUtf8"), false);
        });
    }
}

#[test]
fn output_that_is_no_text_is_marked() {
    Case::new(WorkspaceWrite)
        .shell("printf 'a\\377b\\0c'")
        .run_as_each_user(|_, report| {
            assert_eq!(report.stdout(), "a\u{fffd}b\0c");
            assert_eq!(report.field("/stdout/lossyUtf8"), true);
            assert_eq!(report.field("/stdout/bytes"), 5);
        });
}

#[test]
fn the_commands_streams_can_be_opened_again_by_name() {
    Case::new(WorkspaceWrite)
        .shell("echo a > /dev/stdout; echo b | tee /dev/stderr > /dev/null; cat /dev/stdin")
        .run_as_each_user(|_, report| {
            report.assert_exit(0);
            assert_eq!((report.stdout(), report.stderr()), ("a\n", "b\n"));
        });
}

#[test]
fn an_argument_that_is_no_utf8_arrives_as_it_is_and_is_shown_twice() {
    let argument = std::ffi::OsString::from_vec(vec![b'a', 0xff, b'b']);
    Case::new(ReadOnly)
        .argv([
            OsStr::from_bytes(b"printf"),
            OsStr::from_bytes(b"%s"),
            argument.as_os_str(),
        ])
        .run_as_each_user(|_, report| {
            assert_eq!(report.field("/stdout/bytes"), 3);
            assert_eq!(report.field("/argv/2"), "a\u{fffd}b");
            assert_eq!(report.field("/argvBytes/2"), "Yf9i");
        });
}

#[test]
fn credentials_and_what_would_change_a_shell_do_not_reach_the_command() {
    Case::new(ReadOnly)
        .env("AWS_SECRET_ACCESS_KEY", "x")
        .env("GITHUB_TOKEN", "x")
        .env("DB_PASSWORD", "x")
        .env("SSH_AUTH_SOCK", "/x")
        .env("BASH_ENV", "/x")
        .env("LD_PRELOAD", "")
        .env("BASH_FUNC_ls%%", "() { echo evil; }")
        .env("RINGFENCE_STALE", "x")
        .env("KEYBOARD", "kept")
        .env("TOKENIZERS_PARALLELISM", "kept")
        .env("MINE", "kept")
        .argv(["env"])
        .run_as_each_user(|_, report| {
            let names: Vec<_> = report
                .stdout()
                .lines()
                .filter_map(|line| line.split('=').next())
                .collect();
            for kept in ["KEYBOARD", "TOKENIZERS_PARALLELISM", "MINE", "PATH", "HOME"] {
                assert!(names.contains(&kept), "{kept} is gone:\n{report}");
            }
            for gone in [
                "AWS_SECRET_ACCESS_KEY",
                "GITHUB_TOKEN",
                "DB_PASSWORD",
                "SSH_AUTH_SOCK",
                "BASH_ENV",
                "LD_PRELOAD",
                "RINGFENCE_STALE",
            ] {
                assert!(!names.contains(&gone), "{gone} is there:\n{report}");
            }
            assert!(!report.stdout().contains("evil"), "{report}");
        });
}

#[test]
fn the_callers_explicit_entries_win() {
    Case::new(ReadOnly)
        .env("API_KEY", "kept")
        .env("MINE", "x")
        .options([
            "--keep-env",
            "API_KEY",
            "--unset-env",
            "MINE",
            "--env",
            "GITHUB_TOKEN=given",
            "--env",
            "EMPTY=",
        ])
        .shell("echo ${API_KEY-none} ${MINE-none} ${GITHUB_TOKEN-none} [${EMPTY-none}] $TERM $PAGER $NO_COLOR")
        .run_as_each_user(|_, report| {
            assert_eq!(report.stdout(), "kept none given [] dumb cat 1\n");
        });
}
