//! Ringfence's own part of a run: typed errors, deadlines, output, and input that makes no sense.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use ringfence::SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};

use crate::support::{Case, Report, World, for_each_user, text};

// --- the command's end ------------------------------------------------------------------------

#[test]
fn a_command_that_fails_by_itself_is_not_denied_anything() {
    for script in [
        "false",
        "grep nosuch /etc/hostname",
        "echo sandbox denied; exit 3",
        "exit 125",
        "nosuchprogram",
    ] {
        Case::new(WorkspaceWrite).shell(script).run_as_each_user(|_, report| {
            report.assert_exit(report.status()).assert_full().assert_denied(false);
            assert_eq!(report.field("/sandbox/evidence"), "observed");
        });
    }
}

#[test]
fn the_words_of_a_command_prove_nothing_about_the_runner() {
    Case::new(WorkspaceWrite)
        .shell("echo 'ringfence: could not enter the Landlock domain' >&2; exit 125")
        .run_as_each_user(|_, report| {
            report.assert_exit(125).assert_denied(false);
        });
}

#[test]
fn a_death_by_signal_is_the_commands_own_and_no_denial() {
    for (signal, number) in [("SIGKILL", 9), ("SIGTERM", 15), ("SIGSEGV", 11), ("SIGPIPE", 13)] {
        Case::new(WorkspaceWrite)
            .shell(&format!("kill -{number} $$"))
            .run_as_each_user(|_, report| {
                assert!(report.field("/exitCode").is_null(), "{report}");
                assert_eq!(report.field("/signal"), signal);
                assert_eq!(report.status(), 128 + number);
                report.assert_denied(false);
            });
    }
}

#[test]
fn nothing_is_inferred_from_a_death_by_signal() {
    for (evidence, denied) in [("off", false), ("auto", true)] {
        Case::new(WorkspaceWrite)
            .options(["--evidence", evidence])
            .shell("echo x > $OUT/x; kill -9 $$")
            .run_as_each_user(|_, report| {
                assert_eq!(report.field("/signal"), "SIGKILL");
                report.assert_denied(denied);
            });
    }
}

