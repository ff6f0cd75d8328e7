//! Programs that make no boundary, heard out.

use super::*;
use crate::pinned::PinnedPath;
use crate::task::Session;

/// Starts `sh -c` with this script in the place of a program that makes a boundary, and hears it out.
fn outcome(script: &str, patience: Duration) -> (String, OwnedFd) {
    let through = Through {
        program: c"/bin/sh".to_owned(),
        arguments: vec![c"-c".to_owned(), CString::new(script).unwrap()],
        more: (c"--args".to_owned(), Vec::new()),
        boundary: Vec::new(),
        kept: Vec::new(),
    };
    let launch = Launch {
        session: Session::Own,
        stdio: [ChildStdio::Inherit, ChildStdio::Inherit, ChildStdio::Inherit],
        workdir: (c"/", PinnedPath::open(std::path::Path::new("/")).unwrap().id()),
        extra: None,
        limits: &[],
    };
    let mut begun = begin(&through, &launch, None).unwrap();
    begun.patience = patience;
    let program = begun.launched.fd().try_clone_to_owned().unwrap();
    let error = begun.hear(|told| told.started).unwrap_err();
    (error.to_string(), program)
}

/// Whether the process behind a descriptor has ended, which was asked for a moment ago.
fn has_ended(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::from(10_000_u16)) == Ok(1)
}

#[test]
fn a_program_that_hangs_is_ended_and_that_is_said() {
    let (said, program) = outcome("while :; do :; done", Duration::from_millis(100));
    assert!(
        said.contains("/bin/sh did not make the boundary: it did not start the command"),
        "{said}"
    );
    assert!(has_ended(&program));
}

#[test]
fn one_that_says_words_and_hangs_is_quoted() {
    let (said, program) = outcome(
        "echo waiting for a mount >&2; while :; do :; done",
        Duration::from_millis(500),
    );
    assert!(said.contains("waiting for a mount"), "{said}");
    assert!(has_ended(&program));
}

#[test]
fn one_that_ends_is_quoted_on_one_line_or_said_to_have_said_nothing() {
    let patience = Duration::from_secs(20);
    assert!(outcome("exit 1", patience).0.ends_with("it ended without a word"));
    assert!(
        outcome("printf 'a\\n\\n b \\n' >&2; exit 1", patience)
            .0
            .ends_with("boundary: a; b")
    );
}
