//! One file against another.

use ringfence_backend::SandboxMode;

use super::{refusal, settings};
use crate::config::{Answerer, ConfigError, Origin, Recording, Settings};

#[test]
fn what_a_file_above_says_can_only_be_tightened_below() {
    // What the system says, what the user says, and whether that stands.
    for (system, user, stands) in [
        ("ceiling = \"workspace-write\"", "ceiling = \"read-only\"", true),
        ("ceiling = \"workspace-write\"", "ceiling = \"workspace-write\"", true),
        (
            "ceiling = \"workspace-write\"",
            "ceiling = \"danger-full-access\"",
            false,
        ),
        ("ceiling = \"workspace-write\"", "mode = \"workspace-write\"", true),
        ("ceiling = \"workspace-write\"", "mode = \"danger-full-access\"", false),
        ("mode = \"read-only\"", "mode = \"danger-full-access\"", true),
        ("require = \"full\"", "require = \"partial\"", false),
        ("require = \"partial\"", "require = \"full\"", true),
        ("audit = \"required\"", "audit = \"on\"", false),
        ("audit = \"on\"", "audit = \"off\"", false),
        ("audit = \"on\"", "audit = \"required\"", true),
        ("", "audit = \"off\"", true),
        ("[approval]\npolicy = \"never\"", "[approval]\npolicy = \"ask\"", false),
        ("[approval]\npolicy = \"ask\"", "[approval]\npolicy = \"never\"", true),
        (
            "[approval]\nanswerers = [\"tty\"]",
            "[approval]\nanswerers = [\"tty\", \"queue\"]",
            false,
        ),
        (
            "[approval]\nanswerers = [\"tty\", \"queue\"]",
            "[approval]\nanswerers = [\"queue\"]",
            true,
        ),
        ("[approval]\nanswerers = [\"tty\"]", "[approval]\nanswerers = []", true),
        ("[approval]\nhook = [\"/a\"]", "[approval]\nhook = [\"/b\"]", false),
        (
            "[approval]\nhook = [\"/a\"]",
            "[approval]\nhook = [\"/a\", \"x\"]",
            false,
        ),
        ("[approval]\nhook = [\"/a\"]", "[approval]\nhook = [\"/a\"]", true),
        ("[approval]\nnotify = [\"/a\"]", "[approval]\nnotify = [\"/b\"]", false),
        ("", "[approval]\nhook = [\"/b\"]", true),
        (
            "[approval]\nrequest_ttl = \"5m\"",
            "[approval]\nrequest_ttl = \"6m\"",
            false,
        ),
        (
            "[approval]\nrequest_ttl = \"5m\"",
            "[approval]\nrequest_ttl = \"1m\"",
            true,
        ),
        (
            "[approval]\ngrant_ttl = \"5m\"",
            "[approval]\ngrant_ttl = \"6m\"",
            false,
        ),
        (
            "[approval]\nhook_timeout = \"5m\"",
            "[approval]\nhook_timeout = \"6m\"",
            false,
        ),
        (
            "[approval]\nmax_looseness = \"mode\"",
            "[approval]\nmax_looseness = \"full-access\"",
            false,
        ),
        (
            "[approval]\nmax_looseness = \"mode\"",
            "[approval]\nmax_looseness = \"extra-roots\"",
            true,
        ),
        ("", "[approval]\nmax_looseness = \"full-access\"", true),
    ] {
        let outcome = settings([(Origin::System, system), (Origin::User, user)]);
        assert_eq!(outcome.is_ok(), stands, "{system} / {user}: {outcome:?}");
        if let Err(error) = outcome {
            let (message, hint) = (error.to_string(), error.hint());
            assert!(matches!(error, ConfigError::Looser { .. }), "{error}");
            let (key, value) = user.rsplit('\n').next().unwrap().split_once(" = ").unwrap();
            assert!(
                message.contains(&format!("{key} = ")) && message.contains("/user, line "),
                "{message}"
            );
            assert!(
                value.starts_with('[') || value.contains("m\"") || message.contains(value),
                "{message}"
            );
            assert!(
                message.contains("which /system, line ") && message.ends_with(" sets"),
                "{message}"
            );
            assert!(!hint.is_empty());
        }
    }
}

