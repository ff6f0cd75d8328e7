//! A confined command, and the trail that it is recorded in.

use std::fs;

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use super::{audit, objects, run, segment};
use crate::support::{Case, for_each_user};

/// Everything that would change the trail, and at last a lock that is held while the run ends.
const ATTEMPTS: &str = "\
    cd \"$RINGFENCE_STATE_DIR/audit\" || exit 9; f=$(ls *.jsonl); \
    echo forged >> $f; : > $f; truncate -s 10 $f; rm -f $f; mv $f x; ln $f x; chmod 777 . $f lock; \
    cp /dev/null $f; dd if=/dev/zero of=$f conv=notrunc count=1; rm -f lock; echo x >> lock; mkdir y; \
    echo x > 0000000000000999.jsonl; mv ../audit ../elsewhere; exit 0";

#[test]
fn a_confined_command_changes_nothing_of_the_trail_and_its_attempts_are_in_it() {
    for_each_user(|world| {
        run(world, "true");
        for mode in [ReadOnly, WorkspaceWrite] {
            let before = fs::read(segment(world)).unwrap();
            let report = Case::new(mode).shell(ATTEMPTS).run_in(world);
            report.assert_exit(0).assert_full().assert_denied(true);
            let after = fs::read(segment(world)).unwrap();
            assert!(after.starts_with(&before) && after.len() > before.len(), "{report}");
            let id = report.text("/runId");
            let denied = objects(&audit(world, &["list", "--run", id, "--type", "denial", "--json"]));
            assert!(denied.len() > 5, "{denied:?}");
            let verified = audit(world, &["verify"]);
            assert_eq!(verified.status(), 0, "{verified}");
        }
    });
}

#[test]
fn a_confined_command_cannot_hold_the_lock_of_those_who_write() {
    for_each_user(|world| {
        run(world, "true");
        // Whatever way of locking there is: for writing, for reading, and on the directory and the segment.
        let script = "cd \"$RINGFENCE_STATE_DIR/audit\" || exit 9; \
            exec 7<>lock; flock -n 7; exec 8<lock; flock -n 8; exec 9<.; flock -n 9; exec 6< *.jsonl; flock -n 6; \
            $PYTHON -c 'import fcntl, os\n\
for way in (os.O_RDWR, os.O_WRONLY, os.O_RDONLY):\n\
  for kind in (fcntl.F_WRLCK, fcntl.F_RDLCK):\n\
    try:\n\
      fd = os.open(\"lock\", way)\n\
      import struct\n\
      fcntl.fcntl(fd, 37, struct.pack(\"hhqqi4x\", kind, 0, 0, 0, 0))\n\
      print(\"held\", way, kind)\n\
    except OSError as e: pass\n\
os.system(\"\\\"$BIN\\\" audit list > /dev/null\")\n\
print(\"done\")'; exit 0";
        let report = Case::new(WorkspaceWrite)
            .env("PYTHON", "/usr/bin/python3")
            .options(["--audit", "required", "--keep-env", "PYTHON"])
            .shell(script)
            .run_in(world);
        report.assert_exit(0);
        assert_eq!(report.stdout(), "done\n", "{report}");
        let verified = audit(world, &["verify"]);
        assert_eq!(verified.status(), 0, "{verified}");
    });
}
