//! Variables that a library host sets in every run: who contributes them, and what is refused.
//!
//! A program that embeds Ringfence often wants its commands to know something of it, a session's id
//! say. It must not happen by way of the host's own environment, from which a stale or foreign value
//! could come instead. So each [`Contributor`] declares its variables beforehand; from then on the
//! names are the host's alone: taken out of what the command would inherit, refused where a caller
//! sets them, and set last of all, for each run anew.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

use super::request::ExecRequest;
pub use crate::error::{Fault, ManagedEnvError};
use crate::profile::names;

/// Names beside `RINGFENCE_*` that Ringfence itself sets.
const RESERVED: [&str; 5] = ["PWD", "TMPDIR", "TMP", "TEMP", "TMPPREFIX"];

/// A part of the host that sets variables.
pub trait Contributor: fmt::Debug + Send + Sync {
    /// What it is called in messages.
    fn name(&self) -> &str;

    /// The variables that it may set. Asked once, when it is registered.
    fn variables(&self) -> Vec<Variable>;

    /// The variables of one run. One that is left out is absent in the run, whatever the caller's
    /// environment has.
    fn entries(&self, request: &ExecRequest) -> Vec<(OsString, OsString)>;
}

/// A variable that a contributor may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: OsString,
    /// What it tells, in a line, for people.
    pub description: String,
}

/// The contributors of a host, checked against one another.
#[derive(Debug, Default)]
pub struct ManagedEnv {
    contributors: Vec<Box<dyn Contributor>>,
    declared: Vec<(Variable, usize)>,
}

impl ManagedEnv {
    /// Registers contributors, in the order in which they are asked.
    ///
    /// # Errors
    /// [`ManagedEnvError`] for a name that is malformed, reserved or taken, and for a blank description.
    pub fn of(contributors: Vec<Box<dyn Contributor>>) -> Result<Self, ManagedEnvError> {
        let mut all = Self::default();
        for contributor in contributors {
            all.add(contributor)?;
        }
        Ok(all)
    }

    fn add(&mut self, contributor: Box<dyn Contributor>) -> Result<(), ManagedEnvError> {
        let refused = |name: &OsStr, fault| fault_of(contributor.as_ref(), name, fault);
        if contributor.name().trim().is_empty() {
            return Err(refused(OsStr::new(""), Fault::BlankContributor));
        }
        if self.contributors.iter().any(|known| known.name() == contributor.name()) {
            return Err(refused(OsStr::new(""), Fault::SameContributor));
        }
        for variable in contributor.variables() {
            let name = variable.name.as_os_str();
            if let Some((reason, _)) = names::malformed(name) {
                return Err(refused(name, Fault::Malformed(reason)));
            }
            if names::is_ringfences(name) || RESERVED.iter().any(|reserved| name == *reserved) {
                return Err(refused(name, Fault::Reserved));
            }
            if variable.description.trim().is_empty() {
                return Err(refused(name, Fault::BlankDescription));
            }
            if let Some((_, by)) = self.declared.iter().find(|(known, _)| known.name == name) {
                let by = self.contributors.get(*by).unwrap_or(&contributor).name().to_owned();
                return Err(refused(name, Fault::Declared { by }));
            }
            self.declared.push((variable, self.contributors.len()));
        }
        self.contributors.push(contributor);
        Ok(())
    }

    /// Every variable that may be set, in the order of registration.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.declared.iter().map(|(variable, _)| variable)
    }

    /// Whether a name is one of the host's.
    #[must_use]
    pub fn declares(&self, name: &OsStr) -> bool {
        self.variables().any(|variable| variable.name == name)
    }

    /// The environment of a run: what was asked for, then what Ringfence itself sets, and last what
    /// the contributors say.
    ///
    /// # Errors
    /// [`ManagedEnvError`] for a variable that was not declared, is there twice, or has a NUL byte.
    pub(super) fn complete(
        &self,
        request: &ExecRequest,
        workdir: &Path,
        scratch: Option<&Path>,
    ) -> Result<Vec<(OsString, OsString)>, ManagedEnvError> {
        let mut vars = request.env.clone();
        // Whatever the caller had there: a stale value must not pass for a fact of this run.
        vars.retain(|(name, _)| !names::is_ringfences(name) && !self.declares(name));
        ringfences_own(request, workdir, scratch, &mut vars);
        self.contribute(request, &mut vars)?;
        Ok(vars)
    }

    fn contribute(&self, request: &ExecRequest, vars: &mut Vec<(OsString, OsString)>) -> Result<(), ManagedEnvError> {
        for (place, contributor) in self.contributors.iter().enumerate() {
            let mut seen = BTreeSet::new();
            for (name, value) in contributor.entries(request) {
                let fault = if !self.declared.iter().any(|(it, by)| *by == place && it.name == name) {
                    Fault::Undeclared
                } else if !seen.insert(name.clone()) {
                    Fault::Twice
                } else if let Some(offset) = value.as_encoded_bytes().iter().position(|byte| *byte == 0) {
                    Fault::NulInValue { offset }
                } else {
                    put(vars, name, value);
                    continue;
                };
                return Err(fault_of(contributor.as_ref(), &name, fault));
            }
        }
        Ok(())
    }
}

/// Sets the variables of [`RESERVED`] and `RINGFENCE_*`.
fn ringfences_own(request: &ExecRequest, workdir: &Path, scratch: Option<&Path>, vars: &mut Vec<(OsString, OsString)>) {
    let mut set = |name: &str, value: OsString| put(vars, name.into(), value);
    set("PWD", workdir.as_os_str().to_owned());
    if let Some(scratch) = scratch {
        for name in ["TMPDIR", "TMP", "TEMP"] {
            set(name, scratch.as_os_str().to_owned());
        }
        // zsh takes this as a prefix of file names, not as a directory.
        set("TMPPREFIX", scratch.join("zsh").into_os_string());
    }
    set("RINGFENCE_MODE", request.policy.mode().name().into());
    if let Some(session) = request.policy.session() {
        set("RINGFENCE_SESSION", session.into());
    }
    set("RINGFENCE_RUN_ID", request.run_id.clone().into());
}

/// Sets an entry in place of one of the same name.
pub(super) fn put(vars: &mut Vec<(OsString, OsString)>, name: OsString, value: OsString) {
    match vars.iter_mut().find(|(there, _)| *there == name) {
        Some(entry) => entry.1 = value,
        None => vars.push((name, value)),
    }
}

fn fault_of(contributor: &dyn Contributor, name: &OsStr, fault: Fault) -> ManagedEnvError {
    ManagedEnvError {
        contributor: contributor.name().to_owned(),
        name: name.to_owned(),
        fault,
    }
}

#[cfg(test)]
mod tests;
