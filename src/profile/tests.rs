use super::Inherit;
use std::path::{Path, PathBuf};

use ringfence_backend::{Require, SandboxMode, Temp};

use super::read::profile as read;
use super::{BUILT_IN, Profile, ProfileEnv, ProfileError, load};

const GOOD: &str = "\
schema = 1
name = \"team\"
description = \"For the team.\"

[policy]
mode = \"workspace-write\"
temp = \"private\"
require = \"full\"
";

/// What is said of a profile with this text: message and hint.
fn refusal(text: &str) -> (String, String) {
    let error = read(Path::new("team.toml"), text).expect_err("this profile was accepted");
    (error.to_string(), error.hint())
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("team.toml");
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

#[test]
fn every_profile_that_is_built_in_can_be_read_and_is_named_after_its_file() {
    for (name, file, text) in BUILT_IN {
        let profile = read(Path::new(file), text).unwrap();
        assert_eq!(profile.name, name);
        assert_eq!(file, format!("profiles/{name}.toml"));
        assert_eq!(Profile::built_in(name), Some(profile));
    }
}

#[test]
fn every_toml_file_of_the_folder_is_built_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles");
    let within = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let (folders, mut files): (Vec<_>, Vec<_>) = within(&folder).into_iter().partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| within(folder)));
    let mut on_disk: Vec<String> = files
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| path.strip_prefix(&folder).unwrap().with_extension(""))
        .map(|name| name.to_str().unwrap().to_owned())
        .collect();
    let mut built_in: Vec<String> = Profile::names().map(str::to_owned).collect();
    on_disk.sort();
    built_in.sort();
    assert_eq!(on_disk, built_in);
}

#[test]
fn a_profile_named_after_a_mode_says_that_mode_and_nothing_else() {
    for mode in SandboxMode::ALL {
        let profile = load(mode.name()).unwrap();
        assert_eq!((profile.mode, profile.temp, profile.require), (mode, None, None));
        assert_eq!(profile.env, ProfileEnv::default());
    }
}

#[test]
fn a_file_says_what_its_author_wrote() {
    let (_dir, path) = file(GOOD);
    let profile = load(path.to_str().unwrap()).unwrap();
    let expected = Profile {
        name: "team".to_owned(),
        description: "For the team.".to_owned(),
        mode: SandboxMode::WorkspaceWrite,
        temp: Some(Temp::Private),
        protect: Vec::new(),
        git_worktree: false,
        network: None,
        unix_sockets: None,
        require: Some(Require::Full),
        env: ProfileEnv::default(),
    };
    assert_eq!(profile, expected);
}

#[test]
fn every_word_of_every_key_is_understood() {
    let with = |key: &str, word: &str| {
        let mode = if key == "mode" { word } else { "workspace-write" };
        let rest = if key == "mode" {
            String::new()
        } else {
            format!("{key} = \"{word}\"\n")
        };
        let text = format!("schema = 1\nname = \"n\"\ndescription = \"d\"\n[policy]\nmode = \"{mode}\"\n{rest}");
        read(Path::new("team.toml"), &text).unwrap()
    };
    for mode in SandboxMode::ALL {
        assert_eq!(with("mode", mode.name()).mode, mode);
    }
    for (word, temp) in [("host", Temp::Host), ("private", Temp::Private), ("none", Temp::None)] {
        assert_eq!(with("temp", word).temp, Some(temp));
    }
    for (word, require) in [("full", Require::Full), ("partial", Require::Partial)] {
        assert_eq!(with("require", word).require, Some(require));
    }
}

#[test]
fn an_unknown_key_is_refused_by_file_line_and_name_with_the_key_that_was_meant() {
    let (message, hint) = refusal(&GOOD.replace("require", "requires"));
    assert_eq!(
        message,
        "profile team.toml, line 8: there is no key \"policy.requires\""
    );
    assert_eq!(
        hint,
        "did you mean `require`? [policy] has the keys mode, protect, git_worktree, temp, network, unix_sockets and require"
    );

    let (message, hint) = refusal(&GOOD.replace("description", "descripton"));
    assert_eq!(message, "profile team.toml, line 3: there is no key \"descripton\"");
    assert!(hint.starts_with("did you mean `description`?"), "{hint}");
}

