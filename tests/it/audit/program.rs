//! What the program says of the trail.

use serde_json::json;

use super::{audit, objects, run};
use crate::support::{for_each_user, names};

#[test]
fn a_run_is_listed_with_its_start_its_denials_and_its_end() {
    for_each_user(|world| {
        let report = run(world, "echo x > $OUT/new; exit 3");
        let id = report.text("/runId").to_owned();
        run(world, "true");
        let types = |words: &[&str]| -> Vec<String> {
            let all = objects(&audit(world, words));
            all.iter().map(|it| it["type"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(
            types(&["list", "--run", &id, "--json"]),
            ["run.start", "denial", "run.end"]
        );
        assert_eq!(types(&["show", &id, "--json"]), ["run.start", "denial", "run.end"]);
        assert_eq!(types(&["list", "--denied", "--json"]), ["denial", "run.end"]);
        assert_eq!(types(&["list", "--path", "$OUT/*", "--json"]), ["denial"]);
        assert_eq!(
            types(&["list", "--op", "create", "--since", "1h", "--json"]),
            ["denial"]
        );
        assert!(types(&["list", "--op", "mount", "--json"]).is_empty());
        assert!(types(&["list", "--since", "2199-01-01", "--json"]).is_empty());
        assert_eq!(types(&["list", "--type", "run.end", "--json"]).len(), 2);
        let shown = objects(&audit(world, &["show", "2", "--json"]));
        assert_eq!((&shown[0]["seq"], &shown[0]["type"]), (&json!(2), &json!("denial")));
        assert_eq!(shown[0]["path"], world.outside("new").to_str().unwrap());
        let words = audit(world, &["show", &id]).stdout();
        assert!(words.contains("record 1\n") && words.contains("record 3\n"), "{words}");
        let tail = objects(&audit(world, &["tail", "-n", "2", "--json"]));
        assert_eq!((&tail[0]["seq"], &tail[1]["seq"]), (&json!(4), &json!(5)));
    });
}

#[test]
fn what_is_counted_is_what_there_was() {
    for_each_user(|world| {
        for _ in 0..2 {
            run(world, "echo x > $OUT/new; exit 0");
        }
        let summary = &objects(&audit(world, &["summary", "--json"]))[0];
        assert_eq!(summary["records"], 6);
        assert_eq!(summary["types"], json!({"run.start": 2, "denial": 2, "run.end": 2}));
        assert_eq!(
            summary["deniedPaths"][0]["what"],
            world.outside("new").to_str().unwrap()
        );
        assert_eq!(summary["deniedPaths"][0]["count"], 2);
        assert_eq!(summary["commands"][0]["count"], 2);
        let words = audit(world, &["summary"]).stdout();
        assert!(words.contains("Denied, by path\n"), "{words}");
    });
}

#[test]
fn a_trail_that_is_not_there_is_not_made() {
    for_each_user(|world| {
        for (words, status) in [
            (&["list"][..], 0),
            (&["show", "1"], 1),
            (&["tail"], 1),
            (&["summary"], 1),
            (&["checkpoint"], 1),
            (&["prune", "--keep", "1d"], 1),
            (&["verify"], 6),
        ] {
            let outcome = audit(world, words);
            assert_eq!(outcome.status(), status, "{outcome}");
            let said = outcome.stdout() + &outcome.stderr();
            assert!(said.contains("there is no audit trail"), "{outcome}");
            assert!(!said.contains("changed"), "nobody is to be alarmed: {outcome}");
        }
        assert!(names(world.state()).is_empty());
    });
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    for_each_user(|world| {
        run(world, "true");
        for words in [
            &["list", "--since", "yesterday"][..],
            &["list", "--op", "look"],
            &["list", "--type", "run.ends"],
            &["prune"],
            &["prune", "--keep", "90"],
            &["prune", "--keep-bytes", "much"],
            &["verify", "--vkey", "x"],
            &["verify", "--against", "$OUT/none"],
            &["checkpoint", "--key", "$OUT/none"],
            &["show"],
        ] {
            let outcome = audit(world, words);
            assert_eq!(outcome.status(), 2, "{outcome}");
            assert!(!outcome.stderr().is_empty() && outcome.stdout().is_empty(), "{outcome}");
        }
        for what in ["99", "nobody", ""] {
            assert_eq!(audit(world, &["show", what]).status(), 1);
        }
    });
}

#[test]
fn control_characters_in_a_record_do_not_reach_the_terminal() {
    for_each_user(|world| {
        run(world, "echo x > $OUT/$'a\\e[2Jb\\n'; true $'\\e[2J'; exit 0");
        for words in [&["list"][..], &["show", "1"], &["show", "2"], &["tail"], &["summary"]] {
            let outcome = audit(world, words);
            assert_eq!(outcome.status(), 0, "{outcome}");
            assert!(!outcome.stdout().contains('\u{1b}'), "{outcome}");
        }
    });
}

#[test]
fn nothing_is_pruned_but_what_is_sealed_and_old() {
    for_each_user(|world| {
        run(world, "true");
        let before = names(world.state().join("audit"));
        for words in [&["prune", "--keep", "0s"][..], &["prune", "--keep-bytes", "0"]] {
            let outcome = audit(world, words);
            assert_eq!(outcome.status(), 0, "{outcome}");
            assert!(outcome.stdout().contains("Nothing was removed"), "{outcome}");
        }
        assert_eq!(names(world.state().join("audit")), before);
        assert_eq!(audit(world, &["verify"]).status(), 0);
    });
}

#[test]
fn what_is_pruned_is_gone_and_the_rest_continues_the_same_checkpoint() {
    for_each_user(|world| {
        run(world, "true");
        // The next run finds a segment that was begun, as if this one were full.
        world.prepare(": > \"$RINGFENCE_STATE_DIR/audit/0000000000000003.jsonl\"");
        run(world, "true");
        std::fs::write(world.outside("checkpoint"), audit(world, &["checkpoint"]).stdout()).unwrap();
        let outcome = audit(world, &["prune", "--keep-bytes", "1"]);
        assert_eq!(outcome.status(), 0, "{outcome}");
        assert!(
            outcome.stdout().contains("Records up to 2 were removed: 1 file and"),
            "{outcome}"
        );
        assert_eq!(names(world.state().join("audit")), ["0000000000000003.jsonl", "lock"]);
        let pruned = objects(&audit(world, &["list", "--type", "audit.pruned", "--json"]));
        assert_eq!((&pruned[0]["seq"], &pruned[0]["through"]), (&json!(5), &json!(2)));
        run(world, "true");
        let verified = audit(world, &["verify", "--against", "$OUT/checkpoint"]);
        assert_eq!(verified.status(), 0, "{verified}");
        assert!(verified.stdout().contains("records 3 to 7"), "{verified}");
    });
}

#[test]
fn a_secret_in_a_command_is_not_in_the_trail() {
    for_each_user(|world| {
        run(
            world,
            "true --password hunter2; API_TOKEN=hunter2 true; true https://me:hunter2@host",
        );
        let line = std::fs::read_to_string(super::segment(world)).unwrap();
        assert!(!line.contains("hunter2") && line.contains("[redacted]"), "{line}");
    });
}
