//! A confined command, and the trail that it is recorded in.

use std::fs;

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use super::{audit, objects, run, segment};
use crate::support::{Case, for_each_user};

/// Everything that would change the trail, and at last a lock that is held while the run ends.
const ATTEMPTS: &str = "\
    cd \"$OUT/../state/audit\" || exit 9; f=$(ls *.jsonl); \
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

/// Takes the lock, in whatever way it can be opened and whatever kind it is, and lets go of it.
const HOLD: &str = "\
import fcntl, os, struct
OFD_SETLK = 37
for way in (os.O_RDWR, os.O_WRONLY, os.O_RDONLY):
    for kind in (fcntl.F_WRLCK, fcntl.F_RDLCK):
        try:
            fd = os.open('lock', way)
            fcntl.fcntl(fd, OFD_SETLK, struct.pack('hhqqi4x', kind, 0, 0, 0, 0))
            os.close(fd)
            print('held')
        except OSError:
            pass
print('done')
";

#[test]
fn a_confined_command_cannot_hold_the_lock_of_those_who_write() {
    for_each_user(|world| {
        run(world, "true");
        fs::write(world.inside("hold.py"), HOLD).unwrap();
        let script = "cd \"$OUT/../state/audit\" || exit 9; /usr/bin/python3 \"$W/hold.py\"";
        assert!(
            world.prepare(script).contains("held"),
            "nobody keeps an unconfined one from it"
        );
        // The other way of locking, and the other things that can be locked, keep nobody who writes.
        let more = format!("{script}; exec 8<.; flock -n 8; exec 9< *.jsonl; flock -n 9; exit 0");
        let report = Case::new(WorkspaceWrite)
            .options(["--audit", "required"])
            .shell(&more)
            .run_in(world);
        report.assert_exit(0);
        assert_eq!(report.stdout(), "done\n", "{report}");
        let ends = objects(&audit(world, &["list", "--type", "run.end", "--json"]));
        assert_eq!(ends.len(), 2);
        assert_eq!(audit(world, &["verify"]).status(), 0);
    });
}

/// Takes a lease on each file of the trail that can be opened, and keeps them until it is told to end.
const LEASE: &str = "\
import fcntl, os, sys
held = []
for name in os.listdir('.'):
    for kind in (fcntl.F_WRLCK, fcntl.F_RDLCK):
        try:
            fd = os.open(name, os.O_RDONLY)
            held.append(fd)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)
            print('leased')
            break
        except OSError:
            pass
print('done', flush=True)
";

#[test]
fn a_confined_command_takes_no_lease_on_the_trail() {
    for_each_user(|world| {
        run(world, "true");
        fs::write(world.inside("lease.py"), LEASE).unwrap();
        let script = "cd \"$OUT/../state/audit\" || exit 9; /usr/bin/python3 \"$W/lease.py\"";
        assert!(
            world.prepare(script).contains("leased"),
            "nobody keeps an unconfined one from it"
        );
        for mode in [ReadOnly, WorkspaceWrite] {
            let report = Case::new(mode).shell(script).run_in(world);
            report.assert_exit(0);
            assert_eq!(report.stdout(), "done\n", "{report}");
        }
    });
}
