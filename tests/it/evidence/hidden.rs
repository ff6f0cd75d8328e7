//! What cannot be looked at gets no false `no`: it is listed, or the report says that it does not know.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ringfence::SandboxMode::WorkspaceWrite;

use super::hostile::{each_way, python};
use super::{WATCHED, assert_same, attempts, denials, watched};
use crate::support::{Case, Report, World, for_each_user};

/// What the kernel refused is either listed, or the report says that it does not know.
fn assert_no_false_no(world: &World, report: &Report, expected: &str) {
    assert!(!report.stdout().contains("done"), "{report}");
    if report.text("/sandbox/evidence") == "unavailable" {
        assert!(report.field("/sandbox/denied").is_null(), "{report}");
        assert!(!report.text("/sandbox/evidenceReason").is_empty(), "{report}");
    } else {
        assert_same(&[expected.to_owned()], &attempts(world, report), &format!("{report}"));
    }
}

#[test]
fn a_process_that_hides_its_memory_gets_no_false_no() {
    each_way("hide(); attempt(os.chmod, out + '/f', 0o600)", |world, report| {
        assert_no_false_no(world, report, "chmod out/f");
    });
}

#[test]
fn a_process_that_hides_its_working_directory_gets_no_false_no() {
    each_way(
        "os.chdir(out); hide(); attempt(os.chmod, 'f', 0o600)",
        |world, report| {
            assert_no_false_no(world, report, "chmod out/f");
        },
    );
}

#[test]
fn a_process_that_hides_a_descriptor_gets_no_false_no() {
    each_way(
        "fd = os.open(out + '/f', 0); hide(); attempt(os.fchmod, fd, 0o600)",
        |world, report| {
            assert_no_false_no(world, report, "chmod out/f");
        },
    );
}

#[test]
fn a_process_that_hides_the_directory_it_starts_from_gets_no_false_no() {
    each_way(
        "fd = os.open(out, 0); hide(); attempt(os.open, 'new', os.O_CREAT | os.O_WRONLY, dir_fd=fd)",
        |world, report| assert_no_false_no(world, report, "create out/new"),
    );
}

#[test]
fn a_process_that_hides_what_its_own_links_lead_to_gets_no_false_no() {
    each_way(
        "fd = os.open(out + '/f', 0); hide(); attempt(os.chmod, '/proc/self/fd/%d' % fd, 0o600)",
        |world, report| assert_no_false_no(world, report, "chmod out/f"),
    );
}

#[test]
fn a_process_that_hides_after_a_denial_was_denied_something() {
    each_way(
        "attempt(os.chmod, out + '/g', 0o600); hide(); attempt(os.chmod, out + '/f', 0o600)",
        |world, report| {
            report.assert_denied(true);
            assert!(attempts(world, report).contains(&"chmod out/g".to_owned()), "{report}");
        },
    );
}

#[test]
fn a_process_that_hides_and_does_no_wrong_is_not_denied_anything() {
    each_way(
        "hide(); open('made', 'w').close(); os.chmod('made', 0o600); os.unlink('made')",
        |_, report| {
            assert_ne!(report.field("/sandbox/denied"), true, "{report}");
        },
    );
}

#[test]
fn a_program_that_may_only_be_executed_gets_no_false_no() {
    for evidence in WATCHED {
        for_each_user(|world| {
            world.prepare("cp /usr/bin/touch touch; chmod 111 touch");
            let case = Case::new(WorkspaceWrite).shell("./touch $OUT/new 2> /dev/null; exit 0");
            let report = watched(&case, evidence, world).run_in(world);
            assert_no_false_no(world, &report, "create out/new");
        });
    }
}

#[test]
fn a_process_in_a_user_namespace_of_its_own_is_seen() {
    let program = "assert libc.unshare(0x10000000) == 0; fd = os.open(out + '/g', 0); os.chdir(out)
attempt(os.chmod, out + '/f', 0o600); attempt(os.fchmod, fd, 0o600); attempt(open, 'new', 'w')";
    each_way(program, |world, report| {
        let expected = ["chmod out/f", "chmod out/g", "create out/new"].map(str::to_owned);
        assert_same(&expected, &attempts(world, report), &format!("{report}"));
    });
}

#[test]
fn a_mount_in_a_namespace_of_its_own_is_a_denial_to_everybody() {
    // Without confinement anybody may mount in a namespace that is theirs.
    let program = "assert libc.unshare(0x10020000) == 0; print(libc.mount(b'none', work.encode(), b'tmpfs', 0, None))";
    each_way(program, |world, report| {
        assert_eq!(report.stdout(), "-1\n");
        assert_same(&["mount w".to_owned()], &attempts(world, report), &format!("{report}"));
    });
}

#[test]
fn a_directory_deeper_than_the_longest_path_gets_no_false_no() {
    for evidence in WATCHED {
        for_each_user(|world| {
            world.prepare("cd $OUT; for n in {1..30}; do mkdir $(printf 'n%.0s' {1..200}); cd n*; done; echo keep > f");
            let program = "os.chdir(out)
for n in range(30): os.chdir('n' * 200)
attempt(open, 'new', 'w'); attempt(os.chmod, 'f', 0o600); attempt(os.unlink, 'f')";
            let report = watched(&Case::new(WorkspaceWrite).argv(python(program)), evidence, world).run_in(world);
            assert!(!report.stdout().contains("done"), "{report}");
            assert_ne!(report.field("/sandbox/denied"), false, "{report}");
        });
    }
}

#[test]
fn a_file_whose_name_is_gone_gets_no_false_no() {
    // Both are opened for reading, then removed from outside the run; one has a second name.
    let program = "a, b = os.open(out + '/f', 0), os.open(out + '/g', 0)
open('ready', 'w').close()
while not os.path.exists('go'): time.sleep(0.01)
attempt(os.fchmod, a, 0o600); attempt(os.fchmod, b, 0o600)";
    for evidence in WATCHED {
        for_each_user(|world| {
            world.prepare("echo keep > $OUT/f; chmod 644 $OUT/f; ln $OUT/f $OUT/other; echo keep > $OUT/g");
            let remover = world
                .neighbour("(until [ -e ready ]; do sleep 0.02; done; rm $OUT/f $OUT/g; touch go) & echo ready; wait");
            let report = watched(&Case::new(WorkspaceWrite).argv(python(program)), evidence, world).run_in(world);
            drop(remover);
            assert!(!report.stdout().contains("done"), "{report}");
            assert_eq!(
                fs::metadata(world.outside("other")).unwrap().permissions().mode() & 0o777,
                0o644
            );
            if report.text("/sandbox/evidence") == "observed" {
                let counts = denials(&report).iter().map(|denial| denial["count"].as_u64().unwrap());
                assert_eq!(counts.sum::<u64>(), 2, "both were refused:\n{report}");
            }
        });
    }
}