#[test]
fn an_unknown_table_and_a_dotted_key_are_unknown_keys_too() {
    let (message, hint) = refusal(&format!("{GOOD}\n[zzz]\na = 1\n"));
    assert_eq!(message, "profile team.toml, line 10: there is no key \"zzz\"");
    assert_eq!(hint, "a profile has the keys schema, name, description, policy and env");

    let (message, _) = refusal(
        &GOOD
            .replace("schema = 1", "schema = 1\npolicy.write = \"x\"")
            .replace("[policy]", ""),
    );
    assert_eq!(message, "profile team.toml, line 7: there is no key \"mode\"");
}

#[test]
fn the_first_unknown_key_of_the_file_is_the_one_that_is_named() {
    let (message, _) = refusal(&GOOD.replace("schema = 1", "schema = 1\nzebra = 1\nant = 1"));
    assert!(message.contains("\"zebra\""), "{message}");
}

#[test]
fn a_misspelt_word_is_refused_with_the_word_that_was_meant() {
    let (message, hint) = refusal(&GOOD.replace("\"workspace-write\"", "\"workspace_wrte\""));
    assert!(
        message.contains("line 6: policy.mode = \"workspace_wrte\""),
        "{message}"
    );
    assert_eq!(
        hint,
        "did you mean `workspace-write`? The words are read-only, workspace-write and danger-full-access"
    );
}

#[test]
fn a_value_of_another_kind_is_refused() {
    for (good, bad) in [
        ("\"private\"", "[\"private\"]"),
        ("\"full\"", "true"),
        ("\"team\"", "7"),
        ("\"team\"", "\" \""),
        ("\"workspace-write\"", "1"),
    ] {
        let (message, _) = refusal(&GOOD.replace(good, bad));
        assert!(message.contains(&format!("= {bad}")), "{message}");
    }
    let (message, _) = refusal("schema = 1\nname = \"n\"\ndescription = \"d\"\npolicy = \"read-only\"\n");
    assert!(
        message.contains("line 4: policy = \"read-only\": it has to be a table"),
        "{message}"
    );
}

#[test]
fn a_key_that_is_missing_is_named() {
    for (line, key) in [
        ("schema = 1", "schema"),
        ("name = \"team\"", "name"),
        ("description = \"For the team.\"", "description"),
        ("mode = \"workspace-write\"", "policy.mode"),
    ] {
        let (message, hint) = refusal(&GOOD.replace(line, ""));
        assert!(message.ends_with(&format!("the key {key:?} is missing")), "{message}");
        assert!(!hint.is_empty());
    }
    assert!(refusal("").0.contains("\"schema\" is missing"));
}

#[test]
fn another_schema_is_refused_before_its_keys_are_judged() {
    let (message, _) = refusal(&GOOD.replace("schema = 1", "schema = 2\nnew-key = 1"));
    assert_eq!(
        message,
        "profile team.toml, line 1: schema = 2: the schema that is read here is 1"
    );
    assert!(
        refusal(&GOOD.replace("schema = 1", "schema = \"1\""))
            .0
            .contains("schema = \"1\"")
    );
}

#[test]
fn what_is_no_toml_is_refused_with_its_line() {
    let (message, _) = refusal(&GOOD.replace("mode = ", "mode "));
    assert!(message.starts_with("profile team.toml, line 6: "), "{message}");
    let (message, _) = refusal(&format!("{GOOD}mode = \"read-only\"\n"));
    assert!(message.starts_with("profile team.toml, line 9: "), "{message}");
}

