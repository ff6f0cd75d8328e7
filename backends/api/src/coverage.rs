//! Which file effects a host governs, and what is said of the rest.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A class of file effects, in the words of a report's `ungoverned`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Opening for writing and creating files.
    Content,
    /// Removing, renaming, linking, and making directories and nodes.
    Tree,
    /// truncate(2) and `O_TRUNC`.
    Truncate,
    /// Writing to device nodes, wherever they stand.
    Devices,
    /// ioctl(2) on devices.
    DeviceIoctl,
    /// Mode bits, owner, times, extended attributes, inode flags.
    Metadata,
    /// What a descriptor can do that the caller opened before the run and handed on.
    InheritedDescriptors,
    /// Writing through another process: ptrace(2), `/proc/PID/mem`.
    ProcessMemory,
    /// Paths inside a writable root that the policy protects.
    ProtectedPaths,
}

impl Effect {
    /// The word for it in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Tree => "tree",
            Self::Truncate => "truncate",
            Self::Devices => "devices",
            Self::DeviceIoctl => "device-ioctl",
            Self::Metadata => "metadata",
            Self::InheritedDescriptors => "inherited-descriptors",
            Self::ProcessMemory => "process-memory",
            Self::ProtectedPaths => "protected-paths",
        }
    }
}

/// The classes of file effects that are governed. What is not in the set is open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage(BTreeSet<Effect>);

impl Coverage {
    /// The classes that every confining mode promises.
    pub const PROMISED: [Effect; 9] = [
        Effect::Content,
        Effect::Tree,
        Effect::Truncate,
        Effect::Devices,
        Effect::DeviceIoctl,
        Effect::Metadata,
        Effect::InheritedDescriptors,
        Effect::ProcessMemory,
        Effect::ProtectedPaths,
    ];

    /// Nothing governed.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a class when `governed` holds.
    #[must_use]
    pub fn with(mut self, effect: Effect, governed: bool) -> Self {
        if governed {
            self.0.insert(effect);
        }
        self
    }

    /// Takes a class out when `open` holds.
    #[must_use]
    pub fn without(mut self, effect: Effect, open: bool) -> Self {
        if open {
            self.0.remove(&effect);
        }
        self
    }

    /// Whether a class is governed.
    #[must_use]
    pub fn governs(&self, effect: Effect) -> bool {
        self.0.contains(&effect)
    }

    /// What this amounts to: full exactly when nothing that was promised is left open.
    #[must_use]
    pub fn enforcement(&self) -> Enforcement {
        let ungoverned: BTreeSet<Effect> = Self::PROMISED
            .into_iter()
            .filter(|effect| !self.governs(*effect))
            .collect();
        if ungoverned.is_empty() {
            Enforcement::Full
        } else {
            Enforcement::Partial { ungoverned }
        }
    }
}

/// How completely the host enforces a mode. Computed from a [`Coverage`], never asserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// Every file effect is governed.
    Full,
    /// Some are; the rest is named.
    Partial {
        /// The classes that are left open.
        ungoverned: BTreeSet<Effect>,
    },
}

/// A way out of the run that a mode does not speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Door {
    /// Sockets of the Internet families.
    Network,
    /// Sockets of the `AF_UNIX` family, and the brokers behind them.
    UnixSockets,
    /// Signals to processes outside the run.
    Signals,
    /// Seeing the processes outside the run.
    ProcessVisibility,
    /// Services of macOS that are reached by Mach messages and act for whoever asks them.
    MachServices,
}

impl Door {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::UnixSockets => "unix-sockets",
            Self::Signals => "signals",
            Self::ProcessVisibility => "process-visibility",
            Self::MachServices => "mach-services",
        }
    }
}

/// The means by which no process of a run outlives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum Containment {
    /// A PID namespace, which the kernel ends with its first process.
    #[serde(rename = "pidns")]
    PidNamespace,
    /// A child subreaper, to which every process of the run comes whose parent has ended.
    #[serde(rename = "subreaper")]
    Subreaper,
    /// A session or process group of the run's own. Who makes another for itself, and loses its parent,
    /// is lost.
    #[serde(rename = "process-group")]
    ProcessGroup,
    /// The table of processes, from the command down. Who loses its parent is lost.
    #[serde(rename = "descendants")]
    Descendants,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enforcement_is_full_only_when_every_promised_effect_is_governed() {
        let full = Coverage::PROMISED
            .into_iter()
            .fold(Coverage::none(), |sum, effect| sum.with(effect, true));
        assert_eq!(full.enforcement(), Enforcement::Full);
        for effect in Coverage::PROMISED {
            let open = full.clone().without(effect, true);
            assert_eq!(
                open.enforcement(),
                Enforcement::Partial {
                    ungoverned: BTreeSet::from([effect])
                }
            );
        }
    }

    #[test]
    fn nothing_governed_is_not_full() {
        assert_ne!(Coverage::none().enforcement(), Enforcement::Full);
    }
}
