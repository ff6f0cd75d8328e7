//! Where a host keeps temporary files.
#![cfg_attr(target_os = "macos", allow(unsafe_code))]

use std::path::PathBuf;

/// Where a host keeps temporary files, besides `$TMPDIR` and [`user_temp`]. Every run in
/// `workspace-write` may write there unless it is told otherwise.
#[cfg(not(target_os = "macos"))]
pub const HOST_TEMP: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Where a host keeps temporary files, besides `$TMPDIR` and [`user_temp`]. Every run in
/// `workspace-write` may write there unless it is told otherwise. In their canonical form: `/tmp` and
/// `/var` are links.
#[cfg(target_os = "macos")]
pub const HOST_TEMP: [&str; 2] = ["/private/tmp", "/private/var/tmp"];

/// The user's own temp directory, on a system that has one (confstr(3), `_CS_DARWIN_USER_TEMP_DIR`).
#[cfg(not(target_os = "macos"))]
#[must_use]
pub const fn user_temp() -> Option<PathBuf> {
    None
}

/// The user's own temp directory, on a system that has one (confstr(3), `_CS_DARWIN_USER_TEMP_DIR`).
#[cfg(target_os = "macos")]
#[must_use]
pub fn user_temp() -> Option<PathBuf> {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = vec![0; 1024];
    // SAFETY: fills a live buffer of the given length, and ends what it writes with a NUL byte.
    let length = unsafe { libc::confstr(libc::_CS_DARWIN_USER_TEMP_DIR, bytes.as_mut_ptr().cast(), bytes.len()) };
    // The length counts the NUL byte; one that is longer than the buffer was cut off.
    if length < 2 || length > bytes.len() {
        return None;
    }
    bytes.truncate(length - 1);
    Some(PathBuf::from(OsString::from_vec(bytes)))
}