#[test]
fn the_command_starts_with_every_signal_at_its_default_and_none_blocked() {
    Case::new(WorkspaceWrite)
        .inside(["bash", "-c", "trap '' HUP INT QUIT PIPE USR1; exec \"$@\"", "-"])
        .argv(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"])
        .run_as_each_user(|_, report| {
            // The C library keeps 32 and 33 to itself, and its posix_spawn(3) hands them on ignored.
            let reserved = 0b11 << 31;
            for line in report.stdout().lines() {
                let signals = u64::from_str_radix(line.split('\t').nth(1).unwrap(), 16).unwrap();
                assert_eq!(signals & !reserved, 0, "{line}");
            }
            assert_eq!(report.stdout().lines().count(), 2);
        });
}

// --- no command ran ---------------------------------------------------------------------------

#[test]
fn a_program_that_is_not_there_is_127_with_a_code() {
    for program in ["/no/such/program", "nosuchprogram", "", "./none"] {
        Case::new(WorkspaceWrite).argv([program]).run_as_each_user(|_, report| {
            report.assert_error("COMMAND_NOT_FOUND");
        });
    }
}

#[test]
fn a_whole_command_line_given_as_a_program_gets_a_way_out() {
    Case::new(WorkspaceWrite)
        .argv(["echo hi"])
        .run_as_each_user(|_, report| {
            report.assert_error("COMMAND_NOT_FOUND");
            assert!(report.text("/error/hint").contains("-c"), "{report}");
        });
}

#[test]
fn a_file_that_is_no_program_is_126_with_a_code() {
    for program in ["$W/plain", "$W", "$W/garbage"] {
        Case::new(WorkspaceWrite)
            .setup("echo hi > plain; head -c 100 /dev/urandom > garbage; chmod 644 plain; chmod 755 garbage")
            .argv([program])
            .run_as_each_user(|_, report| {
                report.assert_error("COMMAND_NOT_EXECUTABLE");
            });
    }
}

#[test]
fn a_working_directory_that_is_not_there_starts_nothing() {
    for_each_user(|world| {
        world.prepare("echo hi > file; ln -s loop loop; ln -s nowhere dangling");
        for workdir in ["none", "file", "loop", "dangling", "$W/none/deeper"] {
            let case = Case::new(WorkspaceWrite).options(["--workdir", workdir]);
            case.shell("echo ran > $W/ran")
                .run_in(world)
                .assert_error("WORKDIR_UNUSABLE");
        }
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn a_deleted_working_directory_starts_nothing() {
    for_each_user(|world| {
        let run =
            r#"mkdir gone; cd gone; rmdir ../gone; exec "$BIN" run --json -m workspace-write -c 'echo ran > /tmp/ran'"#;
        let outcome = world.bash(run);
        outcome.assert_refused(&["WORKDIR_UNUSABLE"]);
    });
}

#[test]
fn a_workspace_that_cannot_be_used_starts_nothing() {
    for_each_user(|world| {
        world.prepare("echo hi > file; ln -s loop loop");
        for workspace in ["$W/none", "$W/file", "$W/loop", ""] {
            let case = Case::new(WorkspaceWrite).options(["--workspace", workspace]);
            let outcome = case.shell("echo ran > $W/ran").outcome_in(world);
            outcome.assert_refused(&["error"]);
        }
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn a_command_larger_than_the_kernel_takes_says_so() {
    for_each_user(|world| {
        // Under a small stack limit execve(2) takes 256 KiB. Ringfence gets the longest command line that fits;
        // its command, with the managed variables in its environment, is a little longer.
        let run = |length: usize| {
            let words = [
                "true".to_owned(),
                "x".repeat(80_000),
                "x".repeat(80_000),
                "x".repeat(length),
            ];
            Case::new(ReadOnly)
                .inside(["prlimit", "--stack=1048576"])
                .argv(words)
                .command_in(world)
        };
        let fits = |length: &usize| {
            !world
                .outcome(run(*length))
                .stderr()
                .contains("prlimit: failed to execute")
        };
        let (mut short, mut long) = (1, 131_000);
        assert!(
            fits(&short) && !fits(&long),
            "prlimit does not narrow what execve takes"
        );
        while long - short > 1 {
            let middle = usize::midpoint(short, long);
            if fits(&middle) { short = middle } else { long = middle }
        }
        let report = Report::read(world.outcome(run(short)));
        report.assert_error("COMMAND_TOO_LARGE");
        assert!(report.text("/error/message").contains("bytes"), "{report}");
    });
}

#[test]
fn a_mode_that_is_misspelt_falls_back_to_nothing() {
    for_each_user(|world| {
        for mode in ["workspace-wrte", "", "Read-Only", "full", "read-only,workspace-write"] {
            let case = Case::without_a_mode().options(["--mode", mode]).shell("echo ran > ran");
            case.outcome_in(world).assert_refused(&["workspace-write"]);
        }
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn an_option_that_is_misspelt_is_named() {
    for_each_user(|world| {
        for option in ["--mod=read-only", "--wrtie=/etc", "--jsno", "-Z"] {
            let case = Case::new(WorkspaceWrite).options([option]).shell("echo ran > ran");
            case.outcome_in(world)
                .assert_refused(&[option.split('=').next().unwrap()]);
        }
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn a_run_without_a_command_is_refused() {
    for_each_user(|world| {
        Case::new(WorkspaceWrite).outcome_in(world).assert_refused(&[]);
        Case::new(WorkspaceWrite)
            .argv::<&str>([])
            .outcome_in(world)
            .assert_refused(&[]);
        Case::new(WorkspaceWrite)
            .options(["-c", "true"])
            .argv(["true"])
            .outcome_in(world)
            .assert_refused(&[]);
    });
}

#[test]
fn an_environment_entry_that_makes_no_sense_is_refused_and_named() {
    for_each_user(|world| {
        for entry in ["NOEQUALS", "=value", ""] {
            let case = Case::new(WorkspaceWrite)
                .options(["--env", entry])
                .shell("echo ran > ran");
            case.outcome_in(world).assert_refused(&["env"]);
        }
        for name in ["A=B", ""] {
            let case = Case::new(WorkspaceWrite)
                .options(["--keep-env", name])
                .shell("echo ran > ran");
            case.outcome_in(world).assert_refused(&["env"]);
        }
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn sizes_and_durations_that_make_no_sense_are_refused_and_named() {
    let silly = [
        "",
        "-1",
        "abc",
        "5 parsecs",
        "1e400",
        "99999999999999999999999",
        "NaN",
        "inf",
        "\u{660}",
        "1.2.3s",
    ];
    for_each_user(|world| {
        for option in ["--timeout", "--grace", "--max-output"] {
            for value in silly {
                let case = Case::new(WorkspaceWrite).options([format!("{option}={value}")]);
                case.shell("echo ran > ran")
                    .outcome_in(world)
                    .assert_refused(&[option.trim_start_matches('-')]);
            }
        }
        let case = Case::new(WorkspaceWrite)
            .options(["--timeout", "0"])
            .shell("echo ran > ran");
        case.outcome_in(world).assert_refused(&["timeout"]);
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn a_backend_that_cannot_serve_is_named_and_nothing_runs() {
    for_each_user(|world| {
        for backend in ["none", "bwrap", "seatbelt"] {
            let report = Case::new(WorkspaceWrite)
                .options(["--backend", backend])
                .shell("echo ran > ran")
                .run_in(world);
            report.assert_error("SANDBOX_UNAVAILABLE");
            assert_eq!(report.field("/error/tried/0/backend"), backend);
            assert!(!report.text("/error/tried/0/reason").is_empty());
        }
        let case = Case::new(WorkspaceWrite)
            .options(["--backend", "landlok"])
            .shell("echo ran > ran");
        case.outcome_in(world).assert_refused(&["landlok", "landlock"]);
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn no_message_suggests_running_without_confinement() {
    for_each_user(|world| {
        let outcome = Case::new(WorkspaceWrite)
            .options(["--backend", "none"])
            .argv(["true"])
            .outcome_in(world);
        let said = outcome.stdout() + &outcome.stderr();
        assert!(!said.contains("danger-full-access"), "{outcome}");
    });
}

#[test]
fn a_state_directory_that_cannot_be_written_is_no_obstacle() {
    Case::new(WorkspaceWrite)
        .env("RINGFENCE_STATE_DIR", "/proc/nowhere")
        .shell("echo hi > f")
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_full();
            assert_eq!(text(world.inside("f")), "hi\n");
        });
}

// --- time -------------------------------------------------------------------------------------

#[test]
fn a_deadline_ends_the_command_and_keeps_what_it_said() {
    for_each_user(|world| {
        let started = Instant::now();
        let report = Case::new(WorkspaceWrite)
            .options(["--timeout", "300ms"])
            .shell("echo early; sleep 60; echo late")
            .run_in(world);
        assert!(started.elapsed() < Duration::from_secs(20), "{report}");
        assert_eq!(report.field("/timedOut"), true);
        assert_eq!(report.field("/aborted"), false);
        assert_eq!(report.field("/timeoutMs"), 300);
        assert_eq!(report.field("/signal"), "SIGTERM");
        assert_eq!(report.status(), 124);
        assert_eq!(report.stdout(), "early\n");
        report.assert_denied(false);
    });
}

#[test]
fn a_command_that_cleans_up_after_its_deadline_keeps_its_own_status() {
    Case::new(WorkspaceWrite)
        .options(["--timeout", "300ms"])
        .shell("trap 'echo cleaned > done; exit 0' TERM; while :; do sleep 0.05; done")
        .run_as_each_user(|world, report| {
            assert_eq!(report.field("/timedOut"), true, "{report}");
            assert_eq!(report.field("/exitCode"), 0);
            assert_eq!(report.status(), 124);
            assert_eq!(text(world.inside("done")), "cleaned\n");
        });
}

#[test]
fn a_command_that_will_not_end_is_killed_after_the_grace_period() {
    Case::new(WorkspaceWrite)
        .options(["--timeout", "200ms", "--grace", "300ms"])
        .shell("trap '' TERM; while :; do sleep 0.05; done")
        .run_as_each_user(|_, report| {
            assert_eq!(report.field("/timedOut"), true, "{report}");
            assert_eq!(report.field("/signal"), "SIGKILL");
        });
}

#[test]
fn a_stopped_command_hears_its_deadline() {
    Case::new(WorkspaceWrite)
        .options(["--timeout", "300ms", "--grace", "20s"])
        .shell("kill -STOP $$; echo woken")
        .run_as_each_user(|_, report| {
            assert_eq!(report.field("/timedOut"), true, "{report}");
            assert_eq!(report.field("/signal"), "SIGTERM", "{report}");
        });
}

#[test]
fn a_deadline_ends_the_whole_process_group() {
    Case::new(WorkspaceWrite)
        .options(["--timeout", "300ms"])
        .shell("(trap '' TERM HUP; for i in {1..600}; do sleep 0.1; done) & echo $! > pid; wait")
        .run_as_each_user(|world, report| {
            assert_eq!(report.field("/timedOut"), true, "{report}");
            assert!(!alive(world, "pid"), "a process of the run is left");
        });
}

#[test]
fn whoever_holds_the_pipes_does_not_delay_the_result() {
    for_each_user(|world| {
        let started = Instant::now();
        let report = Case::new(WorkspaceWrite)
            .shell("sleep 60 & echo $! > pid; echo done")
            .run_in(world);
        assert!(started.elapsed() < Duration::from_secs(20), "{report}");
        report.assert_exit(0);
        assert_eq!(report.field("/timedOut"), false);
        assert_eq!(report.stdout(), "done\n");
        assert!(!alive(world, "pid"), "a process of the run is left");
    });
}

#[test]
fn whoever_goes_on_writing_into_the_pipes_does_not_delay_the_result() {
    // Out of the group, and busy for half a minute: it writes now and then, or as fast as it can.
    for writer in ["for i in {1..300}; do echo x; sleep 0.1; done", "timeout 30 yes"] {
        for_each_user(|world| {
            let started = Instant::now();
            let shell = format!("setsid bash -c '{writer}' & sleep 0.2; echo done >&2");
            let report = Case::new(WorkspaceWrite).shell(&shell).run_in(world);
            assert!(started.elapsed() < Duration::from_secs(15), "{report}");
            report.assert_exit(0);
            assert_eq!(report.field("/timedOut"), false);
            assert_eq!(report.stderr(), "done\n");
        });
    }
}

/// Whether the process whose id stands in a file of the workspace goes on running.
fn alive(world: &World, file: &str) -> bool {
    let path = format!("/proc/{}/stat", text(world.inside(file)).trim());
    // A process that was killed takes a moment to end.
    (0..100).all(|_| {
        std::thread::sleep(Duration::from_millis(20));
        std::fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z "))
    })
}

#[test]
fn a_captured_run_has_a_deadline_even_when_none_is_given() {
    Case::new(WorkspaceWrite).argv(["true"]).run_as_each_user(|_, report| {
        assert_eq!(report.field("/timeoutMs"), 120_000);
    });
}

// --- output and input -------------------------------------------------------------------------

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

// --- environment ------------------------------------------------------------------------------

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

// --- whatever is typed ------------------------------------------------------------------------

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any words at all end in an orderly way: never a panic, never a signal.
    #[test]
    fn no_words_make_the_program_panic(words in prop::collection::vec(word(), 0..6)) {
        let world = World::anyone();
        let mut command = world.command(world.program());
        command.args(&words);
        world.outcome(command).assert_no_panic();
    }
}

/// A word of a command line: a real option, a value that nearly fits one, or anything else.
fn word() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "run",
        "--json",
        "--mode",
        "read-only",
        "workspace-write",
        "--",
        "-c",
        "true",
        "--timeout",
        "1s",
        "--workspace",
        "/",
        "--write",
        "--workdir",
        "--env",
        "A=b",
        "--temp",
        "none",
        "--require",
        "full",
        "--backend",
        "landlock",
        "--grace",
        "--max-output",
        "doctor",
        "--help",
        "--version",
        "help",
    ]);
    prop_oneof![3 => known.prop_map(str::to_owned), 1 => "[^\0]{0,12}", 1 => "-{1,2}[a-z]{0,8}=?[0-9.-]{0,12}[a-z]{0,2}"]
}

#[test]
fn danger_full_access_reports_the_same_facts_about_the_end() {
    Case::new(DangerFullAccess)
        .options(["--timeout", "300ms"])
        .shell("sleep 60")
        .run_as_each_user(|_, report| {
            assert_eq!(report.field("/timedOut"), true, "{report}");
            assert_eq!(report.field("/signal"), "SIGTERM");
        });
}
