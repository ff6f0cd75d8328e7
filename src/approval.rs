//! Approvals: asking somebody whether one looser run of a finished one may happen, once.
//!
//! * A [`Desk`] asks. It takes a [`Question`] and the [`Binding`] that the answer is to hold for, and
//!   gives a [`Grant`], or an error that tells why not.
//! * A [`Grant`] is used by value. It is consumed, on the disk and in the trail, before the command
//!   starts, and turns into the [`Permit`] that the run takes.
//! * A [`Queue`] is the other side: what lists requests, and answers them from elsewhere.
//!
//! From `allowed-once` alone a way leads to a permit; see `docs/approvals.md`.

pub mod binding;
pub mod card;
mod clock;
mod decision;
mod desk;
mod grant;
mod hook;
mod inside;
mod office;
mod queue;
mod request;
mod settings;
mod settle;
mod store;
mod tty;
mod vigil;

pub use binding::{Binding, Bound, Digested, Executable, MAX_HASHED, Place, environment, nonce};
pub use clock::{Deadline, Moment};
pub use decision::{Decision, Outcome};
pub use desk::Desk;
pub use grant::{Grant, Permit};
pub use inside::{Inside, around};
pub use queue::{Answer, Assurance, Listed, NotAnswered, Queue, State};
pub use request::{Question, Refused, Request, path_on_paper};
pub use settings::{Answerer, Hook, Settings};
pub use vigil::{Never, Withdrawal};

#[cfg(test)]
mod tests;
