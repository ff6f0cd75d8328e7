//! The three modes and their order.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a run may change. Declared strict to loose, so `>` reads "looser than".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Nothing on the host; a private scratch directory exists for the run.
    ReadOnly,
    /// Everything beneath the workspace root, the temp area and the roots the policy adds.
    WorkspaceWrite,
    /// Everything: nothing is confined and no backend is asked.
    DangerFullAccess,
}

impl SandboxMode {
    /// Every mode, strict to loose.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::WorkspaceWrite, Self::DangerFullAccess];

    /// The mode's name on the command line, in files and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
        }
    }

    /// Whether a backend has to confine anything.
    #[must_use]
    pub const fn confines(self) -> bool {
        !matches!(self, Self::DangerFullAccess)
    }
}

impl fmt::Display for SandboxMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A mode's name that is none of the three.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a mode; the modes are read-only, workspace-write and danger-full-access")]
pub struct UnknownMode(pub String);

impl FromStr for SandboxMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looseness_is_the_order_of_the_modes() {
        assert!(SandboxMode::ReadOnly < SandboxMode::WorkspaceWrite);
        assert!(SandboxMode::WorkspaceWrite < SandboxMode::DangerFullAccess);
    }

    #[test]
    fn a_misspelt_mode_is_an_error_that_names_it() {
        let wrong: Result<SandboxMode, _> = "workspace-wrte".parse();
        assert_eq!(wrong, Err(UnknownMode("workspace-wrte".to_owned())));
    }
}
