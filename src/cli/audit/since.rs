//! Ages and times, as they are typed.

use std::ffi::OsStr;
use std::time::Duration;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use ringfence::Error;

fn refused(field: &str, value: &OsStr, reason: &str, hint: &str) -> Error {
    Error::Input {
        field: field.to_owned(),
        value: value.to_owned(),
        reason: reason.to_owned(),
        hint: hint.to_owned(),
    }
}

/// A length of time in words such as `90s`, `1h 30m`, `7d` or `2w`.
fn length(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let hours = match unit.trim_start() {
        "d" | "day" | "days" => 24,
        "w" | "week" | "weeks" => 7 * 24,
        _ => {
            let signed: SignedDuration = text.parse().ok()?;
            return signed.try_into().ok();
        }
    };
    let seconds = number.parse::<u64>().ok()?.checked_mul(hours * 3600)?;
    Some(Duration::from_secs(seconds))
}

/// An age.
///
/// # Errors
/// [`Error::Input`] that names `field`, the option as it is spelt.
pub(super) fn age(field: &str, value: &OsStr) -> Result<Duration, Error> {
    let text = value.to_str().map(str::trim).filter(|text| !text.is_empty());
    text.and_then(length).ok_or_else(|| {
        refused(
            field,
            value,
            "it is no length of time",
            "give one with its unit, such as 90d, 12h or 30m",
        )
    })
}

/// A moment, or how long ago it was, as records write it.
///
/// # Errors
/// [`Error::Input`] that names `field`, the option as it is spelt.
pub(super) fn since(field: &str, value: &OsStr) -> Result<String, Error> {
    let no = |reason| {
        let hint = "give a length of time such as 1h or 7d, or a time such as 2026-01-31T12:00:00Z or 2026-01-31";
        refused(field, value, reason, hint)
    };
    let text = value.to_str().map(str::trim).ok_or_else(|| no("it is no text"))?;
    let moment = if let Some(ago) = length(text) {
        let ago = SignedDuration::try_from(ago).map_err(|_| no("it is too long ago"))?;
        Timestamp::now()
            .checked_sub(ago)
            .map_err(|_| no("it is too long ago"))?
    } else if let Ok(moment) = text.parse::<Timestamp>() {
        moment
    } else {
        let day: Date = text
            .parse()
            .map_err(|_| no("it is neither a length of time nor a time"))?;
        format!("{day}T00:00:00Z")
            .parse()
            .map_err(|_| no("there is no such day"))?
    };
    Ok(format!("{moment:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_with_days_and_weeks() {
        for (text, hours) in [("90d", 2160), ("2 weeks", 336), ("12h", 12), ("1h 60m", 2), ("0d", 0)] {
            assert_eq!(
                age("--keep", text.as_ref()).unwrap(),
                Duration::from_hours(hours),
                "{text}"
            );
        }
        for text in [
            "",
            "90",
            "d",
            "-1d",
            "-1h",
            "soon",
            "99999999999999999999d",
            "9999999999999999d",
        ] {
            assert!(age("--keep", text.as_ref()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_moment_is_given_as_a_time_a_day_or_an_age() {
        let read = |text: &str| since("--since", text.as_ref()).unwrap();
        assert_eq!(read("2026-01-31T12:00:00Z"), "2026-01-31T12:00:00.000000Z");
        assert_eq!(read("2026-01-31T12:00:00+02:00"), "2026-01-31T10:00:00.000000Z");
        assert_eq!(read("2026-01-31"), "2026-01-31T00:00:00.000000Z");
        assert!(read("1h") < read("1s"));
        for text in ["", "yesterday", "2026-13-01", "99999999w"] {
            assert!(since("--since", text.as_ref()).is_err(), "{text}");
        }
    }
}
