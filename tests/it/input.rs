//! Input that makes no sense: refused and named, with nothing run, and never a panic.

use proptest::prelude::*;
use ringfence::SandboxMode::WorkspaceWrite;

use crate::support::{Case, World, for_each_user};

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
