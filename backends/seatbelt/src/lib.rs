//! Confinement through `sandbox-exec` (macOS). Not built yet: a run that names this backend is refused.
#![forbid(unsafe_code)]
