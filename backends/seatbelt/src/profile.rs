//! The text of a profile.
//!
//! Of all rules that speak of an operation and a path, the last one decides. So everything is allowed
//! first, then every change of a file is refused, then what may change is allowed, and what must not
//! is refused once more.

use std::collections::BTreeSet;
use std::path::Path;

use ringfence_backend::Door;

use crate::literal;

#[cfg(test)]
mod evaluator;
#[cfg(test)]
mod tests;

/// What changes files, in words that every release since macOS 14 knows. `file-write*` is the family
/// of content, names and metadata; the others are no part of it, and are refused by their own names
/// because version 1 of the language allows some of them whatever a family says.
const CHANGES: [&str; 11] = [
    "file-write*",
    "file-link",
    "file-mknod",
    "file-mount",
    "file-mount-update",
    "file-unmount",
    "file-chroot",
    "fs-snapshot-create",
    "fs-snapshot-delete",
    "fs-snapshot-mount",
    "fs-snapshot-revert",
];
/// More of them, which only some releases know. A word that is not known spoils the whole profile.
const RECENT_CHANGES: [&str; 3] = ["file-graft", "file-ungraft", "fs-rename"];

/// Device nodes that change no file of the host, and terminals.
const DEVICES: [&str; 7] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
];
/// The terminals that have a number.
const TERMINALS: &str = r#"(regex #"^/dev/ttys[0-9]+$")"#;

/// Where the system looks up names for whoever asks: a way to the network.
const RESOLVER: &str = "/private/var/run/mDNSResponder";

/// A path, and what it is in the policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    /// In words.
    pub(crate) field: &'static str,
    /// Canonical.
    pub(crate) path: &'a Path,
}

/// What a profile is made of.
#[derive(Debug, Default)]
pub(crate) struct Rules<'a> {
    /// Directories beneath which everything may change.
    pub(crate) trees: Vec<Named<'a>>,
    /// Files that may change.
    pub(crate) files: Vec<Named<'a>>,
    /// What stays as it is inside them.
    pub(crate) protected: Vec<Named<'a>>,
    /// The directories above that, inside the trees.
    pub(crate) held: Vec<Named<'a>>,
    /// Doors that are closed.
    pub(crate) closed: BTreeSet<Door>,
}

/// A path that no rule can name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unnameable<'a> {
    pub(crate) field: &'static str,
    pub(crate) path: &'a Path,
    pub(crate) reason: &'static str,
}

/// Writes the profile.
///
/// # Errors
/// [`Unnameable`] for the first path that cannot be named.
pub(crate) fn text<'a>(rules: &Rules<'a>) -> Result<String, Unnameable<'a>> {
    let mut lines = vec!["(version 1)".to_owned(), "(allow default)".to_owned()];
    lines.push(format!("(deny {})", CHANGES.join(" ")));
    lines.extend(RECENT_CHANGES.map(|word| format!("(when (defined? '{word}) (deny {word}))")));
    // Who has the port of a process can write its memory, and act as that process.
    lines.push("(deny mach-priv-task-port)".to_owned());
    lines.push("(allow mach-priv-task-port (target same-sandbox))".to_owned());
    for tree in &rules.trees {
        let literal = literal(*tree)?;
        lines.push(format!("(allow file-write* file-link (subpath {literal}))"));
    }
    for file in &rules.files {
        let literal = literal(*file)?;
        lines.push(format!("(allow file-write* (literal {literal}))"));
    }
    // A root that is exchanged for something else, or moved into another, would take its rules along.
    for root in rules.trees.iter().chain(&rules.files) {
        lines.push(stays(&literal(*root)?));
    }
    // Nodes inside the roots included.
    lines.push("(deny file-write-data file-ioctl (vnode-type BLOCK-DEVICE) (vnode-type CHARACTER-DEVICE))".to_owned());
    let devices = DEVICES.map(|path| format!("(literal \"{path}\")")).join(" ");
    lines.push(format!("(allow file-write-data file-ioctl {devices} {TERMINALS})"));
    for path in &rules.protected {
        let literal = literal(*path)?;
        lines.push(format!(
            "(deny file-write* file-link (literal {literal}) (subpath {literal}))"
        ));
    }
    for directory in &rules.held {
        lines.push(stays(&literal(*directory)?));
    }
    lines.extend(sockets(&rules.closed));
    lines.push(String::new());
    Ok(lines.join("\n"))
}

/// The rules by which a program stays what and where it is, whatever the rules before them say.
///
/// # Errors
/// [`Unnameable`] when the path cannot be named.
#[cfg(any(target_os = "macos", test))]
pub(crate) fn keeping(program: &Path) -> Result<String, Unnameable<'_>> {
    let named = |path| Named {
        field: "program of Ringfence",
        path,
    };
    let mut lines = vec![format!(
        "(deny file-write* file-link (literal {}))",
        literal(named(program))?
    )];
    for above in program.ancestors().skip(1) {
        lines.push(stays(&literal(named(above))?));
    }
    lines.push(String::new());
    Ok(lines.join("\n"))
}

fn literal(named: Named<'_>) -> Result<String, Unnameable<'_>> {
    let Named { field, path } = named;
    literal::of(path).map_err(|reason| Unnameable { field, path, reason })
}

/// The rule by which a name is neither taken away nor given to something else. To rename is to remove
/// one name and to make another.
fn stays(literal: &str) -> String {
    format!("(deny file-write-unlink file-write-create (literal {literal}))")
}

/// The rules for doors that are closed.
fn sockets(closed: &BTreeSet<Door>) -> Vec<String> {
    const ALL: &str = "network* network-bind network-inbound network-outbound";
    const UNIX: [&str; 3] = [
        "network-bind (local unix-socket)",
        "network-inbound (local unix-socket)",
        "network-outbound (remote unix-socket)",
    ];
    match (closed.contains(&Door::Network), closed.contains(&Door::UnixSockets)) {
        (false, false) => Vec::new(),
        (false, true) => UNIX.map(|rule| format!("(deny {rule})")).into(),
        (true, true) => vec![format!("(deny {ALL})")],
        // What is no socket of a path is refused, whatever families there are.
        (true, false) => std::iter::once(format!("(deny {ALL})"))
            .chain(UNIX.map(|rule| format!("(allow {rule})")))
            .chain([format!("(deny network-outbound (literal \"{RESOLVER}\"))")])
            .collect(),
    }
}
