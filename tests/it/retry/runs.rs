//! What an approved run may do, and what is told of it.

use std::fs;

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};
use serde_json::json;

use super::{YES, deploy_hook, finished, of_type, retry, trail};
use crate::config::of_the_user;
use crate::support::{Case, for_each_user};

#[test]
fn an_approved_root_can_be_written_and_nothing_else_changes() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        world.prepare("mkdir $HOME/other");
        let run = finished(world, "touch $OUT/new; touch $HOME/other/new; touch inside");
        let (outcome, report) = retry(world, &run, &["--write", "$OUT"]);
        assert_eq!(report["sandbox"]["mode"], "workspace-write", "{outcome}");
        assert!(world.outside("new").exists() && world.inside("inside").exists());
        assert!(
            !world.home().join("other/new").exists(),
            "only what was approved is open"
        );
        assert_eq!(
            report["sandbox"]["denials"][0]["path"],
            json!(world.home().join("other/new"))
        );
        assert_ne!(report["runId"], json!(run), "it is a run of its own");
    });
}

#[test]
fn an_approved_mode_holds_for_one_run() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        let report = Case::new(ReadOnly).shell("touch inside").run_in(world);
        let run = report.field("/runId").as_str().unwrap().to_owned();
        assert!(!world.inside("inside").exists());
        let (outcome, report) = retry(world, &run, &["--mode", "workspace-write"]);
        assert_eq!(report["exitCode"], 0, "{outcome}");
        assert!(world.inside("inside").exists());
        fs::remove_file(world.inside("inside")).unwrap();
        Case::new(ReadOnly)
            .shell("touch inside; exit 0")
            .run_in(world)
            .assert_exit(0);
        assert!(!world.inside("inside").exists(), "the next run is as strict as before");
    });
}

#[test]
fn question_answer_use_and_run_stand_in_the_trail_in_this_order() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        let run = finished(world, "touch $OUT/new");
        let (_, report) = retry(world, &run, &["--write", "$OUT"]);
        let records = trail(world);
        let at = |kind: &str| records.iter().rposition(|record| record["type"] == kind).unwrap();
        let order = [
            "approval.asked",
            "approval.decided",
            "approval.consumed",
            "run.start",
            "run.end",
        ]
        .map(at);
        assert!(order.is_sorted(), "{order:?}");
        let [asked, decided, consumed, start, _] = order.map(|place| &records[place]);
        assert_eq!(decided["outcome"], "allowed-once");
        assert_eq!(decided["by"]["kind"], "hook");
        for record in [asked, decided, consumed] {
            assert_eq!((&record["run"], &record["digest"]), (&json!(run), &asked["digest"]));
        }
        assert_eq!((&start["run"], &start["retryOf"]), (&report["runId"], &json!(run)));
        assert_eq!(start["approval"], asked["request"]);
    });
}

#[test]
fn somebody_elsewhere_answers_what_waits_in_the_queue() {
    for_each_user(|world| {
        // Whoever is told of the request reads the list and answers, as a person would.
        let does = format!(
            "os.environ['RINGFENCE_STATE_DIR'] = {:?}\n\
             bin = {:?}\n\
             listed = json.loads(subprocess.check_output([bin, 'approvals', 'list', '--json']))\n\
             assert [it['id'] for it in listed] == [asked['id']] and listed[0]['state'] == 'pending', listed\n\
             open({:?}, 'w').write(json.dumps(listed[0]))\n\
             subprocess.check_call([bin, 'approve', asked['id'], '--yes', '--reason', 'seen by the test'])",
            world.state(),
            world.program(),
            world.outside("listed"),
        );
        let hook = deploy_hook(world, &does, "");
        of_the_user(
            world,
            &format!("[approval]\nanswerers = [\"queue\"]\nnotify = [{hook:?}]\n"),
        );
        let run = finished(world, "touch $OUT/new");
        let (outcome, report) = retry(world, &run, &["--write", "$OUT", "--answer", "queue", "--wait", "20s"]);
        assert_eq!(report["exitCode"], 0, "{outcome}");
        assert!(world.outside("new").exists());
        assert!(
            outcome.stderr().contains("`ringfence approve "),
            "who waits is told how it is answered: {outcome}"
        );
        let listed: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(world.outside("listed")).unwrap()).unwrap();
        assert_eq!(listed["run"], json!(run));
        assert_eq!(listed["argv"], json!(["bash", "-c", "touch $OUT/new"]));
        assert_eq!(listed["workdir"], json!(world.workspace()));
        assert_eq!(listed["difference"], json!({"addWrite": world.beside()}));
        assert_eq!(listed["justification"], "the test needs it");
        assert!(listed["expiresAt"].as_str().unwrap().ends_with('Z'), "{listed}");
        let mut show = world.command(world.program());
        show.args(["approvals", "show", listed["id"].as_str().unwrap()]);
        let shown = world.outcome(show).stdout();
        assert!(
            shown.contains("consumed") && !shown.contains("approval needed"),
            "{shown}"
        );
        let records = trail(world);
        let decided = of_type(&records, "approval.decided");
        assert_eq!(decided[0]["by"]["kind"], "queue");
        assert_eq!(decided[0]["by"]["assurance"], "asserted");
    });
}

