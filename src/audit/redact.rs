//! Replacing what looks like a secret, before it is written anywhere.
//!
//! A secret is known by the name before it (`--token X`, `API_KEY=X`, `Authorization: X`), by its place
//! (`https://user:X@host`) or by its shape (`ghp_…`). Too much is replaced rather than too little. What
//! has neither name nor place nor shape is not known for a secret, and stays.

mod scan;
mod shapes;

use std::ffi::OsString;

use super::record::Entry;
use crate::profile::names::is_credential;

/// What stands in the place of a secret.
pub(super) const MARK: &str = "[redacted]";

/// The words of a command, secrets replaced.
#[must_use]
pub fn redacted(argv: &[OsString]) -> Vec<String> {
    let mut words: Vec<_> = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    without_secrets(&mut words);
    words
}

/// The same of a text: a message, or what is given to a shell.
pub(super) fn text(text: &str) -> String {
    scan::text(text)
}

impl Entry {
    /// The same without what looks like a secret.
    pub(super) fn without_secrets(&self) -> Self {
        let mut entry = self.clone();
        if let Some(words) = entry.event.words() {
            without_secrets(words);
        }
        for prose in entry.event.prose() {
            *prose = text(prose);
        }
        entry
    }
}

fn without_secrets(words: &mut [String]) {
    let program = words
        .first()
        .map(|word| word.rsplit('/').next().unwrap_or_default().to_owned());
    let program = program.unwrap_or_default();
    let logs_in = words
        .get(1..)
        .is_some_and(|rest| rest.iter().take(3).any(|word| word == "login"));
    let (mut next_is_one, mut is_text) = (false, false);
    for word in words.iter_mut() {
        if std::mem::take(&mut next_is_one) && !word.is_empty() {
            MARK.clone_into(word);
            continue;
        }
        if is_user_option(word) {
            // Only a value with a password in it is one; that is seen when it comes.
            continue;
        }
        next_is_one = (is_option(word) && names_a_secret(word)) || takes_one(&program, logs_in, word);
        // What is given to a shell is more than one word.
        let (was_text, starts_one) = (
            is_text,
            word.starts_with('-') && !word.starts_with("--") && word.ends_with('c'),
        );
        is_text = starts_one;
        *word = if was_text {
            text(word)
        } else {
            whole_word(&program, word)
        };
    }
    // `-u name:password`, as curl(1) takes it.
    for at in 1..words.len() {
        if is_user_option(&words[at - 1]) {
            words[at] = if holds_a_password(&words[at]) {
                MARK.to_owned()
            } else {
                text(&words[at])
            };
        }
    }
}

/// One word by itself.
fn whole_word(program: &str, word: &str) -> String {
    if let Some((name, value)) = word.split_once('=')
        && is_name(name)
        && names_a_secret(name)
    {
        return if value.is_empty() {
            word.to_owned()
        } else {
            format!("{name}={MARK}")
        };
    }
    let attached = match program {
        "mysql" | "mysqldump" | "mysqladmin" | "mariadb" | "mariadb-dump" | "sshpass" => word.starts_with("-p"),
        "curl" => word.starts_with("-u") && holds_a_password(word),
        _ => false,
    };
    if attached && word.len() > 2 && !word.starts_with("--") {
        return format!("{}{MARK}", &word[..2]);
    }
    text(word)
}

/// Whether the word after this one is a secret for this program alone.
fn takes_one(program: &str, logs_in: bool, word: &str) -> bool {
    match program {
        "sshpass" => word == "-p",
        "redis-cli" => word == "-a",
        "ldapsearch" | "ldapmodify" | "ldapadd" => word == "-w",
        "docker" | "podman" | "nerdctl" | "helm" | "buildah" | "skopeo" => logs_in && word == "-p",
        "curl" => word == "-b",
        _ => false,
    }
}

fn is_user_option(word: &str) -> bool {
    matches!(word, "-u" | "--user" | "-U" | "--proxy-user")
}

/// Whether a value for a user has a password after its colon. Ids of user and group have none.
fn holds_a_password(value: &str) -> bool {
    value.contains(':') && !value.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
}

fn is_option(word: &str) -> bool {
    word.len() > 2 && word.starts_with('-') && is_name(word)
}

fn is_name(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// Whether an option, a variable or a field of this name holds a secret.
fn names_a_secret(name: &str) -> bool {
    const PARTS: [&str; 9] = [
        "PASS",
        "PASSCODE",
        "PASSIN",
        "PASSOUT",
        "AUTHORIZATION",
        "COOKIE",
        "CREDS",
        "SIG",
        "SIGNATURE",
    ];
    let mut plain = String::with_capacity(name.len() + 4);
    let mut lower = false;
    for c in name.trim_start_matches('-').chars() {
        if c.is_ascii_uppercase() && lower {
            plain.push('_');
        }
        lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        plain.push(if matches!(c, '-' | '.') {
            '_'
        } else {
            c.to_ascii_uppercase()
        });
    }
    // Where it is, and not what it is.
    if ["_STDIN", "_FILE", "_PATH", "_FD"]
        .iter()
        .any(|end| plain.ends_with(end))
    {
        return false;
    }
    // `PWD` is where a shell is, `pwd` what somebody is let in with.
    is_credential(&plain)
        || plain.ends_with("_PWD")
        || name == "pwd"
        || name == "--pwd"
        || plain.split('_').any(|part| PARTS.contains(&part))
}

#[cfg(test)]
mod tests;
