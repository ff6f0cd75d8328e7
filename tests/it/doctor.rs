//! `ringfence doctor`: what it says of the host, of what stands beside a run, and what it leaves alone.

mod brokers;
mod hard_links;

use serde_json::Value;

use crate::support::{CONTAINER, Outcome, World, for_each_user};

/// What `doctor` says with these options, in this environment.
fn doctor(world: &World, inside: &[&str], options: &[&str], env: &[(&str, &str)]) -> Outcome {
    let mut words = inside.iter().map(|word| world.expand(word.as_ref()));
    let mut command = match words.next() {
        Some(wrapper) => {
            let mut command = world.command(wrapper);
            command.args(words).arg(world.program());
            command
        }
        None => world.command(world.program()),
    };
    command
        .arg("doctor")
        .args(options.iter().map(|word| world.expand(word.as_ref())))
        .envs(env.iter().map(|(name, value)| (name, world.expand(value.as_ref()))));
    let outcome = world.outcome(command);
    eprintln!("{outcome}");
    outcome.assert_no_panic();
    outcome
}

/// The document of `doctor --json`.
fn document(world: &World, inside: &[&str], options: &[&str], env: &[(&str, &str)]) -> Value {
    let outcome = doctor(world, inside, &[&["--json"], options].concat(), env);
    let text = outcome.stdout();
    assert_eq!(text.lines().count(), 1, "{outcome}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("no document: {error}\n{outcome}"))
}

/// The rows of a part of a document.
fn rows<'a>(document: &'a Value, part: &str) -> &'a Vec<Value> {
    document[part].as_array().unwrap_or_else(|| panic!("no {part}"))
}

#[test]
fn every_row_says_whether_it_works_why_what_it_costs_and_what_to_do() {
    for_each_user(|world| {
        for inside in [&[][..], &CONTAINER] {
            let document = document(world, inside, &[], &[]);
            for (part, keys) in [
                ("layers", ["layer", "available", "detail", "cost", "advice"]),
                ("evidence", ["layer", "available", "detail", "cost", "advice"]),
                ("backends", ["backend", "usable", "reason", "cost", "advice"]),
                ("modes", ["mode", "enforcement", "reason", "cost", "advice"]),
            ] {
                assert!(!rows(&document, part).is_empty());
                for row in rows(&document, part) {
                    for key in keys {
                        assert!(row.get(key).is_some(), "no {key} in {row}");
                    }
                }
            }
            for mode in rows(&document, "modes") {
                let open = !mode["ungoverned"].as_array().unwrap().is_empty();
                assert_eq!(mode["reason"].is_string(), open, "{mode}");
                assert_eq!(mode["advice"].is_string(), open, "{mode}");
            }
        }
    });
}

#[test]
fn the_exit_status_says_whether_workspace_write_is_enforced_in_full() {
    for_each_user(|world| {
        let here = doctor(world, &[], &[], &[]);
        assert_eq!(here.status(), 0, "{here}");
        assert!(
            here.stdout().contains("\n  workspace-write    full enforcement\n"),
            "{here}"
        );
        let there = doctor(world, &CONTAINER, &[], &[]);
        assert_eq!(there.status(), 1, "{there}");
        assert!(there.stdout().contains("not governed: devices"), "{there}");
    });
}

#[test]
fn nothing_that_doctor_says_suggests_running_without_confinement() {
    for_each_user(|world| {
        for inside in [&[][..], &CONTAINER] {
            let document = document(world, inside, &[], &[]);
            let said = document.to_string();
            // The mode is named where modes are listed, and by the backend that serves it alone.
            let rest = said
                .replace("\"mode\":\"danger-full-access\"", "")
                .replace("for danger-full-access alone", "");
            assert!(!rest.contains("danger-full-access"), "{said}");
        }
    });
}

#[test]
fn a_workspace_that_cannot_be_opened_is_an_error_and_no_finding() {
    for_each_user(|world| {
        for name in ["$W/none", "", "$BIN"] {
            let words = doctor(world, &[], &["-C", name], &[]);
            assert_eq!(words.status(), 2, "{words}");
            assert!(words.stdout().is_empty(), "{words}");
            assert!(words.stderr().contains("[POLICY_INVALID]"), "{words}");
            assert!(words.stderr().contains("hint: "), "{words}");
            let document = document(world, &[], &["--workspace", name], &[]);
            assert_eq!(document["error"]["code"], "POLICY_INVALID", "{document}");
        }
    });
}

#[test]
fn a_directory_that_is_gone_leaves_the_rest_of_the_findings() {
    for_each_user(|world| {
        let gone = ["bash", "-c", "mkdir gone; cd gone; rmdir ../gone; exec \"$@\"", "-"];
        let document = document(world, &gone, &[], &[]);
        assert_eq!(document["modes"][1]["enforcement"], "full", "{document}");
        assert_eq!(document["hardLinks"]["workspace"], Value::Null);
        assert_eq!(document["hardLinks"]["complete"], false);
        assert!(document["hardLinks"]["detail"].is_string(), "{document}");
    });
}
