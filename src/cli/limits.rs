//! `--limit NAME=VALUE`, each value in its resource's own unit.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use ringfence::exec::limits::UNLIMITED;
use ringfence::{Error, Resource};

use super::values;

/// The option, as it is spelt.
const OPTION: &str = "--limit";

/// Reads the limits that were asked for.
///
/// # Errors
/// [`Error::Input`] for a name that is no resource, a value that is none of its unit, and a resource
/// that is limited twice.
pub(crate) fn limits(words: &[OsString]) -> Result<BTreeMap<Resource, u64>, Error> {
    let mut limits = BTreeMap::new();
    for word in words {
        let (resource, value) = limit(word)?;
        if limits.insert(resource, value).is_some() {
            let reason = format!("{} is limited twice", resource.name());
            return Err(refused(word, &reason, "give each limit once"));
        }
    }
    Ok(limits)
}

fn limit(word: &OsStr) -> Result<(Resource, u64), Error> {
    let known = Resource::ALL.map(Resource::name).join(", ");
    let named = format!("write NAME=VALUE; the names are {known}");
    let no_name = |reason| refused(word, reason, &named);
    let bytes = word.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=');
    let at = at.ok_or_else(|| no_name("it has no `=`"))?;
    let (name, value) = (OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..]));
    let resource = Resource::ALL.into_iter().find(|resource| name == resource.name());
    let resource = resource.ok_or_else(|| no_name("there is no limit of that name"))?;
    if value == "unlimited" {
        return Ok((resource, UNLIMITED));
    }
    let value = match resource {
        Resource::As | Resource::Core | Resource::Fsize => size(word, value),
        Resource::Cpu => seconds(word, value),
        Resource::Nofile | Resource::Nproc => number(word, value),
    }?;
    Ok((resource, value))
}

fn size(word: &OsStr, value: &OsStr) -> Result<u64, Error> {
    let hint = "give a number of bytes, such as 64000, 256k or 1GiB, or unlimited";
    let bytes = values::bytes(value).map_err(|reason| refused(word, reason, hint))?;
    let known = bytes.filter(|bytes| *bytes != UNLIMITED);
    known.ok_or_else(|| refused(word, "it is more than any file can have", hint))
}

fn seconds(word: &OsStr, value: &OsStr) -> Result<u64, Error> {
    let hint = "give whole seconds of processor time, such as 30s or 10m, or unlimited";
    let length = values::duration(OPTION, value).map_err(|error| match error {
        Error::Input { reason, .. } => refused(word, &reason, hint),
        other => other,
    })?;
    if length.subsec_nanos() > 0 {
        return Err(refused(word, "processor time is limited in whole seconds", hint));
    }
    Ok(length.as_secs())
}

fn number(word: &OsStr, value: &OsStr) -> Result<u64, Error> {
    let plain = value
        .to_str()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    plain
        .and_then(|text| text.parse().ok())
        .filter(|number| *number != UNLIMITED)
        .ok_or_else(|| refused(word, "it is no number", "give a whole number such as 100, or unlimited"))
}

fn refused(word: &OsStr, reason: &str, hint: &str) -> Error {
    Error::Input {
        field: OPTION.to_owned(),
        value: word.to_owned(),
        reason: reason.to_owned(),
        hint: hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Result<BTreeMap<Resource, u64>, Error> {
        limits(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn each_limit_is_read_in_its_own_unit() {
        let cases = [
            ("fsize=1m", Resource::Fsize, 1 << 20),
            ("fsize=0", Resource::Fsize, 0),
            ("as=2GiB", Resource::As, 2 << 30),
            ("core=unlimited", Resource::Core, UNLIMITED),
            ("cpu=10m", Resource::Cpu, 600),
            ("nproc=64", Resource::Nproc, 64),
            ("nofile=256", Resource::Nofile, 256),
        ];
        for (word, resource, value) in cases {
            assert_eq!(of(&[word]).unwrap(), [(resource, value)].into(), "{word}");
        }
        assert_eq!(of(&["cpu=1s", "nproc=1"]).unwrap().len(), 2);
        assert!(of(&[]).unwrap().is_empty());
    }

    #[test]
    fn limits_that_make_no_sense_are_refused_with_a_way_out() {
        let words = [
            "",
            "cpu",
            "=1",
            "memory=1g",
            "CPU=1s",
            "cpu=",
            "cpu=5",
            "cpu=1500ms",
            "cpu=0s",
            "nproc=-1",
            "nproc=",
            "nproc=1k",
            "nofile=18446744073709551615",
            "fsize=1.5m",
            "as=99999999999g",
        ];
        for word in words {
            match of(&[word]) {
                Err(Error::Input { field, value, hint, .. }) => {
                    assert!(field == OPTION && value == word && !hint.is_empty(), "{word}");
                }
                other => panic!("{word}: {other:?}"),
            }
        }
        assert!(of(&["cpu=1s", "cpu=2s"]).is_err());
    }
}
