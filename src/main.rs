//! The program `ringfence`: reads the command line and hands over to a subcommand.
#![deny(unsafe_code)]
#![cfg_attr(not(test), no_main)]

// Tests have an entry of their own and reach the parts from there.
#[cfg_attr(test, allow(dead_code))]
mod cli;

/// Where the C library enters the program.
///
/// The entry of the standard library would first look for the guard page of the stack by reading
/// and parsing /proc/self/maps. That is a twentieth of what a short run takes, and nothing here
/// depends on it (docs/adr/0006-static-program.md).
#[cfg(not(test))]
#[allow(
    unsafe_code,
    reason = "the entry point has to have this name, and nothing else has it"
)]
#[unsafe(no_mangle)]
pub extern "C" fn main(_count: std::ffi::c_int, _arguments: *const *const std::ffi::c_char) -> std::ffi::c_int {
    ringfence_backend::descriptor::prepare_process();
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(status) = ringfence::enter(&words) {
        return std::ffi::c_int::from(status);
    }
    std::ffi::c_int::from(cli::main(words))
}
