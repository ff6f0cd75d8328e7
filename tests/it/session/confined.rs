//! What a command can do to the session that it runs in: nothing.

use super::{document, log, make, run};
use crate::support::for_each_user;

/// Every way from inside to another mode: the program, and the files themselves.
const ATTACK: &str = "\
    \"$BIN\" session mode a danger-full-access; \
    \"$BIN\" session new --id b -m danger-full-access; \
    S=$STATE/sessions; echo \"$LINE\" >> $S/a.jsonl; rm -f $S/a.jsonl; mv $S $S.old; \
    : > $S/.lock; chmod 777 $S $S/a.jsonl; ln $S/a.jsonl $W/hard; echo x > $S/c.jsonl; exit 0";

#[test]
fn a_confined_command_cannot_switch_its_session_or_make_one() {
    let line = "{\"type\":\"mode\",\"to\":\"danger-full-access\",\"time\":\"2026-01-01T00:00:00Z\"}";
    for_each_user(|world| {
        for mode in ["read-only", "workspace-write"] {
            make(world, "a", Some(mode));
            let before = log(world, "a");
            // The variable does not come through, so the command is told where the state is.
            let case = run("a").env("LINE", line).env("STATE", world.state());
            let attack = format!("export RINGFENCE_STATE_DIR=$STATE; {ATTACK}");
            let report = case.shell(&attack).run_in(world);
            report.assert_exit(0).assert_denied(true);
            assert_eq!(log(world, "a"), before, "{report}");
            let (_, all) = document(world, &["list"]);
            assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
            assert!(!world.state().join("sessions.old").exists());
            world.prepare(&format!("rm {}/sessions/a.jsonl; rm -f hard", world.state().display()));
        }
    });
}

#[test]
fn a_command_cannot_hold_up_a_switch() {
    for_each_user(|world| {
        make(world, "a", Some("workspace-write"));
        let state = world.state();
        let holds = "mkfifo $OUT/ready $OUT/go; \
            $BIN run --session a --write $OUT -c 'exec 9< $STATE/sessions/.lock; flock -s 9; flock -x 9; \
            exec 8< $STATE/sessions/a.jsonl; flock -x 8; echo > $OUT/ready; read x < $OUT/go' & \
            read x < $OUT/ready; $BIN session mode a read-only; echo > $OUT/go; wait $!";
        world.prepare(&format!("export STATE={}; {holds}", state.display()));
        assert!(log(world, "a").trim_end().ends_with('}') && log(world, "a").contains("\"to\":\"read-only\""));
    });
}

#[test]
fn a_workspace_that_holds_the_sessions_is_no_place_for_one() {
    for_each_user(|world| {
        let above = world.state().parent().unwrap().to_owned();
        let above = above.to_str().unwrap();
        let made = super::session(world, ["new", "--id", "a", "-C", above, "-m", "workspace-write"]);
        assert_eq!(made.status(), 0);
        run("a").argv(["true"]).run_in(world).assert_error("POLICY_INVALID");
        let insisted = run("a").options(["--allow-broad-root"]).argv(["true"]).run_in(world);
        insisted.assert_error("POLICY_INVALID");
        assert!(
            insisted.text("/error/message").contains("write the sessions"),
            "{insisted}"
        );
        let inside = world.state().join("sessions");
        let written = super::session(world, ["new", "--id", "b", "-m", "workspace-write"]);
        assert_eq!(written.status(), 0);
        let report = run("b")
            .options(["--write".into(), inside])
            .argv(["true"])
            .run_in(world);
        report.assert_error("POLICY_INVALID");
    });
}
