//! What one policy opens that another keeps closed.
//!
//! Policies are ordered in part: one is looser than another when it opens something more and closes
//! nothing more. Everything else (stricter, the same, or stricter here and looser there) is no
//! loosening, and nobody is asked about it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use ringfence_backend::{Door, PinnedPath, Require, SandboxExecutionPolicy, SandboxMode, Temp};
use serde::Serialize;

/// Everything that the looser of two policies opens. What is not named here is the same in both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The modes, where they differ.
    pub mode: Option<(SandboxMode, SandboxMode)>,
    /// Roots that become writable.
    pub opened: Vec<PathBuf>,
    /// Paths that are protected no longer.
    pub unprotected: Vec<PathBuf>,
    /// The temp areas, where they differ.
    pub temp: Option<(Temp, Temp)>,
    /// Doors that are closed no longer.
    pub doors: BTreeSet<Door>,
    /// Whether enforcement need no longer be full.
    pub full_no_longer: bool,
}

/// Why a policy is not strictly looser than another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotLooser {
    /// They are the same.
    #[error("it would change nothing")]
    Same,
    /// It keeps something closed that is open now.
    #[error("it would be stricter in {0}")]
    Stricter(&'static str),
    /// They speak of different things.
    #[error("it would have another {0}")]
    Other(&'static str),
}

impl Difference {
    /// What `looser` opens that `standing` keeps closed.
    ///
    /// # Errors
    /// [`NotLooser`] unless it opens something and closes nothing.
    pub fn between(standing: &SandboxExecutionPolicy, looser: &SandboxExecutionPolicy) -> Result<Self, NotLooser> {
        if standing.workspace_root() != looser.workspace_root() {
            return Err(NotLooser::Other("workspace root"));
        }
        if standing.session() != looser.session() {
            return Err(NotLooser::Other("session"));
        }
        let mut found = Self::default();
        match looser.mode().cmp(&standing.mode()) {
            std::cmp::Ordering::Less => return Err(NotLooser::Stricter("its mode")),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => found.mode = Some((standing.mode(), looser.mode())),
        }
        match standing.require().cmp(&looser.require()) {
            std::cmp::Ordering::Less => return Err(NotLooser::Stricter("how complete enforcement must be")),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => found.full_no_longer = looser.require() == Require::Partial,
        }
        // Full access has no roots, doors and protected paths to compare: it opens them all.
        if looser.mode().confines() {
            found.compare(standing, looser)?;
        }
        if found == Self::default() {
            Err(NotLooser::Same)
        } else {
            Ok(found)
        }
    }

    fn compare(&mut self, standing: &SandboxExecutionPolicy, looser: &SandboxExecutionPolicy) -> Result<(), NotLooser> {
        let covered = |roots: &[PinnedPath], root: &PinnedPath| roots.iter().any(|it| root.is_within(it));
        if !standing.writable().iter().all(|root| covered(looser.writable(), root)) {
            return Err(NotLooser::Stricter("its writable roots"));
        }
        let opened = looser
            .writable()
            .iter()
            .filter(|root| !covered(standing.writable(), root));
        self.opened = opened.map(|root| root.path().to_owned()).collect();
        let names = |policy: &SandboxExecutionPolicy| -> BTreeSet<PathBuf> {
            policy.protected().iter().map(|it| it.path.clone()).collect()
        };
        let (before, after) = (names(standing), names(looser));
        // A protected path matters only where something is writable, so one that comes into sight with a new root
        // closes nothing that was open.
        let open_before = |path: &Path| standing.writable().iter().any(|root| path.starts_with(root.path()));
        if after.difference(&before).any(|path| open_before(path)) {
            return Err(NotLooser::Stricter("its protected paths"));
        }
        self.unprotected = before.difference(&after).cloned().collect();
        if looser.closed().difference(standing.closed()).next().is_some() {
            return Err(NotLooser::Stricter("its doors"));
        }
        self.doors = standing.closed().difference(looser.closed()).copied().collect();
        let rank = |temp| match temp {
            Temp::None => 0,
            Temp::Private => 1,
            Temp::Host => 2,
        };
        let (was, is) = (standing.temp(), looser.temp());
        if rank(is) < rank(was) {
            return Err(NotLooser::Stricter("its temp area"));
        }
        self.temp = (was != is).then_some((was, is));
        Ok(())
    }

    /// Whether it is one writable root more and nothing else.
    #[must_use]
    pub fn only_root(&self) -> Option<&Path> {
        let bare = Self {
            opened: self.opened.clone(),
            ..Self::default()
        };
        match self.opened.as_slice() {
            [root] if *self == bare => Some(root),
            _ => None,
        }
    }

    /// The same as a document: `addWrite` for one root more, else `mode` and what comes with it.
    #[must_use]
    pub fn document(&self) -> serde_json::Value {
        #[derive(Serialize)]
        struct Changed<T> {
            from: T,
            to: T,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Document<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            add_write: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            mode: Option<Changed<SandboxMode>>,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            opens: Vec<String>,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            unprotects: Vec<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            temp: Option<Changed<Temp>>,
            #[serde(skip_serializing_if = "BTreeSet::is_empty")]
            doors: &'a BTreeSet<Door>,
            #[serde(skip_serializing_if = "Option::is_none")]
            require: Option<Changed<Require>>,
        }
        let lossy = |path: &PathBuf| path.to_string_lossy().into_owned();
        let alone = self.only_root().map(|root| root.to_string_lossy().into_owned());
        let document = Document {
            opens: if alone.is_some() {
                Vec::new()
            } else {
                self.opened.iter().map(lossy).collect()
            },
            add_write: alone,
            mode: self.mode.map(|(from, to)| Changed { from, to }),
            unprotects: self.unprotected.iter().map(lossy).collect(),
            temp: self.temp.map(|(from, to)| Changed { from, to }),
            doors: &self.doors,
            require: self.full_no_longer.then_some(Changed {
                from: Require::Full,
                to: Require::Partial,
            }),
        };
        serde_json::to_value(document).unwrap_or_default()
    }
}

#[allow(
    clippy::unnecessary_debug_formatting,
    reason = "a path may have any characters, and the quotes show where it ends"
)]
impl fmt::Display for Difference {
    /// One change a line, such as `+ write "/srv/cache"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        if let Some((from, to)) = self.mode {
            lines.push(format!("mode {from} -> {to}"));
            if !to.confines() {
                lines.push("+ write everything: nothing is confined".to_owned());
            }
        }
        lines.extend(self.opened.iter().map(|root| format!("+ write {root:?}")));
        lines.extend(self.unprotected.iter().map(|path| format!("- protect {path:?}")));
        if let Some((from, to)) = self.temp {
            lines.push(format!("temp {} -> {}", word(from), word(to)));
        }
        lines.extend(self.doors.iter().map(|door| format!("+ {}", door.name())));
        if self.full_no_longer {
            lines.push("require full -> partial".to_owned());
        }
        f.write_str(&lines.join("\n"))
    }
}

const fn word(temp: Temp) -> &'static str {
    match temp {
        Temp::None => "none",
        Temp::Private => "private",
        Temp::Host => "host",
    }
}
