//! The beginning of a program that starts runs.

use std::ffi::OsString;

/// Does what this program was started for if a run started it, and gives the status to exit with.
///
/// On macOS two processes of the host's own program stand between it and each command. A host calls this
/// first in its `main`, before there is a second thread, with the words that it was started with, and
/// exits when it gets a status; without it no run is started. Elsewhere it does nothing.
///
/// ```no_run
/// let words: Vec<_> = std::env::args_os().collect();
/// if let Some(status) = ringfence::enter(&words) {
///     std::process::exit(status.into());
/// }
/// ```
#[must_use]
pub fn enter(words: &[OsString]) -> Option<u8> {
    #[cfg(target_os = "macos")]
    return ringfence_backend::darwin::enter(words);
    #[cfg(not(target_os = "macos"))]
    {
        let _ = words;
        None
    }
}
