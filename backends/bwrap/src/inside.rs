//! The launcher's work inside what bubblewrap has made.

use std::ffi::{CString, OsString};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use caps::CapSet;
use nix::errno::Errno;
use ringfence_backend::status::{Failure, Stage};
use ringfence_backend::{Boundary, Launcher, mounts};
use ringfence_layers::{Breakout, Confinement, Rulesets};

use crate::arguments::{NODES, OWN};
use crate::order::Order;
use crate::place;

/// Does what a runner asked the launcher for; returns an exit status only if these are no words of a runner's.
///
/// To be called first of all, before any thread, by a program whose words
/// [`is_launcher`](ringfence_backend::is_launcher) knows.
#[must_use]
pub fn serve(words: &[OsString]) -> u8 {
    let Ok(launcher) = Launcher::receive(words) else {
        return 125;
    };
    match prepare(launcher.boundary()) {
        Ok((inside, attempts)) => launcher.run(&inside, &attempts),
        Err(failure) => launcher.fail(failure),
    }
}

fn prepare(order: &[u8]) -> Result<(Inside, Breakout), Failure> {
    let failed = |stage, errno: Option<i32>| Failure {
        stage,
        errno: errno.unwrap_or(nix::errno::Errno::EINVAL as i32),
    };
    let order = Order::decode(order).ok_or(failed(Stage::Place, None))?;
    // Before anything is done that would change the mounts of others.
    place::stands_apart(&order)?;
    if order.seal {
        seal(&order).map_err(|errno| failed(Stage::Mounts, Some(errno as i32)))?;
    }
    let found = place::check(&order)?;
    let steps = order
        .steps(&found)
        .map_err(|error| failed(Stage::WritableRoot, error.raw_os_error()))?;
    let confinement = Confinement::prepare(&steps, &Rulesets::default())
        .map_err(|error| failed(Stage::Landlock, error.source.raw_os_error()))?;
    let runner = order.runner.filter(|_| order.has_domain()).map(owned);
    let attempts = Breakout::new(runner).map_err(|_| failed(Stage::Place, None))?;
    Ok((Inside(confinement), attempts))
}

/// Keeps out what the host mounts later, makes read-only what bubblewrap made anew and the device nodes, and gives
/// up the right to do so.
fn seal(order: &Order) -> Result<(), Errno> {
    mounts::keep_to_oneself()?;
    let shown = order.shown.iter().map(|at| at.as_os_str().as_bytes());
    let own = OWN.iter().chain(&NODES).map(|own| own.as_bytes());
    for node in own.chain(shown) {
        mounts::make_read_only(&CString::new(node).map_err(|_| Errno::EINVAL)?)?;
    }
    for set in [
        CapSet::Ambient,
        CapSet::Inheritable,
        CapSet::Effective,
        CapSet::Permitted,
    ] {
        caps::clear(None, set).map_err(|_| Errno::EPERM)?;
    }
    Ok(())
}

/// A descriptor that the runner handed on for a trial.
#[allow(unsafe_code)]
fn owned(number: RawFd) -> OwnedFd {
    // SAFETY: this process was started with it for this purpose, and takes it over here alone.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// What is left to do where bubblewrap has made the namespaces.
#[derive(Debug)]
struct Inside(Confinement);

impl Boundary for Inside {
    fn clone_flags(&self) -> i32 {
        0
    }

    fn isolate(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn confine(&self) -> Result<Option<RawFd>, Failure> {
        self.0.confine()
    }
}
