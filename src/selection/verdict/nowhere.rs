//! Nothing outlives a process: each asks the host itself.

use ringfence_backend::{Backend, BackendId, HostSupport};

/// Nothing.
pub(in crate::selection) const fn recall(_backend: &dyn Backend) -> Option<HostSupport> {
    None
}

/// Remembers nothing.
pub(in crate::selection) const fn remember(_backend: &dyn Backend, _host: &HostSupport) {}

/// Has nothing to forget.
pub(in crate::selection) const fn forget(_backend: BackendId) {}
