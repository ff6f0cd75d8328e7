//! The sources of Linux: the calls themselves, and the kernel's log.

pub(crate) mod accelerator;
mod bounds;
mod caller;
mod emulate;
mod judgement;
mod kernel_log;
mod ledger;
mod patch;
mod permission;
mod place;
mod resolve;
mod shortcut;
mod supervisor;
mod walk;

pub(crate) use kernel_log::KernelLog;
pub(crate) use supervisor::Supervisor;
