//! `audit export`.

use std::ffi::OsStr;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ringfence::Error;
use ringfence::audit::export::{ExportError, Exported};
use ringfence::audit::query::Filter;

use super::{NO, Trouble, UNAVAILABLE, since, trail};
use crate::cli::args::ExportArgs;
use crate::cli::documents::create;
use crate::cli::places::known_state_dir;
use crate::cli::render;

/// How much is written at once.
const CHUNK: usize = 64 << 10;

/// Standard output, in larger pieces.
struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        render::document(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gives out the records that are asked for.
pub(super) fn export(args: &ExportArgs) -> Result<u8, Trouble> {
    let filter = Filter {
        since: args
            .since
            .as_deref()
            .map(|text| since::since("--since", text))
            .transpose()?,
        ..Filter::default()
    };
    let trail = trail()?;
    let done = if let Some(path) = &args.output {
        not_in_the_trail(path)?;
        let file = create(path, 0o600).map_err(|error| {
            let hint = "name a file that you may write, by a path without links";
            refused("--output", path.as_os_str(), error.to_string(), hint)
        })?;
        trail.export(args.format, &filter, &mut BufWriter::with_capacity(CHUNK, file))
    } else {
        if io::stdout().is_terminal() {
            let reason = "it is for programs, and on a terminal it could steer that terminal".to_owned();
            let hint = "name a file with --output, or pipe it on; `ringfence audit list` is for reading";
            return Err(refused("--format", args.format.name().as_ref(), reason, hint).into());
        }
        trail.export(args.format, &filter, &mut BufWriter::with_capacity(CHUNK, Stdout))
    };
    match done {
        Ok(exported) => Ok(told(&exported)),
        // A reader that has gone away has seen enough.
        Err(ExportError::Output(error)) if args.output.is_none() && error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(ExportError::Trail(error)) => Err(error.into()),
        Err(error @ ExportError::Output(_)) => {
            render::trouble(&error.to_string());
            Ok(UNAVAILABLE)
        }
    }
}

/// Says what was left out, and returns the exit status.
fn told(exported: &Exported) -> u8 {
    if exported.torn > 0 {
        render::trouble(&format!(
            "lines that are no records, and were left out: {}; `ringfence audit verify` tells what became of them",
            exported.torn
        ));
    }
    let Some(first) = exported.first_unknown else {
        return 0;
    };
    render::trouble(&format!(
        "records that this version does not know, and left out: {}, the first of them number {first}; a newer \
         ringfence gives them out",
        exported.unknown
    ));
    NO
}

/// Refuses a file in the directory of the trail, which an export would empty or add to.
fn not_in_the_trail(path: &Path) -> Result<(), Error> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    let there = identity(parent);
    if there.is_some() && there == identity(&known_state_dir()?.join("audit")) {
        let reason = "the trail itself is in that directory".to_owned();
        return Err(refused("--output", path.as_os_str(), reason, "name a file elsewhere"));
    }
    Ok(())
}

fn refused(field: &str, value: &OsStr, reason: String, hint: &str) -> Error {
    Error::Input {
        field: field.to_owned(),
        value: value.to_owned(),
        reason,
        hint: hint.to_owned(),
    }
}
