//! Durations, sizes and variables, read from what the user typed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use jiff::SignedDuration;
use ringfence::Error;

/// The longest time that can be asked for: a week.
const LONGEST: Duration = Duration::from_hours(7 * 24);
/// The shortest: reports count in milliseconds.
const SHORTEST: Duration = Duration::from_millis(1);
/// The most that is kept of one stream, and the most that goes to its file, in bytes.
const MOST_OUTPUT: u64 = 1 << 30;

fn refused(field: &str, value: &OsStr, reason: &str, hint: &str) -> Error {
    Error::Input {
        field: field.to_owned(),
        value: value.to_owned(),
        reason: reason.to_owned(),
        hint: hint.to_owned(),
    }
}

/// A duration with its unit (`90s`, `500ms`, `1h 30m`), from a millisecond to a week.
///
/// # Errors
/// [`Error::Input`] that names `field`, the option as it is spelt.
pub(crate) fn duration(field: &str, value: &OsStr) -> Result<Duration, Error> {
    let no = |reason| {
        refused(
            field,
            value,
            reason,
            "give a positive duration with its unit, such as 90s, 500ms or 10m",
        )
    };
    let text = value.to_str().map(str::trim).ok_or_else(|| no("it is no text"))?;
    if text.is_empty() {
        return Err(no("it is empty"));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(no("it has no unit"));
    }
    let signed: SignedDuration = text.parse().map_err(|_| no("it is no duration"))?;
    let length = signed.unsigned_abs();
    if signed.is_negative() {
        Err(no("it is negative"))
    } else if length < SHORTEST {
        Err(no("it is shorter than a millisecond"))
    } else if length > LONGEST {
        Err(no("it is longer than a week"))
    } else {
        Ok(length)
    }
}

/// A number of bytes, plain or with k, m or g for KiB, MiB or GiB; from 1 byte to 1 GiB.
///
/// # Errors
/// [`Error::Input`] that names `field`, the option as it is spelt.
pub(crate) fn size(field: &str, value: &OsStr) -> Result<usize, Error> {
    match size_or_none(field, value)? {
        0 => Err(no_size(field, value, "nothing would be kept")),
        bytes => usize::try_from(bytes).map_err(|_| no_size(field, value, "it is more than 1 GiB")),
    }
}

/// The same, and 0 as well.
///
/// # Errors
/// [`Error::Input`] that names `field`, the option as it is spelt.
pub(crate) fn size_or_none(field: &str, value: &OsStr) -> Result<u64, Error> {
    let no = |reason| no_size(field, value, reason);
    bytes(value)
        .map_err(no)?
        .filter(|bytes| *bytes <= MOST_OUTPUT)
        .ok_or_else(|| no("it is more than 1 GiB"))
}

fn no_size(field: &str, value: &OsStr, reason: &str) -> Error {
    refused(
        field,
        value,
        reason,
        "give a number of bytes up to 1GiB, such as 64000, 256k or 1MiB",
    )
}

/// A number of bytes, plain or with a unit; absent when no number here is as large.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn bytes(value: &OsStr) -> Result<Option<u64>, &'static str> {
    let text = value.to_str().map(str::trim).ok_or("it is no text")?;
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err("it is no number of bytes");
    }
    let factor: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return Err("its unit is none of k, m, g, KiB, MiB and GiB"),
    };
    Ok(number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)))
}

/// A variable, `NAME=VALUE`; the value begins after the first `=` and may be empty.
///
/// # Errors
/// [`Error::Input`] when the `=` or the name is missing. What a name may be is settled elsewhere.
pub(crate) fn variable(value: &OsStr) -> Result<(OsString, OsString), Error> {
    let no = |reason| {
        refused(
            "--env",
            value,
            reason,
            "write NAME=VALUE; --keep-env NAME hands on the caller's value",
        )
    };
    let bytes = value.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        None => Err(no("it has no `=`")),
        Some(0) => Err(no("it has no name before the `=`")),
        Some(at) => Ok((
            OsString::from_vec(bytes[..at].to_vec()),
            OsString::from_vec(bytes[at + 1..].to_vec()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
        match result.unwrap_err() {
            Error::Input {
                field, reason, hint, ..
            } => {
                assert!(field.starts_with("--") && !hint.is_empty());
                reason
            }
            other => panic!("an input error was expected, not {other:?}"),
        }
    }

    #[test]
    fn durations_are_read_with_their_units() {
        let cases = [
            ("90s", Duration::from_secs(90)),
            ("500ms", Duration::from_millis(500)),
            ("2m", Duration::from_mins(2)),
            ("1h 30m", Duration::from_mins(90)),
            ("1.5s", Duration::from_millis(1500)),
            (" 3 seconds ", Duration::from_secs(3)),
            ("168h", LONGEST),
        ];
        for (text, expected) in cases {
            assert_eq!(duration("--timeout", text.as_ref()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn durations_that_make_no_sense_are_refused_with_the_reason() {
        let cases = [
            ("", "empty"),
            ("  ", "empty"),
            ("120", "unit"),
            ("0s", "millisecond"),
            ("1ns", "millisecond"),
            ("-5s", "negative"),
            ("5s ago", "negative"),
            ("soon", "no duration"),
            ("169h", "a week"),
            ("99999999999999999999h", "no duration"),
        ];
        for (text, expected) in cases {
            let reason = reason(duration("--timeout", text.as_ref()));
            assert!(reason.contains(expected), "{text}: {reason}");
        }
    }

    #[test]
    fn sizes_are_read_with_and_without_units() {
        let cases = [
            ("1", 1),
            ("64000", 64_000),
            ("64k", 65_536),
            ("1MiB", 1 << 20),
            ("2 m", 2 << 20),
            ("1g", 1 << 30),
        ];
        for (text, expected) in cases {
            assert_eq!(size("--max-output", text.as_ref()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn no_bytes_at_all_can_be_asked_for_where_that_means_something() {
        assert_eq!(size_or_none("--max-spill", "0".as_ref()).unwrap(), 0);
        assert_eq!(size_or_none("--max-spill", "1g".as_ref()).unwrap(), 1 << 30);
        reason(size_or_none("--max-spill", "1025m".as_ref()));
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        for text in [
            "",
            "0",
            "0k",
            "-1",
            "1.5m",
            "64kb",
            "k",
            "1025m",
            "2g",
            "1073741825",
            "99999999999999999999",
        ] {
            reason(size("--max-output", text.as_ref()));
        }
    }

    #[test]
    fn a_variable_ends_its_name_at_the_first_equals_sign() {
        assert_eq!(variable("A=b=c".as_ref()).unwrap(), ("A".into(), "b=c".into()));
        assert_eq!(variable("A=".as_ref()).unwrap(), ("A".into(), "".into()));
        let odd = OsString::from_vec(b"A=\xff".to_vec());
        assert_eq!(variable(&odd).unwrap().1, OsString::from_vec(vec![0xff]));
    }

    #[test]
    fn a_variable_without_name_or_sign_is_refused() {
        assert!(reason(variable("A".as_ref())).contains("no `=`"));
        assert!(reason(variable("=b".as_ref())).contains("no name"));
        assert!(reason(variable("".as_ref())).contains("no `=`"));
    }
}
