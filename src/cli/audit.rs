//! `ringfence audit`: the trail, read, verified and pruned.

mod export;
mod list;
mod proof;
mod since;
mod summary;
mod words;

use ringfence::Error;
use ringfence::audit::{AuditError, Keep, Reading, Trail};

use super::args::{AuditArgs, AuditCommand, PruneArgs};
use super::places::known_state_dir;
use super::{UNAVAILABLE, USAGE, render, values};

/// Exit status for what is not there.
const NO: u8 = 1;
/// Exit status for a trail that does not verify.
const NOT_VERIFIED: u8 = 6;

/// Why a subcommand could not do what was asked.
enum Trouble {
    /// What was asked for makes no sense.
    Asked(Error),
    /// The trail cannot be read or written.
    Trail(AuditError),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Asked(error)
    }
}

impl From<AuditError> for Trouble {
    fn from(error: AuditError) -> Self {
        Self::Trail(error)
    }
}

/// Does what was asked, and returns the exit status.
pub(crate) fn audit(args: &AuditArgs) -> u8 {
    let done = match &args.command {
        AuditCommand::List(args) => list::list(args),
        AuditCommand::Show(args) => list::show(args),
        AuditCommand::Tail(args) => list::tail(args),
        AuditCommand::Summary(args) => summary::summary(args),
        AuditCommand::Verify(args) => proof::verify(args),
        AuditCommand::Checkpoint(args) => proof::checkpoint(args),
        AuditCommand::Export(args) => export::export(args),
        AuditCommand::Key(args) => proof::key(args),
        AuditCommand::Prune(args) => prune(args),
    };
    match done {
        Ok(status) => status,
        Err(Trouble::Asked(error)) => {
            render::error(&error);
            USAGE
        }
        Err(Trouble::Trail(error)) => {
            render::trouble(&error.to_string());
            render::hint(error.hint());
            match error {
                AuditError::Missing { .. } => NO,
                AuditError::Faulty(_) => NOT_VERIFIED,
                _ => UNAVAILABLE,
            }
        }
    }
}

fn trail() -> Result<Reading, Trouble> {
    Ok(Trail::read(&known_state_dir()?)?)
}

fn prune(args: &PruneArgs) -> Result<u8, Trouble> {
    let keep = Keep {
        age: args
            .keep
            .as_deref()
            .map(|text| since::age("--keep", text))
            .transpose()?,
        bytes: args.keep_bytes.as_deref().map(bytes).transpose()?,
    };
    let place = known_state_dir()?;
    // Where there is no trail none is made.
    Trail::read(&place)?;
    let pruned = Trail::open(&place)?.prune(keep)?;
    let text = match pruned.through {
        None => "Nothing was removed: all of it is to be kept, or in the file that is being written.\n".to_owned(),
        Some(through) => format!(
            "Records up to {through} were removed: {} and {} bytes. That is recorded, and the rest verifies as before.\n",
            words::counted(pruned.segments as u64, "file"),
            pruned.bytes
        ),
    };
    let _ = render::document(text.as_bytes());
    Ok(0)
}

fn bytes(text: &std::ffi::OsStr) -> Result<u64, Error> {
    let refused = |reason: &str| Error::Input {
        field: "--keep-bytes".to_owned(),
        value: text.to_owned(),
        reason: reason.to_owned(),
        hint: "give a number of bytes, such as 500m or 2g".to_owned(),
    };
    values::bytes(text)
        .map_err(refused)?
        .ok_or_else(|| refused("no number here is as large"))
}
