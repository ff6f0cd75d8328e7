//! The environment of a finished run, without its values.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::bytes::{Word, hex};

/// What a shell keeps for itself: the last command, how deep it is nested, and where it was before. Other words
/// are said before each command, so these are kept as they are, and no shell has to have them again.
const OF_SHELLS: [&str; 3] = ["_", "SHLVL", "OLDPWD"];

/// The environment, without its values but for those of [`OF_SHELLS`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeptEnv {
    salt: String,
    vars: Vec<(Word, KeptValue)>,
}

/// What is kept of a variable's value.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KeptValue {
    Digest(String),
    OfShells(Word),
}

impl KeptEnv {
    /// Keeps an environment.
    pub(crate) fn of(vars: &[(OsString, OsString)]) -> io::Result<Self> {
        let salt = hex(&ringfence_backend::descriptor::random::<16>()?);
        let vars = vars
            .iter()
            .map(|(name, value)| {
                let kept = if OF_SHELLS.iter().any(|it| name == it) {
                    KeptValue::OfShells(value.into())
                } else {
                    KeptValue::Digest(digest(&salt, name, value))
                };
                (Word(name.clone()), kept)
            })
            .collect();
        Ok(Self { salt, vars })
    }

    /// The same environment, each value taken from the first of `sources` that has the one that it was.
    ///
    /// # Errors
    /// The names of the variables that no source has as they were.
    pub(crate) fn restore(
        &self,
        sources: &[&[(OsString, OsString)]],
    ) -> Result<Vec<(OsString, OsString)>, Vec<OsString>> {
        let mut missing = Vec::new();
        let mut vars = Vec::new();
        for (Word(name), kept) in &self.vars {
            let meant = match kept {
                KeptValue::Digest(meant) => meant,
                KeptValue::OfShells(value) => {
                    vars.push((name.clone(), value.0.clone()));
                    continue;
                }
            };
            let known = sources.iter().flat_map(|source| source.iter());
            match known
                .filter(|(it, _)| it == name)
                .map(|(_, value)| value)
                .find(|value| digest(&self.salt, name, value) == *meant)
            {
                Some(value) => vars.push((name.clone(), value.clone())),
                None => missing.push(name.clone()),
            }
        }
        if missing.is_empty() { Ok(vars) } else { Err(missing) }
    }
}

fn digest(salt: &str, name: &OsStr, value: &OsStr) -> String {
    let mut hash = Sha256::new();
    for part in [salt.as_bytes(), name.as_bytes(), value.as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    // Half of it is as good against a slip, and the record is half as long.
    hex(&hash.finalize()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn an_environment_is_kept_without_its_values_and_restored_from_those_who_have_them() {
        let kept = KeptEnv::of(&vars(&[("A", "first"), ("TOKEN", "hunter2")])).unwrap();
        assert!(!serde_json::to_string(&kept).unwrap().contains("hunter2"));
        let (given, callers) = (
            vars(&[("TOKEN", "hunter2")]),
            vars(&[("A", "first"), ("TOKEN", "other")]),
        );
        assert_eq!(
            kept.restore(&[&given, &callers]).unwrap(),
            vars(&[("A", "first"), ("TOKEN", "hunter2")])
        );
        assert_eq!(kept.restore(&[&callers]).unwrap_err(), ["TOKEN"]);
    }

    #[test]
    fn what_a_shell_keeps_for_itself_is_as_it_was_wherever_a_retry_is_asked_for() {
        let then = vars(&[("_", "/usr/bin/ringfence"), ("SHLVL", "1"), ("OLDPWD", "/a")]);
        let now = vars(&[("_", "/usr/bin/setsid"), ("SHLVL", "2")]);
        assert_eq!(KeptEnv::of(&then).unwrap().restore(&[&now]).unwrap(), then);
    }
}
