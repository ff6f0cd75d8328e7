//! How a command ends, and why one could not run: typed errors, told apart from the command's own.

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use crate::support::{Case, Report, for_each_user, text};

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
fn a_backend_that_cannot_serve_is_named_and_nothing_runs() {
    for_each_user(|world| {
        for backend in ["none", "seatbelt"] {
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
