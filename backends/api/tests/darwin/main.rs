//! The launch of macOS, on whatever system this is, with a stand-in for `sandbox-exec`: a script of the
//! same command line that writes down the profile it was given, and confines nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod end;
mod setup;
mod world;