#[test]
fn a_name_that_is_no_profile_is_refused_with_the_profile_that_was_meant() {
    let error = load("workspace-wrte").unwrap_err();
    assert_eq!(error.to_string(), "there is no profile \"workspace-wrte\"");
    assert!(
        error
            .hint()
            .starts_with("did you mean `workspace-write`? The profiles are read-only,"),
        "{}",
        error.hint()
    );

    let error = load("zzz").unwrap_err();
    assert!(error.hint().starts_with("the profiles are"), "{}", error.hint());
}

#[test]
fn a_slash_or_the_ending_toml_makes_it_a_file_even_when_there_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("read-only");
    for file in [missing.to_str().unwrap(), "no-such-profile.toml"] {
        let error = load(file).unwrap_err();
        assert!(
            matches!(&error, ProfileError::Unreadable { file: named, .. } if named == Path::new(file)),
            "{error}"
        );
        assert!(error.to_string().contains(file), "{error}");
    }
}

#[test]
fn a_file_may_not_take_the_name_of_a_profile_that_is_built_in() {
    let (_dir, path) = file(&GOOD.replace("\"team\"", "\"read-only\""));
    let error = load(path.to_str().unwrap()).unwrap_err();
    assert!(
        matches!(&error, ProfileError::NameTaken { name, .. } if name == "read-only"),
        "{error}"
    );
}

#[test]
fn a_device_or_a_file_far_too_large_is_refused_and_not_read_to_its_end() {
    let error = load("/dev/zero").unwrap_err();
    assert!(matches!(error, ProfileError::Unreadable { .. }), "{error}");
}

fn with_env(env: &str) -> String {
    format!("{GOOD}\n[env]\n{env}\n")
}

#[test]
fn the_environment_is_part_of_a_profile() {
    for (word, inherit) in [
        ("filtered", Inherit::Filtered),
        ("all", Inherit::All),
        ("none", Inherit::None),
    ] {
        let text = with_env(&format!(
            "inherit = \"{word}\"\nkeep = [\"CI\", \"A_TOKEN\"]\ndrop = [\"HOME\"]"
        ));
        let expected = ProfileEnv {
            inherit: Some(inherit),
            keep: vec!["CI".into(), "A_TOKEN".into()],
            drop: vec!["HOME".into()],
        };
        assert_eq!(read(Path::new("team.toml"), &text).unwrap().env, expected);
    }
    let empty = read(Path::new("team.toml"), &with_env("keep = []")).unwrap();
    assert_eq!(empty.env, ProfileEnv::default());
}

#[test]
fn a_slip_in_the_environment_is_refused_with_what_was_meant() {
    let (message, hint) = refusal(&with_env("inheritt = \"all\""));
    assert_eq!(message, "profile team.toml, line 11: there is no key \"env.inheritt\"");
    assert_eq!(
        hint,
        "did you mean `inherit`? [env] has the keys inherit, keep and drop"
    );
    let (message, hint) = refusal(&with_env("inherit = \"filterd\""));
    assert!(message.contains("line 11: env.inherit = \"filterd\""), "{message}");
    assert!(hint.starts_with("did you mean `filtered`?"), "{hint}");
}

#[test]
fn a_list_of_names_is_nothing_else_and_names_what_can_be() {
    for bad in ["\"CI\"", "[1]", "[\"\"]", "[\"A=B\"]", "[\"CI\", \"RINGFENCE_MODE\"]"] {
        for key in ["keep", "drop"] {
            let (message, hint) = refusal(&with_env(&format!("{key} = {bad}")));
            assert!(message.contains(&format!("line 11: env.{key} = ")), "{message}");
            assert!(hint.contains(&format!("`{key} = [")), "{hint}");
        }
    }
}

#[test]
fn a_name_is_not_kept_and_dropped_at_once() {
    let (message, hint) = refusal(&with_env("keep = [\"A\", \"B\"]\ndrop = [\"B\"]"));
    assert!(
        message.contains("line 12") && message.ends_with("a name is both kept and dropped"),
        "{message}"
    );
    assert!(!hint.is_empty());
}
