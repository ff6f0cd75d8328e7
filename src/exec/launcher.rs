//! Serving as a launcher, for the programs that this library is part of.

use std::ffi::OsString;

/// To be called first of all in `main`, before any thread is started, with the program's words.
///
/// A backend that has another program make the boundary (`bwrap`, `seatbelt`) starts this program once more inside it,
/// to complete the boundary and to start the command from there. In that case the run takes place in
/// here, and the result is the status to exit with. Otherwise it is `None`: the program goes on as itself,
/// and such backends can be used from then on. A program that does not call this would start once more as
/// itself, so those backends then say that they are not usable.
///
/// ```no_run
/// let words: Vec<_> = std::env::args_os().collect();
/// if let Some(status) = ringfence::launcher(&words) {
///     std::process::exit(status.into());
/// }
/// ```
#[must_use]
pub fn launcher(words: &[OsString]) -> Option<u8> {
    #[cfg(target_os = "linux")]
    {
        if ringfence_backend::is_launcher(words) {
            return Some(ringfence_bwrap::serve(words));
        }
        ringfence_backend::serve_as_launcher();
    }
    #[cfg(target_os = "macos")]
    if let Some(status) = ringfence_backend::darwin::enter(words) {
        return Some(status);
    }
    None
}
