//! Ringfence runs a command so that it can change only the files it was meant to change, and then
//! tells the truth about that run.
//!
//! The ideas, in the order in which a run meets them:
//!
//! * a [`SandboxMode`] says what may change; [`policy::resolve`] turns it, the workspace root and
//!   what the deployment adds into a complete and immutable [`SandboxExecutionPolicy`];
//! * [`selection`] finds a backend that this host can use and that meets the policy, or refuses;
//! * [`Runner`] starts the command inside the boundary, waits, stops and reads it;
//! * a [`RunReport`] tells each fact by itself, and an [`Error`] says that no command ran.
#![forbid(unsafe_code)]

pub mod approval;
pub mod audit;
mod bytes;
pub mod config;
pub mod error;
pub mod evidence;
pub mod exec;
pub mod facts;
mod ids;
mod paths;
pub mod policy;
pub mod profile;
pub mod retry;
mod runs;
pub mod selection;
pub mod session;
mod state;
mod tables;
pub mod visible;

pub use error::{Error, ErrorCode, ErrorReport};
pub use exec::background::{Background, Lifetime, Status};
pub use exec::limits::Resource;
pub use exec::managed::{Contributor, ManagedEnv, ManagedEnvError, Variable};
pub use exec::{Abort, Capture, Event, Evidence, ExecRequest, ExecSpec, Input, Runner, launcher};
pub use facts::{Denied, Exit, RunReport, SandboxFacts};
pub use policy::{Deployment, PolicyError, SessionPolicy, Surroundings, resolve};
pub use ringfence_backend::{
    BackendId, Containment, Coverage, Door, Effect, Enforcement, PinnedPath, Require, SandboxExecutionPolicy,
    SandboxMode, Temp, WorkspaceRoot,
};
