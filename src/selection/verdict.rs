//! Verdicts that outlive a process: which layers were proved on this boot, kernel and program.
//!
//! Only full coverage is remembered: a host that gave less may give more to the next caller. What
//! is remembered is the word for the layers and nothing that could weaken a boundary; a wrong
//! word makes a launch fail, and then it is forgotten and the host is asked again.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use ringfence_backend::{Backend, BackendId, Enforcement, HostSupport};

fn file(dir: &Path, backend: BackendId) -> PathBuf {
    dir.join(format!("verdict-{backend}"))
}

/// What a verdict depends on: the boot, the kernel, this program, and who runs it.
fn key() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let kernel = nix::sys::utsname::uname().ok()?;
    let program = fs::metadata("/proc/self/exe").ok()?;
    Some(format!(
        "{} {} {}:{}:{}:{} {}",
        boot.trim(),
        kernel.release().to_string_lossy(),
        program.dev(),
        program.ino(),
        program.size(),
        program.mtime(),
        nix::unistd::geteuid(),
    ))
}

/// The support that was proved before, if nothing it depends on has changed.
pub(super) fn recall(dir: &Path, backend: &dyn Backend) -> Option<HostSupport> {
    let path = file(dir, backend.id());
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = fs::File::options().read(true).custom_flags(flags).open(path).ok()?;
    let about = file.metadata().ok()?;
    let others_may_write = about.mode() & 0o022 != 0;
    if !about.is_file() || others_may_write || about.uid() != nix::unistd::geteuid().as_raw() {
        return None;
    }
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text).ok()?;
    let (remembered, layers) = text.trim_end().split_once('\n')?;
    if remembered != key()? {
        return None;
    }
    backend.recall(layers)
}

/// Remembers full coverage. Not being able to is no fault: the next process asks the host again.
pub(super) fn remember(dir: &Path, backend: &dyn Backend, host: &HostSupport) {
    if host.coverage.enforcement() != Enforcement::Full {
        return;
    }
    let Some(key) = key() else { return };
    let written = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .and_then(|()| tempfile::Builder::new().prefix(".verdict-").tempfile_in(dir))
        .and_then(|mut temp| writeln!(temp, "{key}\n{}", host.layers).map(|()| temp));
    if let Ok(temp) = written {
        let _ = temp.persist(file(dir, backend.id()));
    }
}

/// Forgets what was remembered.
pub(super) fn forget(dir: &Path, backend: BackendId) {
    let _ = fs::remove_file(file(dir, backend));
}
