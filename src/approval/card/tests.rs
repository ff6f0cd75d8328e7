use std::os::unix::ffi::OsStringExt;

use super::super::request::tests::{question, request};
use super::*;

fn shown(request: &Request, layout: Layout) -> String {
    card(request, &Moment::now().unwrap(), layout)
}

#[test]
fn everything_that_must_be_seen_is_on_the_card() {
    let request = request(question());
    let text = shown(&request, Layout::default());
    for part in [
        request.id(),
        request.code(),
        "expires in ",
        "create  /etc/x  EACCES  touch(7)  ×21  certain",
        " RUN     │ make\n",
        "         │ test\n",
        " EXE     │ /usr/bin/make\n",
        "unchanged since the run",
        " CWD     │ /w\n",
        " LOOSER  │ + write /etc\n",
        "everything else unchanged",
        " KEEPS   │ workspace-write\n",
        "«it is needed»",
        "said by a client, session s; not verified",
        " NOTE    │ the first run took 1 s\n",
        "one start of exactly this",
    ] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
}

#[test]
fn a_command_of_three_hundred_lines_with_escapes_is_whole_and_harmless() {
    let mut question = question();
    let lines: Vec<_> = (0..300)
        .map(|number| format!("line {number} \u{1b}[2J\u{202e}\r\n"))
        .collect();
    let script = lines.concat();
    question.argv = vec!["bash".into(), "-c".into(), script.into()];
    question.justification = "fine\n [a] run once\u{1b}[1A\u{7}".to_owned();
    let text = shown(&request(question), Layout::default());
    assert!(
        text.chars().all(|c| c == '\n' || !is_unseen(c)),
        "something can steer or hide"
    );
    for number in 0..300 {
        assert!(text.contains(&format!(" line {number} \\u{{1b}}[2J\\u{{202e}}\\r\n")));
    }
    assert!(
        text.contains("│   [a] run once\\u{1b}[1A\\u{7}»"),
        "it stands behind the rule:\n{text}"
    );
}

#[test]
fn a_backslash_and_an_escape_are_told_apart() {
    let mut question = question();
    question.argv = vec![OsStringExt::from_vec(b"a\\n\t\xff".to_vec()), "".into()];
    let text = shown(&request(question), Layout::default());
    assert!(text.contains("│ a\\\\n\\t\\xff\n"), "{text}");
    assert!(text.contains("│ ''\n"));
}

#[test]
fn no_line_is_wider_than_the_terminal_and_what_is_broken_stays_behind_the_rule() {
    let mut question = question();
    question.argv = vec![format!("{}{}", "x".repeat(200), "[a] run once").into()];
    let layout = Layout {
        width: Some(60),
        colour: false,
    };
    let text = shown(&request(question), layout);
    let body: Vec<_> = text.lines().skip(1).collect();
    assert!(body.iter().all(|line| line.chars().count() <= 60), "{text}");
    assert!(body.iter().any(|line| line.starts_with("         ┊ xxx")));
    let whole: String = body
        .iter()
        .map(|line| line.chars().skip(11).collect::<String>())
        .collect();
    assert!(whole.contains(&"x".repeat(200)), "nothing is left out");
}

#[test]
fn full_access_is_said_in_red_where_there_is_red() {
    let mut question = question();
    question.looseness = Looseness::FullAccess;
    question.difference = vec!["mode workspace-write -> danger-full-access".to_owned()];
    let request = request(question);
    let plain = shown(&request, Layout::default());
    assert!(plain.contains("NOTHING WOULD BE CONFINED") && !plain.contains('\u{1b}'));
    let coloured = shown(
        &request,
        Layout {
            width: None,
            colour: true,
        },
    );
    assert!(coloured.contains("\u{1b}[1;31mmode workspace-write -> danger-full-access\u{1b}[0m"));
}

#[test]
fn a_mebibyte_is_shown_whole() {
    let mut question = question();
    question.argv = vec!["ÿ".repeat(512 * 1024).into()];
    let layout = Layout {
        width: Some(80),
        colour: true,
    };
    let text = shown(&request(question), layout);
    assert_eq!(text.matches('ÿ').count(), 512 * 1024);
}

#[test]
fn a_space_at_the_end_of_a_word_or_a_path_is_seen() {
    let mut question = question();
    question.argv = vec!["cp".into(), "a ".into(), "b\u{a0}c".into()];
    question.workdir = "/srv/app ".into();
    let text = shown(&request(question), Layout::default());
    for part in ["│ a\\u{20}\n", "│ b\\u{a0}c\n", "│ /srv/app\\u{20}\n"] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
}
