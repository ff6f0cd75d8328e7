//! Runs inside runs, and inside whoever else watches or confines.

use ringfence::SandboxMode::WorkspaceWrite;
use serde_json::Value;

use super::given::{ASKED, Given, on_host};
use super::{ATTACK, KEEP, assert_content_is_kept, mode_bits};
use crate::support::{Case, World, for_each_user, names, text};

/// The document of a run inside, which was written into the workspace.
fn inner(world: &World) -> Value {
    let document = text(world.inside("inner"));
    serde_json::from_str(&document).unwrap_or_else(|error| panic!("{error}: {document}"))
}

#[test]
fn each_backend_inside_each_backend_holds_and_says_what_it_has() {
    for outer in ["landlock", "bwrap"] {
        for (asked, name) in ASKED.into_iter().zip(["landlock", "bwrap", "landlock"]) {
            let words = asked.join(" ");
            let script = format!(
                "\"$BIN\" run --json -m workspace-write {words} -c '{ATTACK}' > inner; echo after > after; exit 0"
            );
            for_each_user(|world| {
                world.prepare(KEEP);
                let report = Case::new(WorkspaceWrite)
                    .options(["--backend", outer])
                    .shell(&script)
                    .run_in(world);
                report.assert_exit(0).assert_full();
                assert_content_is_kept(world);
                assert_eq!(mode_bits(world), 0o644, "{report}");
                assert_eq!(text(world.inside("after")), "after\n");
                let inner = inner(world);
                if name == "bwrap" {
                    // No mounts can be made inside, whoever asks.
                    assert_eq!(inner["error"]["code"], "SANDBOX_UNAVAILABLE", "{inner:#}");
                    assert!(
                        inner["error"]["tried"][0]["reason"].as_str().unwrap().contains("bwrap"),
                        "{inner:#}"
                    );
                    assert!(!world.inside("ran").exists(), "{inner:#}");
                } else {
                    assert_eq!(inner["sandbox"]["backend"], name, "{inner:#}");
                    assert_eq!(
                        inner["sandbox"]["ungoverned"],
                        serde_json::json!(["devices", "metadata"]),
                        "{inner:#}"
                    );
                    assert!(world.inside("ran").exists(), "{inner:#}");
                }
            });
        }
    }
}

#[test]
fn a_demand_for_everything_is_not_met_inside() {
    for outer in ["landlock", "bwrap"] {
        for_each_user(|world| {
            let script = "\"$BIN\" run --json -m workspace-write --require full -- touch ran > inner; exit 0";
            Case::new(WorkspaceWrite)
                .options(["--backend", outer])
                .shell(script)
                .run_in(world)
                .assert_exit(0);
            let inner = inner(world);
            assert_eq!(inner["error"]["code"], "SANDBOX_UNAVAILABLE", "{inner:#}");
            let tried = inner["error"]["tried"].as_array().unwrap();
            assert_eq!(tried.len(), 2, "{inner:#}");
            assert!(!world.inside("ran").exists());
        });
    }
}

/// Another supervisor: its filter has a listener, so nobody else's can have one (seccomp(2)).
const SUPERVISED: &str = "
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
allow = ctypes.create_string_buffer(struct.pack('HBBI', 0x06, 0, 0, 0x7fff0000))
class Program(ctypes.Structure): _fields_ = [('length', ctypes.c_ushort), ('rules', ctypes.c_void_p)]
program = Program(1, ctypes.addressof(allow))
assert libc.prctl(38, 1, 0, 0, 0) == 0
listener = libc.syscall(317 if os.uname().machine == 'x86_64' else 277, 1, 8, ctypes.byref(program))
assert listener >= 0, os.strerror(ctypes.get_errno())
os.set_inheritable(listener, True)
os.execvp(sys.argv[1], sys.argv[1:])
";

#[test]
fn under_another_supervisor_runs_are_confined_in_full() {
    on_host(&["python3", "-c", SUPERVISED], |_| {
        [Given::Full("landlock"), Given::Full("bwrap"), Given::Full("landlock")]
    });
}

#[test]
fn under_another_supervisor_it_is_said_that_denials_are_not_known_by_watching() {
    for asked in ASKED {
        Case::new(WorkspaceWrite)
            .options(asked.iter().copied())
            .inside(["python3", "-c", SUPERVISED])
            .setup(KEEP)
            .shell("echo x > $OUT/f; exit 0")
            .run_as_each_user(|world, report| {
                report.assert_exit(0).assert_full();
                assert_ne!(report.field("/sandbox/evidence"), "observed", "{report}");
                assert_content_is_kept(world);
            });
    }
}

#[test]
fn a_run_inside_leaves_no_process_and_no_file_behind() {
    for outer in ["landlock", "bwrap"] {
        Case::new(WorkspaceWrite)
            .options(["--backend", outer])
            .shell("\"$BIN\" run -m read-only -c 'setsid sleep 600 & exit 0'; exit 4")
            .run_as_each_user(|world, report| {
                report.assert_exit(4);
                assert_eq!(report.field("/sandbox/survivors/found"), 0, "{report}");
                assert!(names(world.workspace()).is_empty(), "{report}");
            });
    }
}
