//! Secrets that are known by their shape or their place.

/// How a token begins, and how many characters follow at least.
const BEGINNINGS: [(&str, usize); 27] = [
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("gldt-", 16),
    ("glrt-", 16),
    ("glptt-", 16),
    ("sk-", 16),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("xoxa-", 8),
    ("xoxb-", 8),
    ("xoxe-", 8),
    ("xoxp-", 8),
    ("xoxr-", 8),
    ("xoxs-", 8),
    ("xapp-", 8),
    ("npm_", 30),
    ("pypi-", 40),
    ("hf_", 30),
    ("AIza", 35),
    ("dop_v1_", 32),
    ("SG.", 40),
];

/// A token in the first `length` bytes of a text, which are letters, digits, `_`, `-` and `.`: what comes
/// before it, and its length.
pub(super) fn token(text: &str, length: usize) -> Option<(usize, usize)> {
    let word = &text[..length];
    for begin in 0..length {
        // Inside of another word it is none, but a dash or a point may come before it.
        if begin > 0 && (word.as_bytes()[begin - 1].is_ascii_alphanumeric() || word.as_bytes()[begin - 1] == b'_') {
            continue;
        }
        if is_token(&word[begin..]) {
            return Some((begin, length - begin));
        }
    }
    None
}

fn is_token(word: &str) -> bool {
    let begins = |(beginning, least): &(&str, usize)| {
        word.strip_prefix(beginning).is_some_and(|rest| {
            rest.len() >= *least && (*beginning != "sk-" || rest.bytes().any(|it| it.is_ascii_digit()))
        })
    };
    BEGINNINGS.iter().any(begins) || is_access_key(word) || is_web_token(word)
}

/// The id of an access key of a cloud: `AKIA` or `ASIA` and sixteen more.
fn is_access_key(word: &str) -> bool {
    (word.starts_with("AKIA") || word.starts_with("ASIA"))
        && word.len() >= 20
        && word
            .bytes()
            .take(20)
            .all(|it| it.is_ascii_uppercase() || it.is_ascii_digit())
}

/// A JSON Web Token: three parts, of which two are JSON in base64.
fn is_web_token(word: &str) -> bool {
    let mut parts = word.split('.');
    let long = |part: Option<&str>| part.is_some_and(|part| part.len() >= 8 && part.starts_with("eyJ"));
    long(parts.next()) && long(parts.next())
}

/// The length of a private key in PEM at the beginning of a text.
pub(super) fn private_key(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("-----BEGIN ")?;
    let kind = rest.find("-----")?;
    if !rest[..kind].ends_with("PRIVATE KEY") {
        return None;
    }
    // Of one that was cut off the rest is the secret.
    let end = rest.find("-----END ").and_then(|at| {
        let closing = &rest[at + 9..];
        closing.find("-----").map(|length| at + 9 + length + 5)
    });
    Some(end.map_or(text.len(), |end| 11 + end))
}

/// The length of what stands between `://` and `@`, when it is more than the name of a user.
/// `before` ends with the `://`.
pub(super) fn user_info(before: &str, text: &str) -> Option<usize> {
    let authority = text
        .find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>' | '`'))
        .map_or(text, |end| &text[..end]);
    let length = authority.rfind('@')?;
    let scheme = before.strip_suffix("://")?;
    let by_key = ["ssh", "git", "sftp"].iter().any(|name| scheme.ends_with(name));
    let is_name = by_key && !authority[..length].contains(':');
    (length > 0 && !is_name).then_some(length)
}