#[test]
fn a_workspace_only_tightens_what_holds_without_it() {
    let user = "mode = \"workspace-write\"\n";
    for (workspace, stands) in [
        ("mode = \"read-only\"", true),
        ("mode = \"workspace-write\"", true),
        ("mode = \"danger-full-access\"", false),
        ("ceiling = \"read-only\"", true),
        ("require = \"full\"", true),
        ("audit = \"required\"", true),
        ("audit = \"off\"", false),
        ("[approval]\npolicy = \"never\"", true),
        ("[approval]\nanswerers = [\"queue\"]", true),
        ("[approval]\nanswerers = [\"hook\"]", false),
        ("[approval]\nhook = [\"/b\"]", false),
        ("[approval]\nnotify = [\"/b\"]", false),
        ("[approval]\nhook_timeout = \"1s\"", false),
        ("[approval]\nrequest_ttl = \"1s\"", false),
        ("[approval]\ngrant_ttl = \"1s\"", false),
        ("[approval]\nmax_looseness = \"extra-roots\"", false),
        (
            "[[approval.reject]]\nname = \"x\"\nreason = \"y\"\nwrite = \"/a\"",
            true,
        ),
    ] {
        let outcome = settings([(Origin::User, user), (Origin::Workspace, workspace)]);
        assert_eq!(outcome.is_ok(), stands, "{workspace}: {outcome:?}");
    }
    let (message, hint) = refusal([(Origin::Workspace, "mode = \"workspace-write\"")]);
    assert_eq!(
        message,
        "deployment file /workspace, line 2: mode = \"workspace-write\" would loosen \"read-only\", which holds where \
         no file says otherwise"
    );
    assert!(!hint.is_empty());
    let (message, hint) = refusal([(Origin::Workspace, "[approval]\nhook = [\"/b\"]")]);
    assert_eq!(
        message,
        "deployment file /workspace, line 3: approval.hook is not for a workspace to say"
    );
    assert!(hint.contains("[[approval.reject]]"), "{hint}");
}

#[test]
fn a_ceiling_that_comes_down_takes_the_default_mode_with_it() {
    let system = (Origin::System, "mode = \"workspace-write\"");
    let lowered = settings([system, (Origin::Workspace, "ceiling = \"read-only\"")]).unwrap();
    assert_eq!(lowered.mode(), SandboxMode::ReadOnly);
    assert_eq!(lowered.mode_said_in().unwrap().to_string(), "/workspace, line 2");
    let (message, _) = refusal([(Origin::System, "mode = \"workspace-write\"\nceiling = \"read-only\"")]);
    assert!(
        message.contains("mode = \"workspace-write\" would loosen \"read-only\""),
        "{message}"
    );
}

#[test]
fn a_hook_that_is_deployed_is_asked_and_one_that_is_not_cannot_be() {
    let hook = (Origin::System, "[approval]\nhook = [\"/a\"]");
    let asked = settings([hook]).unwrap();
    assert_eq!(
        asked.approval().answerers(),
        [Answerer::Tty, Answerer::Queue, Answerer::Hook]
    );
    let fewer = settings([hook, (Origin::Workspace, "[approval]\nanswerers = [\"hook\"]")]).unwrap();
    assert_eq!(fewer.approval().answerers(), [Answerer::Hook]);
    let missing = settings([(Origin::System, "[approval]\nanswerers = [\"hook\"]")]);
    assert!(matches!(missing, Err(ConfigError::NoHook { .. })));
}

#[test]
fn a_run_beyond_what_is_deployed_is_told_which_file_says_so() {
    let fixed = settings([(Origin::System, "ceiling = \"workspace-write\"\naudit = \"required\"")]).unwrap();
    fixed.allows(SandboxMode::WorkspaceWrite, "--mode").unwrap();
    let error = fixed.allows(SandboxMode::DangerFullAccess, "--mode").unwrap_err();
    assert_eq!(
        error.to_string(),
        "--mode asks for danger-full-access, which is looser than workspace-write, which /system, line 2 sets"
    );
    assert_eq!(fixed.recording(None).unwrap(), Recording::Required);
    let error = fixed.recording(Some(Recording::On)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--audit on is less than required, which /system, line 3 sets"
    );
    assert_eq!(
        Settings::default().recording(Some(Recording::Off)).unwrap(),
        Recording::Off
    );
}
