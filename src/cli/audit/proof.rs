//! `audit verify`, `audit checkpoint` and `audit key`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nix::libc::O_NOFOLLOW;
use ringfence::Error;
use ringfence::audit::{AuditError, Checkpoint, Fault, FaultKind, Note, Signer, Verified, Verifier, origin};
use ringfence::facts::SCHEMA;
use serde::Serialize;

use super::{NOT_VERIFIED, Trouble, UNAVAILABLE, trail, words};
use crate::cli::args::{CheckpointArgs, KeyArgs, VerifyArgs};
use crate::cli::places::known_state_dir;
use crate::cli::render;
use crate::cli::text::visible;

/// More than any checkpoint or key has.
const MOST: u64 = 64 << 10;

/// What `verify --json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Verdict<'a> {
    schema: u32,
    verified: bool,
    first: Option<u64>,
    last: Option<u64>,
    root: Option<String>,
    torn_bytes: Option<u64>,
    mended: Option<u64>,
    /// How many of the first records the checkpoint has proven.
    proven: Option<u64>,
    fault: Option<&'a Fault>,
}

fn refused(field: &str, path: &Path, reason: &str, hint: &str) -> Error {
    Error::Input {
        field: field.to_owned(),
        value: path.into(),
        reason: reason.to_owned(),
        hint: hint.to_owned(),
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MOST).read_to_string(&mut text)?;
    Ok(text)
}

/// The checkpoint in a file, and whether it has the signature that is asked for.
fn checkpoint_in(path: &Path, vkey: Option<&str>) -> Result<(Checkpoint, bool), Error> {
    let no = |reason: &str| {
        refused(
            "--against",
            path,
            reason,
            "name a file that `ringfence audit checkpoint` printed",
        )
    };
    let text = read(path).map_err(|error| no(&error.to_string()))?;
    let note = Note::parse(&text).ok_or_else(|| no("its signatures cannot be read"))?;
    let checkpoint = Checkpoint::parse(&note.text).ok_or_else(|| no("it is no checkpoint"))?;
    let Some(vkey) = vkey else {
        return Ok((checkpoint, true));
    };
    let key = Verifier::parse(vkey).ok_or_else(|| Error::Input {
        field: "--vkey".to_owned(),
        value: vkey.into(),
        reason: "it is no key that verifies".to_owned(),
        hint: "give the line that `ringfence audit key` printed".to_owned(),
    })?;
    Ok((checkpoint, key.verifies(&note)))
}

/// Verifies the trail, and says what was found.
pub(super) fn verify(args: &VerifyArgs) -> Result<u8, Trouble> {
    let against = args
        .against
        .as_deref()
        .map(|path| checkpoint_in(path, args.vkey.as_deref()))
        .transpose()?;
    let found = match &against {
        Some((_, false)) => Err(whole_trail(
            FaultKind::Unsigned,
            "the checkpoint has no good signature of that key, so it proves nothing",
        )),
        other => {
            let checkpoint = other.as_ref().map(|(checkpoint, _)| checkpoint);
            match trail() {
                Ok(trail) => trail.verify(checkpoint)?,
                // Where something was recorded somebody has removed all of it; nobody can tell without a checkpoint.
                Err(Trouble::Trail(error @ AuditError::Missing { .. })) => {
                    Err(whole_trail(FaultKind::Removed, &error.to_string()))
                }
                Err(trouble) => return Err(trouble),
            }
        }
    };
    let proven = against.map(|(checkpoint, _)| checkpoint.size);
    if args.json {
        let verified = found.as_ref().ok();
        let verdict = Verdict {
            schema: SCHEMA,
            verified: found.is_ok(),
            first: verified.map(|it| it.first),
            last: verified.map(|it| it.last),
            root: verified.map(|it| STANDARD.encode(it.root.0)),
            torn_bytes: verified.map(|it| it.torn),
            mended: verified.map(|it| it.mended),
            proven: verified.and(proven),
            fault: found.as_ref().err(),
        };
        match serde_json::to_vec(&verdict) {
            Ok(mut line) => {
                line.push(b'\n');
                let _ = render::document(&line);
            }
            Err(error) => render::trouble(&format!("the verdict could not be written: {error}")),
        }
    } else {
        let text = match &found {
            Ok(verified) => good(verified, proven),
            Err(fault) => format!(
                "The trail does not verify: {}.\n{}\n",
                visible(&fault.to_string()),
                what_now(fault, proven)
            ),
        };
        let _ = render::document(text.as_bytes());
    }
    Ok(if found.is_ok() { 0 } else { NOT_VERIFIED })
}

fn whole_trail(kind: FaultKind, what: &str) -> Fault {
    Fault {
        kind,
        segment: None,
        line: None,
        record: None,
        what: what.to_owned(),
    }
}

