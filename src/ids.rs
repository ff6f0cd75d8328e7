//! Names that nobody chose: for runs, and for what belongs to them.

use ringfence_backend::descriptor;

/// A new name: a UUID of version 7 (RFC 9562), which sorts by time.
#[must_use]
pub fn new_run_id() -> String {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    at(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A new name of the moment that is so many milliseconds after 1970.
pub(crate) fn at(millis: u64) -> String {
    // The kernel gives random bytes from early in its boot on; a name need not be a secret.
    let random = descriptor::random().unwrap_or_default();
    uuid::Builder::from_unix_timestamp_millis(millis, &random)
        .into_uuid()
        .to_string()
}
