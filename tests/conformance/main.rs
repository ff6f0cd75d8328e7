//! Every backend of this system, put to the same cases (`ringfence_backend::conformance`).
//!
//! Each case runs in a process of its own: as root and as nobody when the harness is root, else as its own
//! user, and on hosts that give less. A backend that is not usable fails; nothing is skipped.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod stand;

use std::ffi::OsString;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use ringfence::selection::Selection;
use ringfence_backend::BackendId;
use ringfence_backend::conformance::{cases, refuses_to_confine};

use stand::{Base, INNER, Stand, inner};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    // This very program serves as the launcher inside what another program makes.
    if let Some(status) = ringfence::launcher(&words) {
        return ExitCode::from(status);
    }
    if words.get(1).is_some_and(|word| word == INNER) {
        return match inner(&words[2..]) {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                eprintln!("{reason}");
                ExitCode::FAILURE
            }
        };
    }
    libtest_mimic::run(&Arguments::from_args(), trials()).exit_code()
}

fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("none::every_confining_mode_is_refused", || {
            let base = Base::new(None);
            let none = Selection::of_this_system(None, None);
            let none = none.backends().find(|backend| backend.id() == BackendId::None);
            Ok(refuses_to_confine(none.expect("the backend none"), base.path())?)
        }),
        Trial::test("this_system_has_the_backends_that_it_should_have", || {
            let ids: Vec<_> = confining().collect();
            if ids == [BackendId::Landlock, BackendId::Bwrap] {
                Ok(())
            } else {
                Err(Failed::from(format!("the confining backends are {ids:?}")))
            }
        }),
    ];
    for stand in confining().flat_map(Stand::all_of) {
        trials.extend(cases().map(|case| {
            let name = format!("{stand}::{}", case.name);
            Trial::test(name, move || Ok(stand.run(case)?))
        }));
    }
    trials
}

/// The backends of this system that confine.
fn confining() -> impl Iterator<Item = BackendId> {
    let ids: Vec<_> = Selection::of_this_system(None, None)
        .backends()
        .map(ringfence_backend::Backend::id)
        .collect();
    ids.into_iter().filter(|id| *id != BackendId::None)
}
