//! A program that answers, and the many ways in which it does not.

use std::os::unix::fs::{PermissionsExt, chown};

use super::asker::Asker;
use crate::support::{World, for_each_user};

/// What whoever asks is told when the hook is this script.
fn told(world: &World, script: &str, timeout: &str) -> String {
    let hook = world.outside("hook");
    std::fs::write(&hook, format!("#!/bin/sh\n{script}\n")).unwrap();
    set_up(world, &hook);
    Asker::start(world, &[("ASK_HOOK", hook.to_str().unwrap()), ("ASK_TIMEOUT", timeout)]).result()
}

fn set_up(world: &World, hook: &std::path::Path) {
    std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    chown(hook, Some(world.uid()), Some(world.gid())).unwrap();
}

/// Reads the request and answers this decision for it.
fn answers(decision: &str) -> String {
    format!(
        r#"digest=$(sed 's/.*"digest":"\([0-9a-f]*\)".*/\1/')
printf '{{"decision":"{decision}","digest":"%s","by":"u","reason":"so"}}' "$digest""#
    )
}

#[test]
fn a_hook_decides_for_the_request_that_it_was_shown() {
    for_each_user(|world| {
        assert_eq!(told(world, &answers("allow-once"), "60000"), "permitted");
        let refused = told(world, &answers("reject"), "60000");
        assert!(
            refused.starts_with("rejected-by-program") && refused.ends_with(": so"),
            "{refused}"
        );
    });
}

#[test]
fn whatever_else_a_hook_does_is_no_answer() {
    for_each_user(|world| {
        for (script, why) in [
            ("exit 1", "it failed"),
            ("kill -9 $$", "it failed"),
            ("echo rubbish", "cannot be read"),
            (r#"echo '{"decision":"allow-always","digest":""}'"#, "cannot be read"),
            (r#"echo '{"decision":"allow-once","digest":"00"}'"#, "another request"),
            (r#"echo '{"decision":"allow-once"}'"#, "cannot be read"),
            ("exec yes", "more than 65536 bytes"),
        ] {
            let told = told(world, script, "60000");
            assert!(
                told.starts_with("nobody-there") && told.contains(why),
                "{script}: {told}"
            );
        }
        let late = format!("{}; exit 3", answers("allow-once"));
        assert!(
            told(world, &late, "60000").contains("it failed"),
            "a yes and then a failure"
        );
    });
}

#[test]
fn a_hook_that_hangs_is_ended_with_all_that_it_has_started() {
    for_each_user(|world| {
        let script = "sleep 1000 & echo $! > \"${0%/*}/left\"; exec sleep 1000";
        let told = told(world, script, "700");
        assert!(
            told.starts_with("nobody-there") && told.contains("has not answered"),
            "{told}"
        );
        let left = world.prepare("cat $OUT/left 2>/dev/null || echo none");
        if let Ok(pid) = left.trim().parse::<i32>() {
            // It was killed; until its new parent has reaped it it is there, and does nothing.
            world.prepare(&format!("! grep -s '^State:.*[RSD] ' /proc/{pid}/status"));
        }
    });
}

#[test]
fn a_hook_that_is_missing_or_that_others_may_write_is_not_asked() {
    for_each_user(|world| {
        let ask = |hook: &str| Asker::start(world, &[("ASK_HOOK", hook), ("ASK_TIMEOUT", "60000")]).result();
        assert!(ask("/no/such/program").starts_with("nobody-there"));
        assert!(ask("hook").contains("absolute path"));
        let hook = world.outside("open");
        std::fs::write(&hook, "#!/bin/sh\n").unwrap();
        set_up(world, &hook);
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(ask(hook.to_str().unwrap()).contains("somebody else"));
    });
}
