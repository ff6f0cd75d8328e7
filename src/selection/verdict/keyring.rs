//! Verdicts that outlive a process: which layers were proved on this boot by this program.
//!
//! Only full coverage by all layers is remembered: a host that gave less may give more to the next caller. A word
//! that is no longer true makes a launch fail; then it is forgotten, and the host is asked again.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::MetadataExt;

use ringfence_backend::{Backend, BackendId, Enforcement, HostSupport, keyring};

fn name(backend: BackendId) -> Option<CString> {
    CString::new(format!("ringfence:verdict:{backend}")).ok()
}

/// What a verdict depends on besides the boot and the user, whose keyring it is in: this program.
fn key() -> Option<String> {
    let program = fs::metadata("/proc/self/exe").ok()?;
    Some(format!(
        "{}:{}:{}:{}",
        program.dev(),
        program.ino(),
        program.size(),
        program.mtime()
    ))
}

/// The support that was proved before, if nothing it depends on has changed.
pub(in crate::selection) fn recall(backend: &dyn Backend) -> Option<HostSupport> {
    let text = keyring::kept(&name(backend.id())?)?;
    let (remembered, layers) = text.split_once('\n')?;
    let host = (remembered == key()?).then(|| backend.recall(layers)).flatten()?;
    (host.coverage.enforcement() == Enforcement::Full).then_some(host)
}

/// Remembers full coverage. Not being able to is no fault: the next process asks the host again.
pub(in crate::selection) fn remember(backend: &dyn Backend, host: &HostSupport) {
    let complete = host.coverage.enforcement() == Enforcement::Full && host.missing.is_empty();
    if let (true, Some(key), Some(name)) = (complete, key(), name(backend.id())) {
        let _ = keyring::keep(&name, &format!("{key}\n{}", host.layers));
    }
}

/// Forgets what was remembered.
pub(in crate::selection) fn forget(backend: BackendId) {
    if let Some(name) = name(backend) {
        keyring::forget(&name);
    }
}
