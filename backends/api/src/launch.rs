//! The spawn step: one clone(2) for the reaper, one for the command, the child's steps, exec.
//!
//! Both are made with `CLONE_VM`: they cost the same whatever the size of the runner. The calling
//! thread waits until the program is executed or the launch has failed; until then they share the
//! runner's memory, so they take raw steps on prepared data only. The command confines itself; no
//! thread of the runner is ever confined.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::AtomicI32;

use nix::sys::socket::{setsockopt, sockopt::PassCred};

use crate::backend::Prepared;
use crate::channel::{Channel, status_channel};
use crate::child::{Child, Strings, child_main};
use crate::image::ExecImage;
use crate::reaper::{Reaper, reaper_main};
use crate::running::{Launched, Memory};
use crate::shared::Shared;
use crate::stack::{Stack, clone_onto};
use crate::task::{Attempt, Launch, Task};
use crate::told::{LaunchError, Told, Tried, blocking_signals, unstarted};
use crate::{Boundary, Containment, descriptor, through};

/// Starts a command inside the boundary, and a reaper that it cannot outlive.
///
/// The run ends with the calling thread, which must therefore stay until then.
///
/// # Errors
/// [`LaunchError`]; but for [`Interrupted`](LaunchError::Interrupted) the command has then not run. No process
/// is left.
pub fn launch(prepared: &Prepared, launch: &Launch<'_>, image: &ExecImage) -> Result<Launched, LaunchError> {
    let boundary = match prepared {
        Prepared::Direct(boundary) => boundary.as_ref(),
        Prepared::Through(through) => return through::launch(through, launch, image),
    };
    let (read, write) = status_channel()?;
    // The kernel then says who sent a record, under the number that the runner knows it by (unix(7)).
    setsockopt(&read, PassCred, &true).map_err(io::Error::from)?;
    let strings = Strings::new(image);
    let stacks = [Stack::new()?, Stack::new()?];
    let shared = Arc::new(Shared::new());
    let namespaces = boundary.clone_flags();
    let containment = if namespaces & libc::CLONE_NEWPID == 0 {
        Containment::Subreaper
    } else {
        Containment::PidNamespace
    };
    let reaper = Reaper {
        child: Child {
            boundary,
            launch,
            task: Task::Exec(image),
            strings,
            status: write.as_raw_fd(),
            parent: AtomicI32::new(0),
        },
        stack: stacks[1].top(),
        shared: Arc::as_ptr(&shared),
        namespace: containment == Containment::PidNamespace,
    };
    let channel = Channel::new(read);
    let started = blocking_signals(|| {
        let flags = libc::CLONE_VM | namespaces;
        let started = clone_onto(&stacks[0], flags, reaper_main, &reaper, Some(shared.gate()))?;
        // Until then the reaper uses what stands in this frame.
        shared.wait();
        Ok(started)
    })?;
    let (pid, pidfd) = started.map_err(unstarted)?;
    let memory = Memory {
        stacks: Some(stacks),
        shared,
    };
    drop(write);
    let told = Told::of(&channel);
    let mut launched = Launched::new(pid, pidfd, channel, memory, containment);
    launched.command = told.sender;
    launched.listener = told.check()?;
    Ok(launched)
}

/// Starts a child that enters the boundary and tries it, and waits for its end.
///
/// # Errors
/// [`LaunchError`] when the boundary did not stand; no process is left in any case.
pub fn attempt(boundary: &dyn Boundary, launch: &Launch<'_>, attempts: &dyn Attempt) -> Result<Tried, LaunchError> {
    let (read, write) = status_channel()?;
    let stack = Stack::new()?;
    let namespaces = boundary.clone_flags();
    let in_own = namespaces & libc::CLONE_NEWPID != 0;
    let child = Child {
        boundary,
        launch,
        task: Task::Try(attempts),
        strings: Strings::default(),
        status: write.as_raw_fd(),
        // A parent outside the namespace has no number in it (pid_namespaces(7)).
        parent: AtomicI32::new(if in_own { 0 } else { nix::unistd::getpid().as_raw() }),
    };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | namespaces;
    let (_, pidfd) = blocking_signals(|| clone_onto(&stack, flags, child_main, &child, None))?.map_err(unstarted)?;
    drop(write);
    // It has ended: all records are there.
    let told = Told::of(&Channel::new(read));
    let _ = descriptor::signal(pidfd.as_fd(), libc::SIGKILL);
    let _ = descriptor::wait_for(pidfd.as_fd(), true);
    let attempts = told.tried.clone();
    let listener = told.check()?;
    Ok(Tried { attempts, listener })
}
