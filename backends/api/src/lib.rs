//! What Ringfence and its backends say to one another.
//!
//! A backend knows this crate and nothing else of the project: neither the product on top nor
//! another backend. The order of a run is the order of the modules: a complete
//! [`SandboxExecutionPolicy`] is put to a [`Backend`], which answers with a [`LaunchPlan`] (pure
//! data), from which it prepares a [`Boundary`] (open descriptors, compiled filters), which the
//! command and its parent enter inside [`launch()`], telling the runner over the [`status`] channel.
#![deny(unsafe_code)]

mod backend;
#[cfg(target_os = "linux")]
pub mod calls;
#[cfg(target_os = "linux")]
mod channel;
#[cfg(target_os = "linux")]
mod child;
#[cfg(all(feature = "conformance", target_os = "linux"))]
pub mod conformance;
mod coverage;
#[cfg(any(target_os = "macos", feature = "stand-in"))]
pub mod darwin;
#[cfg(target_os = "linux")]
pub mod descriptor;
#[cfg(not(target_os = "linux"))]
#[path = "darwin/descriptor.rs"]
pub mod descriptor;
mod host_temp;
mod image;
#[cfg(target_os = "linux")]
pub mod keyring;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod launcher;
#[cfg(target_os = "linux")]
mod left;
mod limit;
#[cfg(target_os = "linux")]
mod listener;
#[cfg(target_os = "linux")]
mod maker;
mod mode;
#[cfg(target_os = "linux")]
pub mod mounts;
#[cfg(target_os = "linux")]
mod order;
#[cfg(target_os = "linux")]
mod outside;
mod pinned;
mod plan;
mod policy;
#[cfg(target_os = "linux")]
mod raw;
#[cfg(target_os = "linux")]
mod reaper;
#[cfg(target_os = "linux")]
mod running;
#[cfg(target_os = "linux")]
mod shared;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod stack;
pub mod status;
mod task;
#[cfg(target_os = "linux")]
mod through;
#[cfg(target_os = "linux")]
mod told;

#[cfg(target_os = "linux")]
pub use backend::Through;
pub use backend::{
    Backend, BackendId, Boundary, HostSupport, Missing, PlanError, PrepareError, Prepared, Probe, UnknownBackend,
};
pub use coverage::{Containment, Coverage, Door, Effect, Enforcement};
#[cfg(target_os = "macos")]
pub use darwin::{LaunchError, Launched, Listener, launch};
pub use host_temp::{HOST_TEMP, user_temp};
pub use image::{ExecImage, ImageError, PinnedProgram};
#[cfg(target_os = "linux")]
pub use launch::{attempt, launch};
#[cfg(target_os = "linux")]
pub use launcher::{LAUNCHER, Launcher, is_launcher, serve_as_launcher, serves_as_launcher};
pub use limit::{ChildLimit, current_limit};
#[cfg(target_os = "linux")]
pub use listener::{Answer, Listener, Notification};
pub use mode::{SandboxMode, UnknownMode};
pub use pinned::{FileId, PinnedPath, WorkspaceRoot};
pub use plan::{Accelerator, CommandSpec, LandlockRule, LaunchPlan, Observe, PlanStep, StdioKind};
pub use policy::{PolicyParts, PolicyShape, Protected, Require, SandboxExecutionPolicy, Temp};
#[cfg(target_os = "linux")]
pub use running::Launched;
#[cfg(target_os = "linux")]
pub use task::Attempt;
pub use task::{ChildStdio, Launch, Session};
#[cfg(target_os = "linux")]
pub use through::attempt_through;
#[cfg(target_os = "linux")]
pub use told::{LaunchError, Tried};
