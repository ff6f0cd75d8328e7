//! What is wrong with the variables that a library host contributes.

use std::ffi::OsString;

/// What is wrong with a contributor, or with what it returned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the variable {name:?} of the contributor {contributor:?} cannot be set: {fault}")]
pub struct ManagedEnvError {
    /// The contributor.
    pub contributor: String,
    /// The variable; empty when it is about the contributor as a whole.
    pub name: OsString,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a contributed variable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The contributor has no name.
    #[error("the contributor's name is blank")]
    BlankContributor,
    /// Two contributors have one name.
    #[error("a contributor of that name is registered already")]
    SameContributor,
    /// The name is empty, or has an `=` or a NUL byte.
    #[error("{0}")]
    Malformed(&'static str),
    /// The name is one that Ringfence sets.
    #[error("Ringfence itself sets variables of that name")]
    Reserved,
    /// The description says nothing.
    #[error("its description is blank")]
    BlankDescription,
    /// The name is declared twice.
    #[error("{by:?} has declared it already")]
    Declared {
        /// The contributor that did.
        by: String,
    },
    /// It was returned for a run and never declared.
    #[error("it was not declared")]
    Undeclared,
    /// It was returned twice for one run.
    #[error("it was returned twice")]
    Twice,
    /// Its value has a NUL byte.
    #[error("its value has a NUL byte at offset {offset}")]
    NulInValue {
        /// Where.
        offset: usize,
    },
}

impl ManagedEnvError {
    /// What to do about it.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self.fault {
            Fault::BlankContributor | Fault::SameContributor => "give each contributor a name of its own",
            Fault::Malformed(_) | Fault::Reserved => "choose another name, with a prefix of the host's own",
            Fault::BlankDescription => "say in a line what the variable tells",
            Fault::Declared { .. } => "declare each variable once, in one contributor",
            Fault::Undeclared => "declare every variable that the contributor may return",
            Fault::Twice => "return each variable once at most",
            Fault::NulInValue { .. } => "leave the NUL byte out, or the variable",
        }
    }
}
