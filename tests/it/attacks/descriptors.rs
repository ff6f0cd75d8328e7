//! Streams that the caller hands over, and names made for what a descriptor refers to.

use ringfence::SandboxMode::WorkspaceWrite;
use serde_json::{Value, json};

use crate::escapes::{KEEP, untouched};
use crate::support::{Case, World, for_each_user, names, text};

use super::{WATCHED, assert_recorded, compile_calls, unconfined};

/// Runs a command with its streams handed over, and gives the report.
fn handed(world: &World, streams: &str) -> Value {
    let script = format!(
        "\"$BIN\" run -m workspace-write --report-fd 3 -c 'echo ran > ran; exit 0' {streams} 3> \"$HOME/report\" || true"
    );
    let outcome = world.bash(&script);
    outcome.assert_no_panic();
    serde_json::from_str(&text(world.home().join("report"))).unwrap_or_else(|_| panic!("no report: {outcome}"))
}

#[test]
fn files_and_named_pipes_that_are_handed_over_are_named_as_open() {
    for_each_user(|world| {
        world.prepare("echo text > $OUT/f; mkfifo $OUT/p");
        for streams in [
            "< $OUT/f > /dev/null 2>&1",
            "< /dev/null > $OUT/f 2> /dev/null",
            "< /dev/null 2>> $OUT/f > /dev/null",
            "<> $OUT/f >&0 2>&0",
            "0<> $OUT/p > /dev/null 2>&1",
            "< /dev/null 1<> $OUT/p 2> /dev/null",
        ] {
            let document = handed(world, streams);
            assert_eq!(document["sandbox"]["enforcement"], "partial", "{streams}: {document:#}");
            let open = &document["sandbox"]["ungoverned"];
            assert_eq!(open, &json!(["inherited-descriptors"]), "{streams}: {document:#}");
        }
        for streams in ["< /dev/null > /dev/null 2>&1", "< <(true) > >(cat) 2>&1"] {
            let document = handed(world, streams);
            assert_eq!(document["sandbox"]["enforcement"], "full", "{streams}: {document:#}");
        }
    });
}

/// Every way to cut what standard input refers to.
const CUTS: &str = r"
import os
def attempt(what, try_it):
    try: try_it(); print(what)
    except OSError: pass
for name in '/dev/stdin', '/proc/self/fd/0', '/proc/thread-self/fd/0':
    for flags in os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC, os.O_WRONLY | os.O_TRUNC:
        attempt('opened', lambda: os.open(name, flags))
    attempt('cut', lambda: os.truncate(name, 0))
print('tried')
";

#[test]
fn a_file_that_is_handed_over_for_reading_keeps_its_content() {
    for_each_user(|world| {
        world.prepare("echo text > $OUT/f");
        std::fs::write(world.inside("tries.py"), CUTS).unwrap();
        let bare = world.bash("cp $OUT/f $OUT/g; python3 $W/tries.py < $OUT/g; test ! -s $OUT/g; rm $OUT/g");
        assert!(bare.stdout().contains("cut"), "{bare}");
        for evidence in ["auto", "strict", "off"] {
            let script = format!(
                "\"$BIN\" run -m workspace-write --evidence {evidence} -- python3 $W/tries.py < $OUT/f 2> \"$HOME/err\""
            );
            let outcome = world.bash(&script);
            assert_eq!(outcome.stdout(), "tried\n", "{evidence}: {outcome}");
            assert_eq!(text(world.outside("f")), "text\n", "{evidence}");
        }
    });
}

#[test]
fn a_directory_that_is_handed_over_is_refused() {
    for_each_user(|world| {
        world.prepare(KEEP);
        for streams in ["< $OUT", "< / ", "< $W", "1< $OUT", "2< $OUT"] {
            let document = handed(world, streams);
            assert_eq!(document["error"]["code"], "INPUT_INVALID", "{streams}: {document:#}");
            assert!(!world.inside("ran").exists(), "{streams}");
        }
        untouched(world);
    });
}

#[test]
fn a_socket_bound_outside_is_refused_and_recorded() {
    for_each_user(|world| {
        compile_calls(world);
        assert_eq!(unconfined(world, "bind \"$OUT/free\"; rm \"$OUT/free\""), "done\n");
        for evidence in WATCHED {
            let text = "cd /; \"$HOME/calls\" bind \"$OUT/s\"; cd \"$OUT\"; \"$HOME/calls\" bind relative; \
                \"$HOME/calls\" bind \"$W/in\"; rm \"$W/in\"";
            let report = Case::new(WorkspaceWrite).options(evidence).shell(text).run_in(world);
            report.assert_exit(0).assert_full();
            assert!(report.stdout().ends_with("\ndone\n"), "{report}");
            assert_eq!(report.stdout().matches("done").count(), 1, "{report}");
            assert_recorded(&report, "mknod", &world.outside("s"));
            assert_recorded(&report, "mknod", &world.outside("relative"));
            assert!(names(world.beside()).is_empty());
        }
    });
}

#[test]
fn a_second_name_for_a_descriptor_leads_neither_out_nor_in() {
    for_each_user(|world| {
        compile_calls(world);
        world.prepare(&format!("{KEEP}; echo inside > in"));
        let link = "link-descriptor in \"$OUT/free\"; rm -f \"$OUT/free\"";
        let possible = unconfined(world, link) == "done\n";
        for evidence in WATCHED {
            let text = "\"$HOME/calls\" link-descriptor in \"$OUT/new\"; \
                \"$HOME/calls\" link-descriptor \"$OUT/f\" new";
            let report = Case::new(WorkspaceWrite).options(evidence).shell(text).run_in(world);
            report.assert_exit(0).assert_full();
            assert!(!report.stdout().contains("done"), "{report}");
            if possible {
                assert_recorded(&report, "link", &world.outside("new"));
                assert_recorded(&report, "link", &world.outside("f"));
            }
            untouched(world);
            assert_eq!(names(world.beside()), ["f"]);
            assert_eq!(names(world.workspace()), ["in"]);
        }
    });
}
