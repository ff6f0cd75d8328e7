use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use ringfence_backend::{Require, SandboxMode, WorkspaceRoot};

use super::layer::Origin;
use super::{
    Answerer, ApprovalPolicy, ConfigError, Files, Looseness, Recording, Rejected, Settings, WORKSPACE_FILE, load, read,
};

/// The name of a file in messages.
const fn name(origin: Origin) -> &'static str {
    match origin {
        Origin::System => "/system",
        Origin::User => "/user",
        Origin::Workspace => "/workspace",
    }
}

/// What these texts come to, in the order of the files.
fn settings<'a>(texts: impl IntoIterator<Item = (Origin, &'a str)>) -> Result<Settings, ConfigError> {
    let mut settings = Settings::default();
    for (origin, text) in texts {
        let text = format!("schema = 1\n{text}");
        let layer = read::layer(origin, Path::new(name(origin)), &text, Some(Path::new("/home/u")))?;
        settings.merge(layer)?;
    }
    Ok(settings)
}

/// What is said of these texts: message and hint.
fn refusal<'a>(texts: impl IntoIterator<Item = (Origin, &'a str)>) -> (String, String) {
    let error = settings(texts).expect_err("these files were accepted");
    (error.to_string(), error.hint())
}

#[test]
fn without_files_runs_are_read_only_and_nothing_is_fixed() {
    let defaults = load(&Files::default()).unwrap();
    assert_eq!(defaults, Settings::default());
    assert_eq!(
        (
            defaults.mode(),
            defaults.ceiling(),
            defaults.require(),
            defaults.audit()
        ),
        (
            SandboxMode::ReadOnly,
            SandboxMode::DangerFullAccess,
            Require::Partial,
            Recording::On
        )
    );
    assert!(defaults.mode_said_in().is_none() && defaults.sources().is_empty());
    assert_eq!(defaults.approval().answerers(), [Answerer::Tty, Answerer::Queue]);
    assert_eq!(defaults.approval().max_looseness(), Looseness::Mode);
}

#[test]
fn a_file_says_what_its_author_wrote() {
    let text = r#"
mode = "workspace-write"
ceiling = "workspace-write"
require = "full"
audit = "required"

[approval]
policy = "ask"
answerers = ["hook", "queue"]
hook = ["/usr/local/bin/ask", "--now"]
hook_timeout = "20s"
request_ttl = "1h 30m"
grant_ttl = "30s"
max_looseness = "extra-roots"
notify = ["/usr/bin/true"]

[[approval.reject]]
name = "keys"
write = "~/.ssh/"
reason = "keys are nobody's business"

[[approval.reject]]
name = "never-full"
mode = "danger-full-access"
reason = "not here"
"#;
    let settings = settings([(Origin::System, text)]).unwrap();
    assert_eq!(settings.mode(), SandboxMode::WorkspaceWrite);
    assert_eq!(settings.mode_said_in().unwrap().to_string(), "/system, line 3");
    assert_eq!(settings.ceiling_said_in().unwrap().line, 4);
    assert_eq!(
        (settings.require(), settings.audit()),
        (Require::Full, Recording::Required)
    );
    let approval = settings.approval();
    assert_eq!(approval.policy(), ApprovalPolicy::Ask);
    assert_eq!(approval.answerers(), [Answerer::Hook, Answerer::Queue]);
    assert_eq!(approval.hook().unwrap(), ["/usr/local/bin/ask", "--now"]);
    assert_eq!(approval.notify().unwrap(), ["/usr/bin/true"]);
    assert_eq!(
        [approval.hook_timeout(), approval.request_ttl(), approval.grant_ttl()],
        [20, 5400, 30].map(Duration::from_secs)
    );
    assert_eq!(approval.max_looseness(), Looseness::ExtraRoots);
    let [keys, full] = approval.reject() else {
        panic!("two rules")
    };
    assert_eq!(keys.what, Rejected::Write("/home/u/.ssh".into()));
    assert!(keys.rejects_write(Path::new("/home/u/.ssh/id")) && keys.rejects_write(Path::new("/home/u")));
    assert!(!keys.rejects_write(Path::new("/home/u/.sshd")) && !keys.rejects_mode(SandboxMode::DangerFullAccess));
    assert!(full.rejects_mode(SandboxMode::DangerFullAccess) && !full.rejects_mode(SandboxMode::WorkspaceWrite));
    assert_eq!((full.name.as_str(), full.said_in.line), ("never-full", 24));
}

