//! Whether what happened to a trail is found, and with what status.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{audit, objects, run, segment};
use crate::support::{World, for_each_user};

/// Verifies, and gives the status and the document.
fn verify(world: &World, words: &[&str]) -> (i32, Value) {
    let outcome = audit(world, &[&["verify", "--json"], words].concat());
    let verdict: Value = serde_json::from_str(&outcome.stdout()).unwrap();
    assert_eq!(outcome.status() == 0, verdict["verified"] == true, "{outcome}");
    (outcome.status(), verdict)
}

#[test]
fn an_untouched_trail_verifies_and_continues_its_checkpoint() {
    for_each_user(|world| {
        run(world, "true");
        let key = audit(world, &["key", "$OUT/key"]);
        assert_eq!(key.status(), 0, "{key}");
        let mode = fs::metadata(world.outside("key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let vkey = key.stdout().trim_end().to_owned();
        assert_eq!(
            audit(world, &["key", "$OUT/key"]).status(),
            2,
            "a key is never written over"
        );
        for (name, words) in [
            ("plain", &["checkpoint"][..]),
            ("signed", &["checkpoint", "--key", "$OUT/key"]),
        ] {
            fs::write(world.outside(name), audit(world, words).stdout()).unwrap();
        }
        let plain = fs::read_to_string(world.outside("plain")).unwrap();
        let lines: Vec<_> = plain.lines().collect();
        assert!(
            lines[0].starts_with("ringfence/") && lines[1] == "2" && lines[2].len() == 44,
            "{plain}"
        );
        run(world, "true");
        assert_eq!(verify(world, &[]).0, 0);
        let (status, verdict) = verify(world, &["--against", "$OUT/signed", "--vkey", &vkey]);
        assert_eq!(
            (status, &verdict["last"], &verdict["proven"]),
            (0, &json!(4), &json!(2))
        );
        assert_eq!(verify(world, &["--against", "$OUT/plain"]).0, 0);
        let (status, verdict) = verify(world, &["--against", "$OUT/plain", "--vkey", &vkey]);
        assert_eq!((status, &verdict["fault"]["kind"]), (6, &json!("unsigned")));
    });
}

#[test]
fn a_checkpoint_that_could_not_be_written_down_is_no_success() {
    for_each_user(|world| {
        run(world, "true");
        let mut command = world.command(world.program());
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        command.args(["audit", "checkpoint"]).stdout(full);
        let status = command.status().unwrap();
        assert_eq!(status.code(), Some(5));
    });
}

#[test]
fn a_key_that_others_can_read_does_not_sign() {
    for_each_user(|world| {
        run(world, "true");
        audit(world, &["key", "$OUT/key"]);
        fs::set_permissions(world.outside("key"), fs::Permissions::from_mode(0o644)).unwrap();
        let outcome = audit(world, &["checkpoint", "--key", "$OUT/key"]);
        assert_eq!(outcome.status(), 2, "{outcome}");
        assert!(outcome.stdout().is_empty(), "{outcome}");
    });
}

#[test]
fn what_was_done_to_a_trail_is_told_by_kind_and_place() {
    for_each_user(|world| {
        for _ in 0..3 {
            run(world, "true");
        }
        let path = segment(world);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(world.outside("checkpoint"), audit(world, &["checkpoint"]).stdout()).unwrap();
        let spoil = |kind: &str, words: &[&str], edit: &dyn Fn(&mut Vec<String>)| {
            let mut lines: Vec<_> = whole.lines().map(|line| line.to_owned() + "\n").collect();
            edit(&mut lines);
            fs::write(&path, lines.concat()).unwrap();
            let (status, verdict) = verify(world, words);
            assert_eq!((status, &verdict["fault"]["kind"]), (6, &json!(kind)));
            let words: Vec<_> = std::iter::once("verify").chain(words.iter().copied()).collect();
            assert!(audit(world, &words).stdout().starts_with("The trail does not verify: "));
            fs::write(&path, &whole).unwrap();
        };
        spoil("changed", &[], &|lines| {
            lines[2] = lines[2].replace("read", "Read").replace("write", "Write");
        });
        spoil("removed", &[], &|lines| drop(lines.remove(2)));
        spoil("reordered", &[], &|lines| lines.swap(2, 3));
        spoil("foreign", &[], &|lines| lines.insert(2, "{}\n".to_owned()));
        spoil("truncated", &["--against", "$OUT/checkpoint"], &|lines| {
            lines.truncate(4);
        });
        spoil("removed", &[], &|lines| drop(lines.drain(..3)));
        // Cut off and grown again, each line bound to the one before.
        let kept: String = whole.lines().take(2).map(|line| line.to_owned() + "\n").collect();
        fs::write(&path, kept).unwrap();
        for _ in 0..3 {
            run(world, "true");
        }
        assert_eq!(verify(world, &[]).0, 0);
        let (status, verdict) = verify(world, &["--against", "$OUT/checkpoint"]);
        assert_eq!((status, &verdict["fault"]["kind"]), (6, &json!("rewritten")));
    });
}

#[test]
fn a_torn_end_is_told_and_the_next_run_goes_on_after_it() {
    for_each_user(|world| {
        run(world, "true");
        let path = segment(world);
        let mut whole = fs::read(&path).unwrap();
        whole.extend_from_slice(b"{\"v\":1,\"seq\":3,\"i");
        fs::write(&path, &whole).unwrap();
        let (status, verdict) = verify(world, &[]);
        assert_eq!(
            (status, &verdict["last"], &verdict["tornBytes"]),
            (0, &json!(2), &json!(17))
        );
        let said = audit(world, &["verify"]).stdout();
        assert!(said.contains("up to record 2; 17 torn bytes after it"), "{said}");
        run(world, "true");
        let (status, verdict) = verify(world, &[]);
        assert_eq!(
            (status, &verdict["last"], &verdict["tornBytes"], &verdict["mended"]),
            (0, &json!(5), &json!(0), &json!(1))
        );
        let torn = objects(&audit(world, &["list", "--type", "audit.torn", "--json"]));
        assert_eq!((torn.len(), &torn[0]["bytes"]), (1, &json!(18)));
    });
}

#[test]
fn a_corrupt_line_in_the_middle_hides_nothing_else() {
    for_each_user(|world| {
        for _ in 0..2 {
            run(world, "true");
        }
        let path = segment(world);
        let text = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines[1] = "\0".repeat(lines[1].len());
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        run(world, "true");
        let outcome = audit(world, &["list", "--json"]);
        assert_eq!(objects(&outcome).len(), 5);
        assert!(outcome.stderr().contains("line 2 is no record"), "{outcome}");
        let (status, verdict) = verify(world, &[]);
        assert_eq!(
            (status, &verdict["fault"]["kind"], &verdict["fault"]["line"]),
            (6, &json!("changed"), &json!(2))
        );
        assert_eq!(audit(world, &["checkpoint"]).status(), 6);
    });
}

#[test]
fn the_chain_can_be_followed_with_the_tools_of_the_system() {
    for_each_user(|world| {
        for _ in 0..2 {
            run(world, "true");
        }
        let script = "cd \"$RINGFENCE_STATE_DIR/audit\"; prev=$(printf '0%.0s' {1..64}); n=0; \
            while IFS= read -r line; do n=$((n+1)); [[ $line == *\"\\\"prev\\\":\\\"$prev\\\"}\" ]] || exit 9; \
            prev=$(printf %s \"$line\" | sha256sum | cut -c1-64); done < *.jsonl; echo $n";
        assert_eq!(world.prepare(script), "4\n");
    });
}
