//! The prepared boundary: nothing but the text.

use ringfence_backend::{Boundary, LaunchPlan, PinnedPath, PlanStep, PrepareError};

use crate::profile;

/// A profile that holds for the command.
#[derive(Debug)]
pub(crate) struct SeatbeltBoundary(String);

impl SeatbeltBoundary {
    /// Takes the profile out of a plan of this backend.
    ///
    /// # Errors
    /// [`PrepareError`] for a plan that has none, or a step of another backend.
    pub(crate) fn prepare(plan: &LaunchPlan) -> Result<Self, PrepareError> {
        let mut found = None;
        for step in &plan.steps {
            match step {
                PlanStep::SeatbeltProfile(text) => found = Some(text.clone()),
                // The profile says the same.
                PlanStep::Writable(_) | PlanStep::Held(_) | PlanStep::Protected(_) => {}
                _ => return Err(unprepared("a step of another backend")),
            }
        }
        let mut profile = found.ok_or_else(|| unprepared("a plan without a profile"))?;
        if let Some(program) = ringfence_backend::darwin::program() {
            let program = PinnedPath::open(program).map_err(|source| PrepareError {
                what: "the program of Ringfence".to_owned(),
                source,
            })?;
            let rules = profile::keeping(program.path()).map_err(|named| PrepareError {
                what: format!("the {} {}", named.field, named.path.display()),
                source: std::io::Error::other(named.reason),
            })?;
            profile.push_str(&rules);
        }
        Ok(Self(profile))
    }
}

fn unprepared(what: &str) -> PrepareError {
    PrepareError {
        what: what.to_owned(),
        source: std::io::ErrorKind::Unsupported.into(),
    }
}

impl Boundary for SeatbeltBoundary {
    fn profile(&self) -> Option<&str> {
        Some(&self.0)
    }
}