/// Mistakes: the text, a part of the message, a part of the hint.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "cieling = \"read-only\"",
        "line 2: there is no key \"cieling\"",
        "did you mean `ceiling`?",
    ),
    (
        "[approval]\nanswerer = []",
        "line 3: there is no key \"approval.answerer\"",
        "did you mean `answerers`?",
    ),
    (
        "[[approval.reject]]\nnames = \"x\"",
        "no key \"approval.reject.names\"",
        "did you mean `name`?",
    ),
    (
        "mode = \"workspace\"",
        "mode = \"workspace\": it is none",
        "did you mean `workspace-write`?",
    ),
    (
        "audit = \"require\"",
        "audit = \"require\": it is none",
        "did you mean `required`?",
    ),
    ("audit = true", "audit = true: it is none", "off, on and required"),
    (
        "[approval]\nanswerers = [\"hok\"]",
        "approval.answerers = \"hok\"",
        "did you mean `hook`?",
    ),
    (
        "[approval]\nanswerers = \"tty\"",
        "it has to be a list",
        "answerers = [",
    ),
    (
        "[approval]\nhook = \"/bin/true\"",
        "a program by its absolute path",
        "hook = [",
    ),
    (
        "[approval]\nhook = [\"ask\"]",
        "a program by its absolute path",
        "hook = [",
    ),
    ("[approval]\nhook = []", "a program by its absolute path", "hook = ["),
    ("[approval]\nhook = [\"/bin/true\", 1]", "approval.hook = 1", "hook = ["),
    (
        "[approval]\nrequest_ttl = 15",
        "approval.request_ttl = 15",
        "request_ttl = \"15m\"",
    ),
    (
        "[approval]\ngrant_ttl = \"0s\"",
        "at least a second",
        "grant_ttl = \"15m\"",
    ),
    (
        "[approval]\ngrant_ttl = \"-5m\"",
        "at least a second",
        "grant_ttl = \"15m\"",
    ),
    (
        "[approval]\ngrant_ttl = \"200h\"",
        "at most a week",
        "grant_ttl = \"15m\"",
    ),
    ("approval = 1", "it has to be a table", "[approval]"),
    ("[approval]\nreject = [1]", "a list of tables", "[[approval.reject]]"),
    (
        "[[approval.reject]]\nname = \"x\"\nreason = \"y\"",
        "\"approval.reject.write\" is missing",
        "add `write`",
    ),
    (
        "[[approval.reject]]\nname = \"x\"\nwrite = \"/a\"",
        "\"approval.reject.reason\" is missing",
        "add `reason`",
    ),
    (
        "[[approval.reject]]\nname = \"x\"\nreason = \"y\"\nwrite = \"/a\"\nmode = \"read-only\"",
        "beside `mode`",
        "leave one",
    ),
    (
        "[[approval.reject]]\nname = \"x\"\nreason = \"y\"\nwrite = \"a/b\"",
        "begins with `/` or `~/`",
        "~/.ssh",
    ),
    (
        "[[approval.reject]]\nname = \"x\"\nreason = \"y\"\nwrite = \"/a/../b\"",
        "begins with `/` or `~/`",
        "~/.ssh",
    ),
    (
        "[[approval.reject]]\nname = \"x\"\nreason = \"y\"\nwrite = \"~u/b\"",
        "begins with `/` or `~/`",
        "~/.ssh",
    ),
    ("schema = 1", "duplicate key", "mend the line"),
];

#[test]
fn a_mistake_is_refused_with_its_place_and_what_was_meant() {
    for (text, message, hint) in MISTAKES {
        let said = refusal([(Origin::System, *text)]);
        assert!(said.0.starts_with("deployment file /system, line "), "{text}: {said:?}");
        assert!(said.0.contains(message), "{text}: {said:?}");
        assert!(said.1.contains(hint), "{text}: {said:?}");
    }
}

#[test]
fn two_rules_of_one_file_have_two_names() {
    let rule = "[[approval.reject]]\nname = \"x\"\nreason = \"y\"\nwrite = \"/a\"\n";
    assert!(
        refusal([(Origin::System, rule.repeat(2).as_str())])
            .0
            .contains("another one has that name")
    );
    let both = settings([(Origin::System, rule), (Origin::User, rule)]).unwrap();
    assert_eq!(both.approval().reject().len(), 2, "a rule below takes none above away");
}

