//! The program `ringfence`: reads the command line and hands over to a subcommand.
#![deny(unsafe_code)]
#![no_main]

mod cli;

use std::ffi::{c_char, c_int};

/// Where the C library enters the program.
///
/// The entry of the standard library would first look for the guard page of the stack by reading
/// and parsing /proc/self/maps. That is a twentieth of what a short run takes, and nothing here
/// depends on it (docs/adr/0006-static-program.md).
#[allow(
    unsafe_code,
    reason = "the entry point has to have this name, and nothing else has it"
)]
#[unsafe(no_mangle)]
pub extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    #[cfg(target_os = "linux")]
    ringfence_backend::descriptor::prepare_process();
    c_int::from(cli::main(std::env::args_os().collect()))
}
