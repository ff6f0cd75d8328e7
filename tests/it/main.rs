//! The program from outside: real commands, a real kernel, and the state of the disk afterwards.
//!
//! Every case runs in a fresh world of its own, outside the temp area, once as each user that the
//! harness can be: as root and as nobody when it is root, else as its own user. Nothing is skipped:
//! a tool that is missing is a failure that names it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod approvals;
mod attacks;
mod audit;
mod config;
mod containment;
mod doctor;
mod doors;
mod environment;
mod escapes;
mod evidence;
mod explain;
mod exports;
mod hosts;
mod input;
mod kernel_log;
mod library;
mod limits;
mod long_commands;
mod modes;
mod odd_paths;
mod output;
mod passthrough;
mod privilege;
mod protected;
mod retry;
mod runner;
mod session;
mod stdin;
mod streams;
mod support;
mod terminal;
mod time;
mod tools;
mod ways;