fn good(verified: &Verified, proven: Option<u64>) -> String {
    let Verified {
        first,
        last,
        torn,
        mended,
        ..
    } = verified;
    let mut said = vec![if last < first {
        "The trail verifies, and has no record.".to_owned()
    } else {
        format!("The trail verifies: records {first} to {last}, each bound to the one before.")
    }];
    if *first > 1 {
        said.push(format!(
            "Records up to {} were pruned, as one of the others says.",
            first - 1
        ));
    }
    if *mended > 0 {
        let places = words::counted(*mended, "place");
        said.push(format!(
            "Writing was interrupted in {places}; the record after each names the bytes that were left."
        ));
    }
    if *torn > 0 {
        let bytes = words::counted(*torn, "torn byte");
        said.push(format!(
            "It verifies up to record {last}; {bytes} after it: writing was interrupted there, or goes on. \
             The next record will name them."
        ));
    }
    said.push(match proven {
        Some(size) => format!(
            "It continues the checkpoint: the first {} are those it was made of.",
            words::counted(size, "record")
        ),
        None => "Whether newer records were cut off only a checkpoint can tell that was kept elsewhere (--against)."
            .to_owned(),
    });
    said.join("\n") + "\n"
}

/// What a fault means, and what to do about it.
fn what_now(fault: &Fault, against: Option<u64>) -> &'static str {
    let nothing_there = fault.kind == FaultKind::Removed && fault.segment.is_none() && fault.record.is_none();
    match fault.kind {
        FaultKind::Unprovable => {
            "Nothing else is wrong with the trail. Verify it without this checkpoint, or against a newer one."
        }
        FaultKind::Unsigned => {
            "Nothing was found out about the trail. Give the key that `ringfence audit key` printed, and the checkpoint as \
             it was signed."
        }
        FaultKind::Version => "Verify it with the version of Ringfence that wrote it.",
        _ if nothing_there && against.is_none() => {
            "Where nothing has been recorded yet, that is as it should be. Where something was, somebody removed all of \
             it; only a checkpoint that was kept elsewhere can tell (--against)."
        }
        _ => {
            "Somebody or something changed what was recorded. Keep a copy of the trail as it is now, and find out who \
             could write it."
        }
    }
}

/// Prints a checkpoint of the trail, which must verify.
pub(super) fn checkpoint(args: &CheckpointArgs) -> Result<u8, Trouble> {
    let signer = args.key.as_deref().map(signer_in).transpose()?;
    let verified = match trail()?.verify(None)? {
        Ok(verified) => verified,
        Err(fault) => {
            render::trouble(&format!("the trail does not verify: {fault}"));
            render::hint(what_now(&fault, None));
            return Ok(NOT_VERIFIED);
        }
    };
    let name = signer.as_ref().map_or_else(
        || known_state_dir().map(|it| origin(&it)),
        |it| Ok(it.name().to_owned()),
    )?;
    let text = verified.checkpoint(name).text();
    let text = signer.map_or(text.clone(), |signer| signer.sign(&text));
    Ok(printed(&text))
}

/// Prints what is to be kept: what was not printed must not look as if it had been.
fn printed(text: &str) -> u8 {
    match render::document(text.as_bytes()) {
        Ok(()) => 0,
        Err(error) => {
            render::trouble(&format!("this could not be written to standard output: {error}"));
            UNAVAILABLE
        }
    }
}

fn signer_in(path: &Path) -> Result<Signer, Error> {
    let no = |reason: &str| {
        refused(
            "--key",
            path,
            reason,
            "name a file that `ringfence audit key` made, with mode 0600",
        )
    };
    let about = fs::metadata(path).map_err(|error| no(&error.to_string()))?;
    if about.permissions().mode() & 0o077 != 0 {
        return Err(no("others may read it, and sign with it"));
    }
    let text = read(path).map_err(|error| no(&error.to_string()))?;
    Signer::parse(&text).ok_or_else(|| no("it is no key that signs"))
}

/// Makes a key, and prints the one that verifies.
pub(super) fn key(args: &KeyArgs) -> Result<u8, Trouble> {
    let path = &args.file;
    let no = |error: &io::Error| {
        refused(
            "FILE",
            path,
            &error.to_string(),
            "name a file that does not exist yet, where you may write",
        )
    };
    let signer = Signer::generate(&origin(&known_state_dir()?)).map_err(|error| no(&error))?;
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(O_NOFOLLOW)
        .open(path)
        .map_err(|error| no(&error))?;
    file.write_all(signer.text().as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|error| no(&error))?;
    Ok(printed(&format!("{}\n", signer.verifier())))
}
