//! Why a policy is refused: which field, which value, what is wrong with it, and the way out.

use std::fmt;
use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use ringfence_backend::{Door, PolicyShape, SandboxMode, Temp};

/// What a path of a policy was given as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The directory the run belongs to.
    WorkspaceRoot,
    /// A root that may be written besides the workspace.
    WritableRoot,
    /// A directory of the host's temp area.
    TempDirectory,
    /// The root that an approved grant adds.
    ApprovedRoot,
    /// A path inside a writable root that is to stay as it is.
    ProtectedPath,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WorkspaceRoot => "workspace root",
            Self::WritableRoot => "writable root",
            Self::TempDirectory => "temp directory",
            Self::ApprovedRoot => "approved root",
            Self::ProtectedPath => "protected path",
        })
    }
}

/// What makes a root too broad to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Breadth {
    /// It is `/`.
    WholeFileSystem,
    /// It is the user's home.
    Home,
    /// The user's home lies beneath it.
    AboveHome,
    /// Ringfence's own records lie in or beneath it.
    HoldsState,
}

impl fmt::Display for Breadth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WholeFileSystem => "is the whole file system",
            Self::Home => "is your home directory",
            Self::AboveHome => "holds your home directory",
            Self::HoldsState => "holds Ringfence's own records",
        })
    }
}

/// A policy that contradicts itself, is too broad, or names what is not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A path that cannot be opened.
    #[error("the {field} {path:?} cannot be used: {}", why(source))]
    Unusable {
        /// What it was given as.
        field: Field,
        /// The path as it was given.
        path: PathBuf,
        /// Where it was looked for.
        full: PathBuf,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// A device as a writable root.
    #[error("the writable root {path:?} is a device, and no confining mode lets a command write to one")]
    Device {
        /// The path as it was given.
        path: PathBuf,
    },
    /// A path in the workspace that leads out of it.
    #[error("the {field} {path:?} lies in the workspace and leads out of it, to {leads:?}")]
    LeadsOut {
        /// What it was given as.
        field: Field,
        /// The path as it was given.
        path: PathBuf,
        /// Where it leads.
        leads: PathBuf,
    },
    /// A writable root that would leave next to nothing protected.
    #[error("the {field} {path:?} {breadth}, and a run in workspace-write could change everything in it")]
    TooBroad {
        /// What it was given as.
        field: Field,
        /// The canonical path.
        path: PathBuf,
        /// What makes it too broad.
        breadth: Breadth,
    },
    /// A root beside a mode in which it means nothing.
    #[error("the {field} {path:?} cannot be granted: the mode {mode} has no writable roots")]
    NoWritableRoots {
        /// What it was given as.
        field: Field,
        /// The canonical path.
        path: PathBuf,
        /// The mode in force.
        mode: SandboxMode,
    },
    /// A temp area that the mode cannot have.
    #[error("the temp area `{}` cannot be had in {mode}: {}", word(*temp), contradiction(*mode))]
    TempInMode {
        /// The temp area that was chosen.
        temp: Temp,
        /// The mode in force.
        mode: SandboxMode,
    },
    /// A door that cannot be closed.
    #[error("the door `{}` cannot be closed{}", door.name(), if mode.confines() { String::new() } else { format!(" in {mode}, which confines nothing") })]
    Door {
        /// The door.
        door: Door,
        /// The mode in force.
        mode: SandboxMode,
    },
    /// A mode that the deployment does not allow.
    #[error("the mode {mode} is looser than {ceiling}, the loosest that the deployment allows")]
    AboveCeiling {
        /// The mode.
        mode: SandboxMode,
        /// The loosest mode that is allowed.
        ceiling: SandboxMode,
    },
    /// The parts of the policy do not fit together.
    #[error("the parts of the policy contradict one another: {0}")]
    Shape(#[from] PolicyShape),
}

impl PolicyError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unusable {
                field: Field::WorkspaceRoot,
                ..
            } => "name a directory that exists and that you may enter with --workspace or -C".to_owned(),
            Self::Unusable {
                field: Field::TempDirectory,
                ..
            } => "point TMPDIR at a directory, or unset it".to_owned(),
            Self::Unusable {
                field: Field::ProtectedPath,
                ..
            } => "correct the path, or leave it out".to_owned(),
            Self::Unusable { path, full, .. } => {
                let advice = "create it first or correct the path; only what exists can be granted";
                if path.starts_with("~") {
                    format!("{advice}. A `~` inside a word stays as it is: write \"$HOME\" instead")
                } else if path == full || path.as_os_str().is_empty() {
                    advice.to_owned()
                } else {
                    format!(
                        "{advice}. It was looked for at {}, from the workspace root",
                        full.display()
                    )
                }
            }
            Self::LeadsOut { .. } => {
                "a command of an earlier run may have made that link; name the place itself if you mean it".to_owned()
            }
            Self::Device { .. } => {
                "null, zero, full, random, urandom and the run's own terminal work without being named".to_owned()
            }
            Self::TooBroad { field, breadth, .. } => too_broad(*field, *breadth),
            Self::NoWritableRoots {
                mode: SandboxMode::DangerFullAccess,
                ..
            } => {
                "nothing is confined in this mode; --mode workspace-write lets the run write there and in its workspace"
                    .to_owned()
            }
            Self::NoWritableRoots { .. } => {
                "leave the root out, or use --mode workspace-write, which has writable roots".to_owned()
            }
            Self::TempInMode {
                mode: SandboxMode::DangerFullAccess,
                ..
            } => "use --temp host, or --mode workspace-write with a temp area of its own".to_owned(),
            Self::TempInMode { .. } => {
                "use --temp private: the run gets a directory of its own, removed afterwards".to_owned()
            }
            Self::Door { mode, .. } if mode.confines() => {
                "network and unix-sockets can be closed; the others are closed wherever the host can".to_owned()
            }
            Self::Door { .. } => "use --mode workspace-write or read-only, in which doors can be closed".to_owned(),
            Self::AboveCeiling { ceiling, .. } => format!(
                "run it with --mode {ceiling} or a stricter mode; `ringfence explain` names the file that sets this ceiling"
            ),
            Self::Shape(_) => {
                "name the workspace with --workspace and further roots with --write, in the mode workspace-write"
                    .to_owned()
            }
        }
    }
}

