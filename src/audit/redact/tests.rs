//! Secrets that go, and words that only look like them, which stay.

use super::*;

const SECRET: &str = "hunter2hunter2hunter2";

fn words(words: &[&str]) -> Vec<String> {
    redacted(&words.iter().map(OsString::from).collect::<Vec<_>>())
}

#[test]
fn a_secret_that_a_name_comes_before_is_replaced_and_the_rest_stays() {
    let s = SECRET;
    let cases = [
        (format!("API_KEY={s} make all"), "API_KEY=[redacted] make all"),
        (format!("x --password {s} y"), "x --password [redacted] y"),
        (format!("x --token={s} y"), "x --token=[redacted] y"),
        (
            format!("x 'Server=y;pwd={s};' PWD=/a"),
            "x 'Server=y;pwd=[redacted];' PWD=/a",
        ),
        (
            format!("curl 'https://y/z?sv=1&sig={s}'"),
            "curl 'https://y/z?sv=1&sig=[redacted]'",
        ),
        (format!("x --accessToken={s}&y=1"), "x --accessToken=[redacted]&y=1"),
        (
            format!("export DB_PASSWORD='{s} with a space'; y"),
            "export DB_PASSWORD=[redacted]; y",
        ),
        (format!("A_TOKEN={s}\"{s}\"{s} y"), "A_TOKEN=[redacted] y"),
        (format!("echo \"A_TOKEN={s} {s}\" y"), "echo \"A_TOKEN=[redacted]\" y"),
        (
            format!("curl -H 'Authorization: Bearer {s}' y"),
            "curl -H 'Authorization: [redacted]' y",
        ),
        (format!("curl -u me:{s} y"), "curl -u [redacted] y"),
        (
            format!("Authorization: Basic {s}\nHost: y"),
            "Authorization: [redacted]\nHost: y",
        ),
        (
            format!("it said bearer {s} and so on"),
            "it said bearer [redacted] and so on",
        ),
        (
            format!("{{\"client_secret\": \"{s}\", \"x\": 1}}"),
            "{\"client_secret\": [redacted], \"x\": 1}",
        ),
        (
            format!("-d \"{{\\\"token\\\": \\\"{s}\\\"}}\" y"),
            "-d \"{\\\"token\\\": [redacted]}\" y",
        ),
        (format!("https://me:{s}@host/path"), "https://[redacted]@host/path"),
        (
            format!("git clone https://{s}@host/path"),
            "git clone https://[redacted]@host/path",
        ),
        (
            format!("https://host/?token={s}&page=2"),
            "https://host/?token=[redacted]&page=2",
        ),
    ];
    for (given, expected) in cases {
        assert_eq!(text(&given), expected, "{given}");
        assert_eq!(text(expected), expected, "what was replaced stays so");
    }
}

#[test]
fn a_token_is_known_by_its_shape() {
    let tail = "0123456789abcdefABCDEF0123456789abcdefABCDEF";
    for begin in [
        "ghp_",
        "github_pat_",
        "glpat-",
        "sk-",
        "sk-ant-api03-",
        "xoxb-",
        "npm_",
        "AIza",
    ] {
        assert_eq!(text(&format!("a {begin}{tail} b")), "a [redacted] b", "{begin}");
        assert_eq!(text(&format!("a/{begin}{tail}")), "a/[redacted]", "{begin}");
    }
    assert_eq!(text("AKIAIOSFODNN7EXAMPLE!"), "[redacted]!");
    assert_eq!(text("x=eyJhbGciOiJI.eyJzdWIiOiIx.c2ln"), "x=[redacted]");
    let key = "a -----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY----- b";
    assert_eq!(text(key), "a [redacted] b");
    assert_eq!(text(&key[..50]), "a [redacted]");
}

#[test]
fn what_only_looks_like_a_secret_stays() {
    for plain in [
        "make KEYBOARD=us test",
        "ls task-0123456789abcdef0123",
        "git clone ssh://git@host/path",
        "https://host/a@b",
        "docker run -u 1000:1000 image",
        "docker login --password-stdin host",
        "monkey: see",
        "an audit of tokens and passwords",
        "-----BEGIN CERTIFICATE-----\nMIIB",
        "it's a key: this",
        "naïve 文件 \\",
    ] {
        assert_eq!(text(plain), plain);
    }
}

#[test]
fn the_word_after_an_option_is_replaced_whatever_it_holds() {
    assert_eq!(
        words(&["x", "--password", "-a b", "c"]),
        ["x", "--password", "[redacted]", "c"]
    );
    assert_eq!(words(&["x", "--token=a b,c;d"]), ["x", "--token=[redacted]"]);
    assert_eq!(
        words(&["env", "MY_SECRET=a b", "c"]),
        ["env", "MY_SECRET=[redacted]", "c"]
    );
    assert_eq!(
        words(&["/usr/bin/mysql", "-pabc", "-P", "1"]),
        ["/usr/bin/mysql", "-p[redacted]", "-P", "1"]
    );
    assert_eq!(
        words(&["sshpass", "-p", "abc", "ssh"]),
        ["sshpass", "-p", "[redacted]", "ssh"]
    );
    assert_eq!(words(&["curl", "-u", "a:b", "c"]), ["curl", "-u", "[redacted]", "c"]);
    assert_eq!(words(&["id", "-u", "nobody"]), ["id", "-u", "nobody"]);
    assert_eq!(words(&["docker", "login", "-p", "x"])[3], "[redacted]");
    assert_eq!(words(&["docker", "run", "-p", "80:80"])[3], "80:80");
    let shell = words(&["bash", "-c", "TOKEN=abc curl -H 'X-Api-Key: abc' host"]);
    assert_eq!(shell[2], "TOKEN=[redacted] curl -H 'X-Api-Key: [redacted]' host");
}

proptest::proptest! {
    #[test]
    fn any_text_can_be_read_and_none_is_changed_twice(given in "([A-Za-z=:'\" \\\\/@-]|token|KEY|é|://|-----BEGIN ){0,40}") {
        let once = text(&given);
        let _ = words(&["x", &given, "--token", &given]);
        proptest::prop_assert!(once.len() <= given.len() + MARK.len() * (given.len() + 1));
    }
}