#[test]
fn what_the_first_run_had_is_what_the_second_one_has() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        fs::create_dir(world.inside("sub")).unwrap();
        fs::write(world.inside("input"), "from the file\n").unwrap();
        let text = "{ pwd; cat; echo \"$GIVEN\"; ulimit -n; echo \"${LEFT-none}\"; } | tee $OUT/said";
        let report = Case::new(WorkspaceWrite)
            .options(["--workdir", "sub", "--stdin", "$W/input", "--env", "GIVEN=a value"])
            .options(["--limit", "nofile=77", "--unset-env", "LEFT", "--network", "none"])
            .env("LEFT", "out")
            .shell(text)
            .run_in(world);
        let run = report.field("/runId").as_str().unwrap().to_owned();
        let mut command = super::retry_command(world, &run, &["--write", "$OUT", "--env", "GIVEN=a value"]);
        command.env("LEFT", "out");
        let outcome = world.outcome(command);
        let report: serde_json::Value = serde_json::from_str(&outcome.stdout()).unwrap();
        let expected = format!("{}\nfrom the file\na value\n77\nnone\n", world.inside("sub").display());
        assert_eq!(report["stdout"]["text"], json!(expected), "{outcome}");
        assert_eq!(fs::read_to_string(world.outside("said")).unwrap(), expected);
        let open = report["sandbox"]["notConfined"].as_array().unwrap();
        assert!(
            !open.contains(&json!("network")),
            "a door that was closed stays closed: {open:?}"
        );
    });
}

#[test]
fn words_of_any_bytes_are_run_again_byte_for_byte() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        let odd = OsString::from_vec(b"\xff\n'\x1b[31m".to_vec());
        let script: OsString = "printf %s \"$1\" > \"$OUT\"/got".into();
        let report = Case::new(WorkspaceWrite)
            .argv(["bash".into(), "-c".into(), script, "bash".into(), odd.clone()])
            .run_in(world);
        let run = report.field("/runId").as_str().unwrap().to_owned();
        let (outcome, _) = retry(world, &run, &["--write", "$OUT"]);
        assert_eq!(outcome.status(), 0, "{outcome}");
        assert_eq!(fs::read(world.outside("got")).unwrap(), odd.into_vec());
    });
}

#[test]
fn what_an_earlier_approval_opened_is_on_the_card_of_the_next() {
    for_each_user(|world| {
        deploy_hook(world, YES, "");
        world.prepare("mkdir -p $OUT/first $OUT/second");
        let run = finished(world, "touch $OUT/first/new; touch $OUT/second/new; exit 0");
        let (outcome, document) = retry(world, &run, &["--write", "$OUT/first"]);
        assert_eq!(outcome.status(), 0, "{outcome}");
        let look = format!(
            "assert any('first' in it and 'as before' in it for it in asked['keeps']), asked\n\
             assert any('approved as a looser one itself' in it for it in asked['notes']), asked\n{YES}"
        );
        deploy_hook(world, &look, "");
        let again = document["runId"].as_str().unwrap();
        let (outcome, _) = retry(world, again, &["--write", "$OUT/second"]);
        assert_eq!(outcome.status(), 0, "{outcome}");
        assert!(world.outside("second/new").exists());
    });
}

#[test]
fn what_the_words_of_a_command_do_not_show_is_noted_on_the_card() {
    for_each_user(|world| {
        fs::write(world.inside("input"), "touch $OUT/new").unwrap();
        let look = format!(
            "assert any('/input' in it for it in asked['notes']), asked\n\
             assert any('BASH_ENV' in it and 'hidden' not in it for it in asked['notes']), asked\n{YES}"
        );
        deploy_hook(world, &look, "");
        let case = Case::new(WorkspaceWrite).options(["--stdin", "$W/input", "--env", "BASH_ENV=/hidden"]);
        let report = case.argv(["sh"]).run_in(world);
        let run = report.field("/runId").as_str().unwrap().to_owned();
        let (outcome, _) = retry(world, &run, &["--write", "$OUT", "--env", "BASH_ENV=/hidden"]);
        assert_eq!(outcome.status(), 0, "{outcome}");
    });
}
