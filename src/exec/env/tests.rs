use proptest::prelude::*;

use super::*;

fn of(callers: &[(&str, &str)], changes: &EnvChanges, captured: bool) -> Environment {
    let callers = callers.iter().map(|(n, v)| (OsString::from(n), OsString::from(v)));
    command_environment(callers, changes, captured, &ManagedEnv::default()).unwrap()
}

fn names(environment: &Environment) -> Vec<&str> {
    environment
        .vars
        .iter()
        .map(|(name, _)| name.to_str().unwrap())
        .collect()
}

#[test]
fn credentials_are_taken_out_and_words_that_only_look_like_them_stay() {
    let callers = [
        ("AWS_SECRET_ACCESS_KEY", "1"),
        ("github_token", "2"),
        ("DB_PASSWORD", "3"),
        ("SSH_AUTH_SOCK", "4"),
        ("KEYBOARD", "5"),
        ("TOKENIZERS_PARALLELISM", "6"),
        ("PATH", "7"),
    ];
    let environment = of(&callers, &EnvChanges::default(), false);
    assert_eq!(names(&environment), ["KEYBOARD", "TOKENIZERS_PARALLELISM", "PATH"]);
    assert_eq!(environment.removed.len(), 4);
}

#[test]
fn what_changes_a_shell_before_its_first_line_is_taken_out() {
    let callers = [
        ("BASH_ENV", "x"),
        ("BASH_FUNC_ls%%", "() { :; }"),
        ("LD_PRELOAD", "x"),
        ("HOME", "/h"),
    ];
    assert_eq!(names(&of(&callers, &EnvChanges::default(), false)), ["HOME"]);
}

#[test]
fn explicit_entries_win_over_the_filter() {
    let changes = EnvChanges {
        set: vec![("MY_TOKEN".into(), "given".into()), ("TERM".into(), "xterm".into())],
        keep: vec!["API_KEY".into()],
        unset: vec!["HOME".into()],
        ..EnvChanges::default()
    };
    let environment = of(&[("API_KEY", "kept"), ("HOME", "/h")], &changes, true);
    assert!(environment.vars.contains(&("API_KEY".into(), "kept".into())));
    assert!(environment.vars.contains(&("MY_TOKEN".into(), "given".into())));
    assert!(environment.vars.contains(&("TERM".into(), "xterm".into())));
    assert!(!names(&environment).contains(&"HOME"));
}

#[test]
fn stale_managed_names_never_come_through() {
    let changes = EnvChanges {
        keep: vec!["PATH".into()],
        ..EnvChanges::default()
    };
    assert_eq!(
        names(&of(&[("RINGFENCE_RUN_ID", "old"), ("PATH", "p")], &changes, false)),
        ["PATH"]
    );
}

#[test]
fn names_that_make_no_sense_are_refused() {
    for name in ["", "A=B", "RINGFENCE_MODE", "ringfence_mode"] {
        let changes = EnvChanges {
            set: vec![(name.into(), "v".into())],
            ..EnvChanges::default()
        };
        let refused = command_environment([], &changes, false, &ManagedEnv::default());
        assert!(matches!(refused, Err(Error::Input { .. })), "{name:?}");
    }
}

#[test]
fn everything_is_inherited_on_demand_but_what_is_ringfences_own() {
    let changes = EnvChanges {
        inherit: Inherit::All,
        unset: vec!["B".into()],
        ..EnvChanges::default()
    };
    let callers = [
        ("A_TOKEN", "1"),
        ("LD_PRELOAD", "x"),
        ("BASH_ENV", "x"),
        ("RINGFENCE_MODE", "old"),
        ("B", "2"),
    ];
    let environment = of(&callers, &changes, false);
    assert_eq!(names(&environment), ["A_TOKEN", "LD_PRELOAD", "BASH_ENV"]);
    assert_eq!(environment.removed, ["B", "RINGFENCE_MODE"]);
}

#[test]
fn nothing_is_inherited_on_demand_but_what_is_kept() {
    let changes = EnvChanges {
        inherit: Inherit::None,
        keep: vec!["HOME".into()],
        set: vec![("CI".into(), "1".into())],
        ..EnvChanges::default()
    };
    let callers = [("PATH", "p"), ("HOME", "/h"), ("CI", "0"), ("RINGFENCE_X", "old")];
    let environment = of(&callers, &changes, false);
    assert_eq!(names(&environment), ["HOME", "CI"]);
    assert_eq!(environment.removed, ["PATH", "RINGFENCE_X"]);
    assert_eq!(names(&of(&callers, &changes, true)).len(), 6, "terminal defaults too");
}

#[test]
fn a_name_that_the_caller_leaves_out_is_reported_as_removed() {
    let changes = EnvChanges {
        unset: vec!["HOME".into(), "ABSENT".into()],
        ..EnvChanges::default()
    };
    assert_eq!(of(&[("HOME", "/h"), ("A", "1")], &changes, false).removed, ["HOME"]);
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "PATH",
        "HOME",
        "A",
        "API_KEY",
        "LD_PRELOAD",
        "RINGFENCE_MODE",
        "ringfence_x",
        "TERM",
        "BASH_FUNC_f%%",
    ])
    .prop_map(str::to_owned)
}

fn usable() -> impl Strategy<Value = OsString> {
    name().prop_filter_map("its own", |name| {
        let name = OsString::from(name);
        (!is_ringfences(&name)).then_some(name)
    })
}

proptest! {
    /// Whatever the caller has and asks for: each name once, explicit entries as given, nothing of
    /// Ringfence's, and every name of the caller's either there or reported.
    #[test]
    fn the_rules_hold_for_every_combination(
        callers in prop::collection::vec((name(), "[a-c]"), 0..8),
        inherit in prop::sample::select(vec![Inherit::Filtered, Inherit::All, Inherit::None]),
        set in prop::collection::vec((usable(), "[x-z]"), 0..3),
        keep in prop::collection::vec(usable(), 0..3),
        unset in prop::collection::vec(usable(), 0..3),
        captured in any::<bool>(),
    ) {
        let set: Vec<_> = set.into_iter().map(|(name, value)| (name, OsString::from(value))).collect();
        let changes = EnvChanges { inherit, set: set.clone(), keep, unset };
        let callers: Vec<_> = callers.iter().map(|(n, v)| (OsString::from(n), OsString::from(v))).collect();
        let built = command_environment(callers.clone(), &changes, captured, &ManagedEnv::default()).unwrap();
        let there: Vec<_> = built.vars.iter().map(|(name, _)| name).collect();
        for (place, name) in there.iter().enumerate() {
            prop_assert!(!there[..place].contains(name));
            prop_assert!(!is_ringfences(name));
        }
        for (name, _) in &set {
            let last = set.iter().rev().find(|(it, _)| it == name);
            prop_assert_eq!(built.vars.iter().find(|(it, _)| it == name), last);
        }
        for (name, _) in &callers {
            prop_assert!(there.contains(&name) != built.removed.contains(name));
        }
    }
}
