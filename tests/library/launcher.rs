//! A program that does not serve as a launcher, which bubblewrap would have to start inside.

use ringfence::{BackendId, Error, Runner, SandboxMode};

use super::{Place, alone, request};

#[test]
fn a_host_that_does_not_serve_as_a_launcher_gets_a_reason_and_is_not_started_again() {
    let _alone = alone();
    let place = Place::new();
    let policy = place.policy(SandboxMode::WorkspaceWrite);
    let mut asked = request(&policy, "touch ran");
    asked.backend = Some(BackendId::Bwrap);
    let Err(Error::SandboxUnavailable { tried }) = Runner::new(None).resolve(asked) else {
        panic!("bubblewrap would start the tests once more");
    };
    assert_eq!(tried.len(), 1);
    assert!(
        tried[0].reason.contains("does not serve as a launcher"),
        "{}",
        tried[0].reason
    );
    assert!(!place.root().join("ran").exists());
}
