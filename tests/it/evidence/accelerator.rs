//! The accelerator makes watching cheap and changes nothing else: not what a program computes, not
//! what is recorded, not the host's own library.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;

use ringfence::SandboxMode::WorkspaceWrite;

use super::{ACCELERATED, assert_same, attempts, denials, records, watched};
use crate::support::{Case, Report, User, World, for_each_user, names};

/// How denials are known here when nothing stands in the way of the accelerator.
pub(super) const FAST: &str = if ACCELERATED { "retry" } else { "notify" };

pub(super) fn source(report: &Report) -> &str {
    report.text("/sandbox/evidenceSource")
}

/// The copies of the library in the state directory.
pub(super) fn copies(state: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(state).into_iter().flatten().flatten();
    let copies = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "so"));
    copies.collect()
}

/// Work whose outcome does not depend on the run: digests, sums, sorted output, children, threads.
const WORK: &str = r#"set -e
head -c 3000000 /dev/zero | tr '\0' 'q' > big; sha256sum big; wc -c < big
seq 20000 | shuf --random-source=big | sort -n | sha256sum
mkdir -p d; for n in $(seq 60); do echo $n > d/$n; done; cat d/* | sha256sum; tar c --mtime=@0 --sort=name --owner=0 --group=0 d | sha256sum
python3 -B - <<'PROGRAM'
import decimal, hashlib, json, math, os, random, sqlite3, struct, subprocess, sys, threading, zlib
decimal.getcontext().prec = 200
random.seed(7)
print(decimal.Decimal(2).sqrt(), math.fsum(math.sin(n) for n in range(9999)), pow(3, 10 ** 5, 10 ** 40 + 7))
print(hashlib.sha256(random.randbytes(100000)).hexdigest(), zlib.crc32(b"q" * 100000))
total = [0] * 4
def work(n):
    for turn in range(200):
        name = f"t{n}-{turn}"
        with open(name, "w") as file: file.write(str(turn))
        os.rename(name, name + "x"); os.chmod(name + "x", 0o600); total[n] += int(open(name + "x").read()); os.unlink(name + "x")
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(total)
base = sqlite3.connect(":memory:"); base.execute("create table t(x)"); base.executemany("insert into t values(?)", [(n,) for n in range(999)])
print(base.execute("select sum(x * x), avg(x) from t").fetchone())
print(subprocess.run(["sh", "-c", "echo child; exit 3"], capture_output=True).returncode)
for call in lambda: os.mkdir("d"), lambda: os.rmdir("nothing"), lambda: os.rmdir("d"), lambda: open("d", "w"), lambda: os.link("big", "d/1"), \
        lambda: os.open("nothing", os.O_WRONLY), lambda: os.unlink("d"), lambda: os.rename("d", "big"), lambda: os.truncate("nothing", 1):
    try: call(); print("done")
    except OSError as error: print(error.errno)
PROGRAM
rm -r d big; ls"#;

/// Less of the same, for what is done many times.
const LITTLE: &str = r#"seq 200000 > big; sha256sum < big; mkdir d; mv big d/big; chmod 600 d/big; stat -c %a:%s d/big
python3 -B -I -S -c 'import os; print(sum(n * n for n in range(9999)), os.path.getsize("d/big")); os.rename("d/big", "b"); os.mkdir("d/e")'
rmdir d/e d; rm b; ls"#;

/// What the work prints without anybody watching.
fn unwatched(world: &World, work: &str) -> String {
    let report = watched(&Case::new(WorkspaceWrite).shell(work), "off", world).run_in(world);
    report.assert_exit(0);
    report.stdout().to_owned()
}

/// Asserts that a run computes what it should and records what it should.
fn assert_unchanged(world: &World, work: &str, expected: &str, about: &str) -> Report {
    let script = format!("{work}\necho x > $OUT/new || true");
    let report = watched(&Case::new(WorkspaceWrite).shell(&script), "auto", world).run_in(world);
    report.assert_exit(0).assert_full();
    assert_eq!(report.stdout(), expected, "{about}");
    assert_same(
        &["create out/new EROFS bash".to_owned()],
        &records(world, &report),
        &format!("{about}\n{report}"),
    );
    report
}

#[test]
fn a_program_computes_the_same_with_it_and_without() {
    for_each_user(|world| {
        let expected = unwatched(world, WORK);
        for run in ["made", "found again"] {
            assert_eq!(source(&assert_unchanged(world, WORK, &expected, run)), FAST);
        }
    });
}

#[test]
fn a_copy_that_is_not_as_it_was_is_never_used() {
    let tamperings = [
        ("gone", "rm $copy"),
        ("empty", "chmod u+w $copy; : > $copy"),
        (
            "half",
            "chmod u+w $copy; truncate -s $(($(stat -c %s $copy) / 2)) $copy",
        ),
        (
            "another file",
            "echo 'no library' > other; chmod 555 other; mv -f other $copy",
        ),
        (
            "another library",
            "cp -f $(ldd /bin/bash | sed -n 's/.*libc\\.so\\.6 => \\([^ ]*\\).*/\\1/p') other; mv -f other $copy",
        ),
        (
            "the same with one byte changed",
            "chmod u+w $copy; printf '\\xcc' | dd of=$copy bs=1 seek=700000 conv=notrunc status=none; chmod u-w $copy",
        ),
        ("the same copied", "cp -p $copy other; mv -f other $copy"),
        ("open to the group", "chmod g+w $copy"),
        ("open to all", "chmod 777 $copy"),
        ("linked from elsewhere", "ln $copy other"),
        ("a link", "mv $copy other; ln -s other $copy"),
        ("a directory", "rm $copy; mkdir $copy"),
        ("a pipe", "rm $copy; mkfifo $copy"),
        ("not to be executed", "chmod 444 $copy"),
        ("not to be read", "chmod 000 $copy"),
        ("a directory that is closed", "rm -f $copy; chmod 555 ."),
    ];
    for_each_user(|world| {
        let expected = unwatched(world, LITTLE);
        assert_unchanged(world, LITTLE, &expected, "made");
        for (about, tampering) in tamperings {
            world.prepare(&format!(
                "cd $RINGFENCE_STATE_DIR; copy=$(echo accelerator-*.so); {}",
                tampering.replace("$copy", "\"$copy\"")
            ));
            assert_unchanged(world, LITTLE, &expected, about);
            // What is in force now is sound again, whatever was left behind.
            world.prepare("cd $RINGFENCE_STATE_DIR; chmod 755 .; rm -rf other; find . -maxdepth 1 -name 'accelerator*' ! -type f -delete");
            assert_unchanged(world, LITTLE, &expected, &format!("after {about}"));
        }
    });
}

