//! What `doctor` says of a deployment, and of approvals that nobody could give.

use serde_json::Value;

use super::{of_the_user, users};
use crate::support::{World, for_each_user};

fn deployment(world: &World) -> (Value, String) {
    let run = |json: bool| {
        let mut command = world.command(world.program());
        command.arg("doctor").args(json.then_some("--json"));
        let outcome = world.outcome(command);
        outcome.assert_no_panic();
        outcome.stdout()
    };
    let document: Value = serde_json::from_str(&run(true)).unwrap();
    (document["deployment"].clone(), run(false))
}

#[test]
fn approvals_that_nobody_could_give_are_warned_of() {
    for_each_user(|world| {
        let (row, _) = deployment(world);
        assert_eq!(row["approvals"]["answerers"], serde_json::json!(["tty", "queue"]));
        assert!(row["approvals"]["advice"].is_null() && row["files"].as_array().unwrap().is_empty());

        of_the_user(world, "[approval]\nanswerers = [\"hook\"]\nhook = [\"/none/ask\"]\n");
        let (row, text) = deployment(world);
        assert_eq!(row["files"][0]["path"], users(world).to_str().unwrap());
        assert_eq!(row["approvals"]["answerers"], serde_json::json!([]));
        assert!(row["approvals"]["advice"].is_string(), "{row}");
        assert!(
            text.contains("nobody can answer") && text.contains("/none/ask is not there"),
            "{text}"
        );

        of_the_user(world, "[approval]\nanswerers = [\"hook\"]\nhook = [\"/bin/true\"]\n");
        assert!(deployment(world).0["approvals"]["advice"].is_null());
        of_the_user(world, "[approval]\nanswerers = []\npolicy = \"never\"\n");
        let (row, text) = deployment(world);
        assert!(row["approvals"]["advice"].is_null(), "that is what was asked for");
        assert!(text.contains("every request is rejected"), "{text}");
    });
}

#[test]
fn a_file_that_lets_nothing_run_is_told_with_the_way_out() {
    for_each_user(|world| {
        of_the_user(world, "cieling = \"read-only\"\n");
        let (row, text) = deployment(world);
        assert!(row["error"].as_str().unwrap().contains("cieling"), "{row}");
        assert!(text.contains("did you mean `ceiling`?"), "{text}");
    });
}
