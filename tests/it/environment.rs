//! What a command finds around it: the variables that it gets, those it does not, and what is said of them.

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use crate::support::{Case, Report, World, for_each_user};

/// A profile with this `[env]` section, in the workspace.
fn profile(world: &World, env: &str) {
    let text =
        format!("schema = 1\nname = \"team\"\ndescription = \"d\"\n[policy]\nmode = \"read-only\"\n[env]\n{env}\n");
    std::fs::write(world.inside("team.toml"), text).unwrap();
}

/// A run of `env` under that profile.
fn under_profile() -> Case {
    Case::without_a_mode()
        .options(["-p", "$W/team.toml"])
        .env("A_TOKEN", "secret-1")
        .env("BASH_ENV", "/nowhere")
        .env("MINE", "mine")
        .env("RINGFENCE_STALE", "stale")
        .argv(["env"])
}

/// The variables that `env` printed, as the names alone.
fn names(report: &Report) -> Vec<&str> {
    report.assert_exit(0);
    let lines = report.stdout().lines();
    lines.filter_map(|line| line.split('=').next()).collect()
}

#[test]
fn a_profile_can_let_everything_through_but_stale_managed_names() {
    for_each_user(|world| {
        profile(world, "inherit = \"all\"\ndrop = [\"MINE\"]");
        let report = under_profile().run_in(world);
        let names = names(&report);
        for there in ["A_TOKEN", "BASH_ENV", "PATH", "HOME", "RINGFENCE_MODE"] {
            assert!(names.contains(&there), "{there} is gone:\n{report}");
        }
        for gone in ["MINE", "RINGFENCE_STALE", "RINGFENCE_STATE_DIR"] {
            assert!(!names.contains(&gone), "{gone} is there:\n{report}");
        }
    });
}

#[test]
fn a_profile_can_let_nothing_through_but_what_it_keeps() {
    for_each_user(|world| {
        profile(world, "inherit = \"none\"\nkeep = [\"A_TOKEN\"]");
        let report = under_profile().options(["--env", "GIVEN=1"]).run_in(world);
        let mut names = names(&report);
        names.sort_unstable();
        let expected = [
            "A_TOKEN",
            "GIT_PAGER",
            "GIVEN",
            "NO_COLOR",
            "PAGER",
            "PWD",
            "RINGFENCE_MODE",
            "RINGFENCE_RUN_ID",
            "TEMP",
            "TERM",
            "TMP",
            "TMPDIR",
            "TMPPREFIX",
        ];
        assert_eq!(names, expected, "{report}");
    });
}

#[test]
fn an_option_on_a_name_stands_above_the_profile() {
    for_each_user(|world| {
        profile(world, "inherit = \"none\"\nkeep = [\"A_TOKEN\"]\ndrop = [\"MINE\"]");
        let report = under_profile()
            .options(["--unset-env", "A_TOKEN", "--keep-env", "MINE", "--keep-env", "PATH"])
            .run_in(world);
        let names = names(&report);
        assert!(names.contains(&"MINE") && names.contains(&"PATH"), "{report}");
        assert!(!names.contains(&"A_TOKEN"), "{report}");
    });
}

#[test]
fn a_profile_with_an_environment_that_makes_no_sense_starts_nothing() {
    for_each_user(|world| {
        for (env, said) in [
            ("inherit = \"filterd\"", "did you mean `filtered`?"),
            ("kep = []", "did you mean `keep`?"),
            ("keep = [\"RINGFENCE_MODE\"]", "env.keep"),
            ("keep = [\"A\"]\ndrop = [\"A\"]", "both kept and dropped"),
        ] {
            profile(world, env);
            let case = Case::without_a_mode().options(["-p", "$W/team.toml", "-m", "workspace-write"]);
            let report = case.shell("echo ran > ran").run_in(world);
            report.assert_error("INPUT_INVALID");
            assert!(report.to_string().contains(said), "{report}");
        }
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn the_names_that_are_withheld_are_told_beforehand_and_their_values_never() {
    for_each_user(|world| {
        let case = Case::new(ReadOnly)
            .env("A_TOKEN", "secret-1")
            .env("LD_AUDIT", "secret-2")
            .env("MINE", "secret-3")
            .env("KEPT_KEY", "secret-4")
            .options(["--dry-run", "--unset-env", "MINE", "--keep-env", "KEPT_KEY"])
            .argv(["true"]);
        let outcome = case.outcome_in(world);
        assert_eq!(outcome.status(), 0, "{outcome}");
        let document: serde_json::Value = serde_json::from_str(&outcome.stdout()).unwrap();
        let expected = serde_json::json!(["A_TOKEN", "LD_AUDIT", "MINE", "RINGFENCE_STATE_DIR"]);
        assert_eq!(document["withheld"], expected, "{outcome}");
        assert!(!outcome.stdout().contains("secret"), "{outcome}");

        let mut words = world.command(world.program());
        words
            .args(["run", "--dry-run", "--", "true"])
            .env("A_TOKEN", "secret-1");
        let outcome = world.outcome(words);
        let told = outcome.stdout();
        assert!(told.contains("A_TOKEN") && !told.contains("secret"), "{outcome}");
    });
}

#[test]
fn a_dry_run_says_what_would_run_and_where() {
    for_each_user(|world| {
        world.prepare("mkdir sub hooks");
        let options = [
            "--dry-run",
            "--workdir",
            "sub",
            "--timeout",
            "90s",
            "--protect",
            "hooks",
        ];
        let case = Case::new(WorkspaceWrite).options(options).argv(["touch", "a file"]);
        let outcome = case.outcome_in(world);
        let document: serde_json::Value = serde_json::from_str(&outcome.stdout()).unwrap();
        assert_eq!(document["argv"], serde_json::json!(["touch", "a file"]), "{outcome}");
        assert_eq!(document["workdir"], world.inside("sub").to_str().unwrap(), "{outcome}");
        assert_eq!(document["timeoutMs"], 90_000, "{outcome}");
        let hooks = serde_json::json!([world.inside("hooks").to_str().unwrap()]);
        assert_eq!(document["policy"]["protected"], hooks, "{outcome}");
        assert!(!world.inside("sub/a file").exists());
    });
}

#[test]
fn the_mask_of_new_files_is_the_callers() {
    for mask in ["0027", "0077", "0002"] {
        Case::new(WorkspaceWrite)
            .inside(["bash", "-c", &format!("umask {mask}; exec \"$@\""), "-"])
            .shell("umask; touch f")
            .run_as_each_user(|world, report| {
                report.assert_exit(0);
                assert_eq!(report.stdout(), format!("{mask}\n"));
                let mode = world.prepare("stat -c %a f");
                let expected = 0o666 & !u32::from_str_radix(mask, 8).unwrap();
                assert_eq!(mode, format!("{expected:o}\n"));
            });
    }
}
