use std::os::unix::ffi::OsStringExt;

use super::*;

fn read(words: &[&str]) -> Result<RunArgs, clap::Error> {
    let words = ["ringfence", "run"].iter().chain(words).map(OsString::from).collect();
    Cli::read(words).map(|cli| match cli.command {
        Command::Run(args) => *args,
        _ => unreachable!("the words begin with run"),
    })
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn what_follows_the_program_is_the_programs() {
    let args = read(&["-m", "read-only", "grep", "-c", "--json", "--", "-m", "x"]).unwrap();
    assert_eq!(args.argv(), ["grep", "-c", "--json", "--", "-m", "x"]);
    assert!(!args.json && args.text.is_none());
    assert_eq!(read(&["--", "-x", "--json"]).unwrap().argv(), ["-x", "--json"]);
    assert_eq!(read(&["--", "a", "--", "b"]).unwrap().argv(), ["a", "--", "b"]);
    assert_eq!(read(&["--", ""]).unwrap().argv(), [""]);
}

#[test]
fn a_text_is_given_to_bash() {
    assert_eq!(read(&["-c", "echo hi"]).unwrap().argv(), ["bash", "-c", "echo hi"]);
    assert_eq!(bash("-x".into()), ["bash", "-c", "--", "-x"]);
    assert_eq!(bash("+x".into()), ["bash", "-c", "--", "+x"]);
}

#[test]
fn words_that_are_no_utf8_survive() {
    let odd = OsString::from_vec(vec![b'a', 0xff]);
    let words = vec![
        "ringfence".into(),
        "run".into(),
        "--".into(),
        "echo".into(),
        odd.clone(),
    ];
    let Command::Run(args) = Cli::read(words).unwrap().command else {
        panic!("the words begin with run")
    };
    assert_eq!(args.argv()[1], odd);
}

#[test]
fn a_misspelt_option_is_not_taken_for_a_program() {
    let error = read(&["--mdoe", "read-only", "true"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownArgument);
    assert!(error.to_string().contains("--mode"), "{error}");
}

#[test]
fn a_misspelt_mode_names_the_three() {
    let text = read(&["-m", "workspace-wrte", "true"]).unwrap_err().to_string();
    for mode in SandboxMode::ALL {
        assert!(text.contains(mode.name()), "{text}");
    }
}

#[test]
fn every_mode_and_backend_can_be_named() {
    for mode in SandboxMode::ALL {
        assert_eq!(read(&["-m", mode.name(), "true"]).unwrap().mode, Some(mode));
    }
    for backend in BackendId::ALL {
        let named = read(&["--backend", backend.name(), "true"]).unwrap().backend;
        assert_eq!(named, Some(BackendChoice::Named(backend)));
    }
}

#[test]
fn a_text_and_a_program_are_too_much_and_neither_is_too_little() {
    let both = read(&["-c", "echo", "hi"]).unwrap_err();
    assert_eq!(both.kind(), ErrorKind::ArgumentConflict);
    assert!(both.to_string().contains("one TEXT"), "{both}");
    assert_eq!(read(&[]).unwrap_err().kind(), ErrorKind::MissingRequiredArgument);
}

#[test]
fn a_command_file_stands_alone_and_shares_no_input() {
    assert!(read(&["--command-file", "f"]).unwrap().command_file.is_some());
    for words in [
        &["--command-file", "f", "-c", "true"][..],
        &["--command-file", "f", "--", "true"],
        &["--command-file", "-", "--stdin", "-"],
    ] {
        assert_eq!(
            read(words).unwrap_err().kind(),
            ErrorKind::ArgumentConflict,
            "{words:?}"
        );
    }
    assert!(read(&["--command-file", "-", "--stdin", "f"]).is_ok());
}

#[test]
fn an_empty_path_is_left_to_those_who_know_what_it_is_for() {
    assert_eq!(read(&["-C", "", "true"]).unwrap().workspace, Some(PathBuf::new()));
}
