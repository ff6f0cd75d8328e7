//! Values with the place where a file says them.

use crate::tables::Place;

/// A value, and where it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

/// A value that holds, and which file says so; no file for a default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing<T> {
    pub(super) value: T,
    pub(super) said_in: Option<Place>,
}

impl<T> Standing<T> {
    pub(super) const fn default_of(value: T) -> Self {
        Self { value, said_in: None }
    }
}
