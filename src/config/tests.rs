mod files;
mod layers;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use ringfence_backend::{Require, SandboxMode, WorkspaceRoot};

use super::layer::Origin;
use super::{Answerer, ApprovalPolicy, ConfigError, Files, Looseness, Recording, Rejected, Settings, load, read};

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
