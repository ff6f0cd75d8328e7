//! The words that bubblewrap is started with.
//!
//! Only options that version 0.4.1 has are used; whether they do what they say is for the launcher to see.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_backend::{PlanStep, PrepareError};

/// What bubblewrap makes anew for a run, writable at first.
pub(crate) const OWN: [&str; 2] = ["/dev", "/proc"];

/// The nodes that bubblewrap shows in a /dev of its own, each on a mount of its own. It has no option that
/// makes those read-only and leaves the devices open.
pub(crate) const NODES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// The program of these steps.
pub(crate) fn program(steps: &[PlanStep]) -> Result<CString, PrepareError> {
    let program = steps.iter().find_map(|step| match step {
        PlanStep::Bubblewrap { program, .. } => Some(program),
        _ => None,
    });
    let program = program.map(|path| path.as_os_str().as_bytes()).unwrap_or_default();
    CString::new(program).map_err(|e| PrepareError {
        what: "the path of bubblewrap".to_owned(),
        source: e.into(),
    })
}

/// The words, each ended by a NUL byte, as `--args` reads them.
///
/// # Errors
/// [`PrepareError`] for a path with a NUL byte, which there is none of.
pub(crate) fn words(steps: &[PlanStep]) -> Result<Vec<u8>, PrepareError> {
    let mut bytes = Vec::new();
    for word in list(steps) {
        let word = word.as_os_str().as_bytes();
        if word.contains(&0) {
            return Err(PrepareError {
                what: format!("the path {}", String::from_utf8_lossy(word)),
                source: std::io::ErrorKind::InvalidInput.into(),
            });
        }
        bytes.extend_from_slice(word);
        bytes.push(0);
    }
    Ok(bytes)
}

/// One line for each option, for people.
pub(crate) fn shown(steps: &[PlanStep]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in list(steps) {
        let text = word.display().to_string();
        match lines.last_mut() {
            Some(line) if !text.starts_with("--") => *line = format!("{line} {text}"),
            _ => lines.push(text),
        }
    }
    lines
}

/// The words in order: a later mount lies over an earlier one.
fn list(steps: &[PlanStep]) -> Vec<PathBuf> {
    let mut list = Words(Vec::new());
    for option in [
        "--unshare-pid",
        "--as-pid-1",
        "--die-with-parent",
        "--cap-drop",
        "ALL",
        "--chdir",
        "/",
    ] {
        list.word(option);
    }
    let sealed = steps
        .iter()
        .any(|step| matches!(step, PlanStep::Bubblewrap { sealed: true, .. }));
    if steps.contains(&PlanStep::UserNamespace) {
        // Root without the right to mount has to be told that one would give it that.
        list.word("--unshare-user");
    }
    if sealed {
        // For the launcher alone, until it has sealed what it stands in.
        list.word("--cap-add");
        list.word("CAP_SYS_ADMIN");
    }
    let opened = steps
        .iter()
        .any(|step| matches!(step, PlanStep::Writable(root) if root.path() == Path::new("/")));
    list.mount(
        if opened { "--bind" } else { "--ro-bind" },
        Path::new("/"),
        Path::new("/"),
    );
    list.word("--dev");
    list.word("/dev");
    list.word("--proc");
    list.word("/proc");
    let devices = steps.iter().filter_map(|step| match step {
        PlanStep::ShownDevice { device, at } => Some((device.as_path(), at.as_path())),
        _ => None,
    });
    for (device, at) in devices {
        list.mount("--dev-bind", device, at);
    }
    // Sealing does it with one call each; for each option bubblewrap reads the whole table of mounts again.
    for own in OWN.into_iter().filter(|_| !sealed) {
        list.word("--remount-ro");
        list.word(own);
    }
    for step in steps {
        match step {
            PlanStep::Writable(root) if root.path() != Path::new("/") => list.mount("--bind", root.path(), root.path()),
            PlanStep::Held(path) => list.mount("--bind", path.path(), path.path()),
            PlanStep::Shown { from, at } => list.mount("--bind", from.path(), at),
            PlanStep::Protected(path) => list.mount("--ro-bind", path.path(), path.path()),
            PlanStep::Replaced { by, at } => list.mount("--ro-bind", by.path(), at),
            _ => {}
        }
    }
    list.0
}

struct Words(Vec<PathBuf>);

impl Words {
    fn word(&mut self, word: impl Into<PathBuf>) {
        self.0.push(word.into());
    }

    fn mount(&mut self, option: &str, from: &Path, at: &Path) {
        self.word(option);
        self.word(from);
        self.word(at);
    }
}