#[test]
fn a_rule_means_the_same_path_however_one_gets_there() {
    let dir = tempfile::tempdir().unwrap();
    let top = WorkspaceRoot::open(dir.path()).unwrap().path().to_owned();
    fs::create_dir(top.join("real")).unwrap();
    symlink("real", top.join("home")).unwrap();
    let text = "schema = 1\n[[approval.reject]]\nname = \"x\"\nreason = \"y\"\nwrite = \"~/.ssh\"\n";
    let layer = read::layer(Origin::User, Path::new("/user"), text, Some(&top.join("home"))).unwrap();
    let rejects = |path: &str| layer.reject[0].rejects_write(&top.join(path));
    assert!(rejects("real/.ssh") && rejects("home/.ssh/key") && rejects("real"));
    assert!(!rejects("real/other"));
}

#[test]
fn a_home_that_is_not_known_takes_no_rule_away() {
    let text = "schema = 1\n[[approval.reject]]\nname = \"x\"\nreason = \"y\"\nwrite = \"~/.ssh\"\n";
    let error = read::layer(Origin::User, Path::new("/user"), text, None).unwrap_err();
    assert!(matches!(error, ConfigError::NoHome { .. }), "{error}");
}

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

// --- the files themselves ---------------------------------------------------------------------

/// A workspace with this file in it.
fn workspace(text: &str) -> (tempfile::TempDir, WorkspaceRoot) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(WORKSPACE_FILE), text).unwrap();
    let root = WorkspaceRoot::open(dir.path()).unwrap();
    (dir, root)
}

fn in_workspace(root: &WorkspaceRoot) -> Files<'_> {
    Files {
        workspace: Some(root),
        ..Files::default()
    }
}

#[test]
fn what_was_read_is_known_by_its_content() {
    let (_dir, root) = workspace("schema = 1\n");
    let settings = load(&in_workspace(&root)).unwrap();
    let [source] = settings.sources() else {
        panic!("one file")
    };
    assert_eq!(
        (source.origin, source.path.clone()),
        (Origin::Workspace, root.path().join(WORKSPACE_FILE))
    );
    // As sha256sum(1) has it.
    assert_eq!(
        source.sha256,
        "da93db77ebb07776dbd095f79fe28cbf4d42340c27bc33547ed7eeb2d3c93ea1"
    );
}

#[test]
fn a_file_that_is_there_and_cannot_be_read_is_an_error() {
    let (dir, root) = workspace("");
    let path = dir.path().join(WORKSPACE_FILE);
    let unreadable = || matches!(load(&in_workspace(&root)), Err(ConfigError::Unreadable { .. }));
    fs::write(&path, b"schema = 1\n# \xff\n").unwrap();
    assert!(unreadable(), "no text");
    fs::write(&path, format!("schema = 1\n#{}\n", "x".repeat(1 << 20))).unwrap();
    assert!(unreadable(), "too large");
    fs::remove_file(&path).unwrap();
    assert!(load(&in_workspace(&root)).is_ok(), "not there");
    fs::create_dir(&path).unwrap();
    assert!(unreadable(), "a directory");
    fs::remove_dir(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(unreadable(), "a FIFO, and it is not waited for");
    fs::remove_file(&path).unwrap();
    fs::write(dir.path().join("real"), "schema = 1\n").unwrap();
    symlink("real", &path).unwrap();
    assert!(unreadable(), "a link");
}

#[test]
fn a_file_that_everybody_may_write_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    fs::write(&file, "schema = 1\n").unwrap();
    let load_with = |mode: u32| {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let user = load(&Files {
            user: Some(&file),
            ..Files::default()
        });
        let system = load(&Files {
            system: Some(&file),
            ..Files::default()
        });
        let doubtful = |outcome: Result<_, ConfigError>| matches!(outcome, Err(ConfigError::Doubtful { .. }));
        (doubtful(user), doubtful(system))
    };
    let others = !nix::unistd::geteuid().is_root();
    assert_eq!(load_with(0o644), (false, others), "the system's belongs to root");
    assert_eq!(load_with(0o664), (false, true));
    assert_eq!(load_with(0o666), (true, true));
}
