//! What a host gives each backend, and that nothing is open beyond what is said to be.

use std::ffi::OsString;

use ringfence::SandboxMode::WorkspaceWrite;

use super::{ATTACK, KEEP, UNWATCHED, assert_content_is_kept, assert_nothing_ran, mode_bits};
use crate::support::{Case, Report, World, for_each_user};

/// The ways to ask for a backend: each by its name, and none, which takes the first that serves.
pub(crate) const ASKED: [&[&str]; 3] = [&["--backend", "landlock"], &["--backend", "bwrap"], &[]];

/// What a host gives a run in `workspace-write` that nobody watches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given {
    /// This backend, and every file effect is governed.
    Full(&'static str),
    /// This backend, and these effects are left open.
    Partial(&'static str, &'static [&'static str]),
    /// Nothing: each backend that was tried, and words of its reason.
    Refused(&'static [(&'static str, &'static str)]),
}

impl Given {
    /// Asserts the verdict, and the state of the world after [`ATTACK`].
    pub(crate) fn assert(self, world: &World, report: &Report) {
        match self {
            Self::Full(backend) => {
                report.assert_exit(0).assert_full();
                assert_eq!(report.text("/sandbox/backend"), backend, "{report}");
                assert_eq!(mode_bits(world), 0o644, "{report}");
            }
            Self::Partial(backend, ungoverned) => {
                report.assert_exit(0).assert_partial(ungoverned);
                assert_eq!(report.text("/sandbox/backend"), backend, "{report}");
                // bubblewrap leaves open the modes of device nodes, and nothing else.
                let open = backend == "landlock" && ungoverned.contains(&"metadata");
                assert_eq!(mode_bits(world) == 0o644, !open, "{report}");
            }
            Self::Refused(reasons) => {
                assert_refused(report, reasons);
                assert_nothing_ran(world);
                return;
            }
        }
        assert_content_is_kept(world);
        assert!(world.inside("ran").exists(), "{report}");
    }
}

/// Asserts a refusal that names exactly these backends, with these words in their reasons.
pub(crate) fn assert_refused(report: &Report, reasons: &[(&str, &str)]) {
    report.assert_error("SANDBOX_UNAVAILABLE");
    let tried = report.field("/error/tried").as_array().expect("a list");
    let backends: Vec<_> = tried.iter().map(|tried| tried["backend"].as_str().unwrap()).collect();
    let expected: Vec<_> = reasons.iter().map(|(backend, _)| *backend).collect();
    assert_eq!(backends, expected, "{report}");
    for (tried, (_, words)) in tried.iter().zip(reasons) {
        let reason = tried["reason"].as_str().unwrap();
        assert!(reason.contains(words), "nothing says `{words}`: {report}");
    }
}

/// Runs the attack on a host that these words make, started by root, who becomes the user of the world there.
pub(crate) fn attack_as_root_sees(world: &World, host: &[String], asked: &[&str], given: Given) {
    world.prepare(&format!("rm -f ran; {KEEP}"));
    let case = Case::new(WorkspaceWrite)
        .options(UNWATCHED)
        .options(asked.iter().copied())
        .inside(host.iter().cloned())
        .shell(ATTACK);
    given.assert(world, &case.run_as_root_in(world));
}

/// Runs the attack once for each way to ask, as each user, on a host that these words make, which gives what
/// `given` says for root and for others.
pub(crate) fn on_host<S: Into<OsString> + Clone>(host: &[S], given: impl Fn(bool) -> [Given; 3]) {
    for_each_user(|world| {
        let given = given(world.uid() == 0);
        for (asked, given) in ASKED.into_iter().zip(given) {
            world.prepare(&format!("rm -f ran; {KEEP}"));
            eprintln!("asked for {asked:?}, expecting {given:?}");
            let report = Case::new(WorkspaceWrite)
                .options(UNWATCHED)
                .options(asked.iter().copied())
                .inside(host.iter().cloned())
                .shell(ATTACK)
                .run_in(world);
            given.assert(world, &report);
        }
    });
}
