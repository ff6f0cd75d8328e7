//! Many at once, and ends at any moment: no event is lost, torn or doubled.

use super::{document, log, make};
use crate::support::for_each_user;

#[test]
fn many_processes_switch_and_run_at_once_and_no_event_is_lost() {
    let many = "\
        for i in $(seq 20); do \
          $BIN session mode a workspace-write > /dev/null & all+=($!); \
          $BIN session mode a read-only > /dev/null & all+=($!); \
          $BIN run --session b -c 'echo x > new' 2> /dev/null & all+=($!); \
          $BIN session new > /dev/null & all+=($!); \
        done; failed=0; for p in ${all[@]}; do wait $p || failed=$((failed + 1)); done; echo $failed";
    for_each_user(|world| {
        make(world, "a", None);
        make(world, "b", Some("read-only"));
        // The runs are refused the write, and nothing else fails.
        assert_eq!(world.prepare(many).trim(), "20");
        assert!(!world.inside("new").exists());
        let (_, a) = document(world, &["show", "a"]);
        let events = a["events"].as_array().unwrap();
        assert_eq!(events.len(), 41);
        let of = |mode: &str| events.iter().filter(|event| event["to"] == mode).count();
        assert_eq!((of("workspace-write"), of("read-only")), (20, 20));
        assert_eq!(a["mode"], events[40]["to"], "the last one wins");
        let (_, b) = document(world, &["show", "b"]);
        assert_eq!(b["events"].as_array().unwrap().len(), 1, "no other session is touched");
        let (_, all) = document(world, &["list"]);
        assert_eq!(all.as_array().unwrap().len(), 22);
    });
}

#[test]
fn one_name_is_given_once_however_many_ask() {
    let race = "for i in $(seq 16); do $BIN session new --id one -m read-only > /dev/null 2>&1 & all+=($!); done; \
        made=0; for p in ${all[@]}; do wait $p && made=$((made + 1)); done; echo $made";
    for_each_user(|world| {
        assert_eq!(world.prepare(race).trim(), "1");
        assert_eq!(log(world, "one").lines().count(), 1);
    });
}

#[test]
fn a_switch_that_is_killed_at_any_moment_leaves_a_session_that_can_be_read() {
    // The longer the shell counts, the further the switch has got.
    let killed = "\
        for i in $(seq 100); do \
          $BIN session mode a workspace-write > /dev/null & p=$!; \
          for ((k = 0; k < i * 30; k++)); do :; done; \
          kill -9 $p 2> /dev/null || :; wait $p 2> /dev/null || :; \
          $BIN session show a > /dev/null || { echo unreadable after $i; exit 1; }; \
        done; $BIN session mode a read-only";
    for_each_user(|world| {
        make(world, "a", None);
        world.prepare(killed);
        let (status, a) = document(world, &["show", "a"]);
        assert_eq!((status, &a["mode"]), (0, &"read-only".into()));
        let log = log(world, "a");
        assert_eq!(log.lines().count(), a["events"].as_array().unwrap().len());
        assert!(log.ends_with("}\n"), "{log}");
    });
}