#[test]
fn many_runs_that_begin_at_once_are_all_sound() {
    for_each_user(|world| {
        for round in 0..2 {
            world.prepare("rm -rf $RINGFENCE_STATE_DIR/*");
            thread::scope(|scope| {
                let runs: Vec<_> = (0..5)
                    .map(|n| {
                        scope.spawn(move || {
                            let script = format!(
                                "echo {n} > f{n}; chmod 600 f{n}; cat f{n}; mkdir $OUT/d{n} 2> /dev/null; exit 0"
                            );
                            (
                                n,
                                watched(&Case::new(WorkspaceWrite).shell(&script), "auto", world).run_in(world),
                            )
                        })
                    })
                    .collect();
                for run in runs {
                    let (n, report) = run.join().unwrap();
                    report.assert_exit(0).assert_full();
                    assert_eq!(report.stdout(), format!("{n}\n"));
                    assert_same(
                        &[format!("mkdir out/d{n}")],
                        &attempts(world, &report),
                        &format!("round {round}\n{report}"),
                    );
                }
            });
            assert!(
                copies(&world.state()).len() <= 1,
                "copies are left behind: {:?}",
                copies(&world.state())
            );
        }
    });
}

#[test]
fn a_state_directory_that_the_run_can_write_is_not_used() {
    for_each_user(|world| {
        let case = Case::new(WorkspaceWrite).shell("echo x > $OUT/new; exit 0");
        let temp = tempfile::Builder::new()
            .prefix("ringfence-state-")
            .tempdir_in("/tmp")
            .unwrap();
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o777)).unwrap();
        world.prepare("mkdir $OUT/root state");
        for (state, options) in [
            (world.inside("state"), vec!["--allow-broad-root"]),
            (temp.path().to_owned(), vec![]),
            (
                world.outside("root"),
                vec!["--allow-broad-root", "--write", "$OUT/root"],
            ),
        ] {
            let case = case.clone().env("RINGFENCE_STATE_DIR", &state).options(options);
            let report = watched(&case, "auto", world).run_in(world);
            assert_eq!(source(&report), "notify", "{}", state.display());
            assert_same(
                &["create out/new EROFS bash".to_owned()],
                &records(world, &report),
                &format!("{report}"),
            );
            assert_eq!(names(&state), [""; 0], "something was kept in {}", state.display());
        }
    });
}

#[test]
fn a_copy_is_not_shared_between_users() {
    let Some(_) = World::of_root("a_copy_is_not_shared_between_users") else {
        return;
    };
    // Root made it; the directory is somebody else's now.
    let (world, roots) = (World::anyone(), World::new(User::Caller));
    let case = Case::new(WorkspaceWrite).shell("echo x > $OUT/new; exit 0");
    watched(&case, "auto", &roots).run_in(&roots).assert_exit(0);
    for copy in copies(&roots.state()) {
        fs::copy(&copy, world.state().join(copy.file_name().unwrap())).unwrap();
    }
    let report = watched(&case, "auto", &world).run_in(&world);
    report.assert_exit(0).assert_full();
    assert_eq!((source(&report), denials(&report).len()), (FAST, 1), "{report}");
    for copy in copies(&world.state()) {
        assert_eq!(fs::metadata(&copy).unwrap().uid(), world.uid(), "{}", copy.display());
    }
}