fn too_broad(field: Field, breadth: Breadth) -> String {
    let advice = match field {
        Field::WorkspaceRoot => "choose the project's own directory with --workspace",
        Field::WritableRoot | Field::ApprovedRoot => "name just the file or directory that has to change",
        Field::ProtectedPath => "correct the path",
        Field::TempDirectory => "point TMPDIR at a directory made for temporary files, or use --temp private",
    };
    match breadth {
        // With `/` writable the mode would mean nothing, so that is nothing to recommend.
        Breadth::WholeFileSystem => advice.to_owned(),
        // Who asks for one more root has no option for it, and is not to have one.
        _ if field == Field::ApprovedRoot => advice.to_owned(),
        Breadth::Home | Breadth::AboveHome | Breadth::HoldsState => {
            format!("{advice}; --allow-broad-root accepts a root like this one")
        }
    }
}

/// The operating system's reason, in words that need no table of errors.
fn why(source: &io::Error) -> String {
    let words = match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT) => "it does not exist",
        Some(Errno::ENOTDIR) => "it, or a part of its path, is not a directory",
        Some(Errno::EACCES) => "you may not reach it",
        Some(Errno::ELOOP) => "its symbolic links go round in a circle",
        _ => return source.to_string(),
    };
    words.to_owned()
}

const fn word(temp: Temp) -> &'static str {
    match temp {
        Temp::None => "none",
        Temp::Private => "private",
        Temp::Host => "host",
    }
}

const fn contradiction(mode: SandboxMode) -> &'static str {
    match mode {
        SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite => "that mode changes nothing on the host",
        SandboxMode::DangerFullAccess => "that mode keeps nothing of the host away from the run",
    }
}
