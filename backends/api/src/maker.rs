//! The program that makes a boundary, started like a command of its own.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::AtomicI32;

use crate::Containment;
use crate::backend::Boundary;
use crate::channel::{Channel, status_channel};
use crate::child::{Child, Strings};
use crate::outside::Outside;
use crate::reaper::{Reaper, reaper_main};
use crate::running::{Launched, Memory};
use crate::shared::Shared;
use crate::stack::{Stack, clone_onto};
use crate::status::Failure;
use crate::task::{Launch, Task};
use crate::told::{LaunchError, Told, blocking_signals, unstarted};

/// Starts the program, and a reaper outside of every boundary, from which neither it nor what it leaves behind
/// gets away: a child of bubblewrap's that waits for it would wait for ever.
pub(crate) fn reaped(launch: &Launch<'_>, outside: &Outside<'_>) -> Result<Launched, LaunchError> {
    let (read, write) = status_channel()?;
    let stacks = [Stack::new()?, Stack::new()?];
    let shared = Arc::new(Shared::new());
    let reaper = Reaper {
        child: Child {
            boundary: &NoBoundary,
            launch,
            task: Task::Outside(outside),
            strings: Strings::default(),
            status: write.as_raw_fd(),
            parent: AtomicI32::new(0),
        },
        stack: stacks[1].top(),
        shared: Arc::as_ptr(&shared),
        namespace: false,
    };
    let started = blocking_signals(|| {
        let started = clone_onto(&stacks[0], libc::CLONE_VM, reaper_main, &reaper, Some(shared.gate()))?;
        // Until then the reaper uses what stands in this frame.
        shared.wait();
        Ok(started)
    })?;
    let (pid, pidfd) = started.map_err(unstarted)?;
    let memory = Memory {
        stacks: Some(stacks),
        shared,
    };
    let channel = Channel::new(read);
    let told = Told::of(&channel);
    let maker = Launched::new(pid, pidfd, channel, memory, Containment::Subreaper);
    match told.failed {
        Some(failure) => Err(failure.into()),
        None => Ok(maker),
    }
}

/// What the program starts in: nothing yet.
#[derive(Debug)]
struct NoBoundary;

impl Boundary for NoBoundary {
    fn clone_flags(&self) -> i32 {
        0
    }

    fn isolate(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn confine(&self) -> Result<Option<RawFd>, Failure> {
        Ok(None)
    }
}
