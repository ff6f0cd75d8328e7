//! Ordinary work: git, compilers, package tools, interpreters.

use std::fs;
use std::os::unix::fs::MetadataExt;

use ringfence::SandboxMode::WorkspaceWrite;

use crate::support::{Case, for_each_user, text};

/// An identity for commits, in a world whose home has none.
const GIT: &str = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main";

#[test]
fn git_makes_a_repository_and_commits() {
    Case::new(WorkspaceWrite)
        .shell(&format!(
            "set -e; {GIT} init -q .; echo a > a; git add a; {GIT} commit -qm one; echo b >> a; {GIT} commit -qam two; \
             git checkout -q -b side HEAD~1; {GIT} merge -q main; git gc -q; git log --oneline | wc -l; git status --porcelain"
        ))
        .run_as_each_user(|_, report| {
            report.assert_exit(0).assert_full().assert_denied(false);
            assert_eq!(report.stdout(), "2\n");
        });
}

#[test]
fn git_clones_a_repository_of_several_hundred_files_with_its_history() {
    Case::new(WorkspaceWrite)
        .setup(&format!(
            "{GIT} init -q $OUT/origin; cd $OUT/origin\n\
             for d in {{1..20}}; do mkdir d$d; for f in {{1..20}}; do echo $d $f > d$d/f$f; done; done\n\
             git add .; {GIT} commit -qm first\n\
             for n in {{1..12}}; do echo $n > d$n/f$n; rm d$n/f20; {GIT} commit -qam $n; done"
        ))
        .shell(
            // Without hard links: linking an object out of the origin would be a change to the origin.
            "set -e; git clone -q --no-hardlinks $OUT/origin copy; git clone -q file://$OUT/origin other; cd copy; \
             git log --oneline | wc -l; git ls-files | wc -l; git status --porcelain; git fsck",
        )
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_full().assert_denied(false);
            assert_eq!(report.stdout(), "13\n388\n");
            assert_eq!(text(world.inside("copy/d3/f3")), "3\n");
            assert_eq!(text(world.inside("other/d3/f3")), "3\n");
            assert_eq!(world.prepare("git -C $OUT/origin status --porcelain"), "");
        });
}

#[test]
fn git_clones_by_copying_where_it_may_not_link() {
    Case::new(WorkspaceWrite)
        .setup(&format!(
            "{GIT} init -q $OUT/origin; cd $OUT/origin; echo a > a; git add a; {GIT} commit -qm one"
        ))
        .shell(
            "git clone -q $OUT/origin copy && git -C copy log --format=%s && find copy/.git/objects -type f -links +1",
        )
        .run_as_each_user(|_, report| {
            report.assert_exit(0).assert_full();
            assert_eq!(report.stdout(), "one\n", "nothing is linked");
        });
}

#[test]
fn git_cannot_change_a_repository_beside_the_workspace() {
    Case::new(WorkspaceWrite)
        .setup(&format!(
            "{GIT} init -q $OUT/r; cd $OUT/r; echo a > a; git add a; {GIT} commit -qm one"
        ))
        .shell(&format!(
            "cd $OUT/r && git status --porcelain && {GIT} commit -q --allow-empty -m two"
        ))
        .run_as_each_user(|world, report| {
            report.assert_denied(true);
            assert_eq!(world.prepare("git -C $OUT/r log --format=%s"), "one\n");
        });
}

#[test]
fn cargo_builds_tests_and_runs_a_crate_with_a_dependency() {
    for_each_user(|world| {
        world.prepare(
            "mkdir -p app/src dep/src\n\
             printf '[package]\\nname=\"dep\"\\nversion=\"0.1.0\"\\nedition=\"2024\"\\n' > dep/Cargo.toml\n\
             echo 'pub fn word() -> &'\\''static str { \"built\" }' > dep/src/lib.rs\n\
             printf '[package]\\nname=\"app\"\\nversion=\"0.1.0\"\\nedition=\"2024\"\\n[dependencies]\\ndep={path=\"../dep\"}\\n[workspace]\\n' > app/Cargo.toml\n\
             echo 'fn main() { println!(\"{}\", dep::word()) } #[test] fn works() { assert_eq!(dep::word().len(), 5) }' > app/src/main.rs\n\
             echo 'fn main() { println!(\"cargo::rustc-check-cfg=cfg(nothing)\") }' > app/build.rs",
        );
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", world.toolchain().display());
        let report = Case::new(WorkspaceWrite)
            .env("PATH", path)
            .options(["--env", "CARGO_HOME=$W/.cargo"])
            .shell("cd app && cargo build -q --offline && cargo test -q --offline && ./target/debug/app")
            .run_in(world);
        report.assert_exit(0).assert_full().assert_denied(false);
        assert!(report.stdout().ends_with("built\n"), "{report}");
        assert!(report.stdout().contains("1 passed"), "{report}");
    });
}

#[test]
fn pip_installs_a_local_package_into_a_virtual_environment() {
    Case::new(WorkspaceWrite)
        .setup(
            r#"mkdir pkg
cat > pkg/pyproject.toml <<'END'
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
END
cat > pkg/backend.py <<'END'
import zipfile

INFO = "greet-1.0.dist-info/"

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "greet-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{wheel_directory}/{name}", "w") as wheel:
        wheel.writestr("greet.py", "def greet(): return 'installed'\n")
        wheel.writestr(INFO + "METADATA", "Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n")
        wheel.writestr(INFO + "WHEEL", "Wheel-Version: 1.0\nGenerator: pkg\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(INFO + "RECORD", "greet.py,,\n" + INFO + "METADATA,,\n" + INFO + "WHEEL,,\n" + INFO + "RECORD,,\n")
    return name
END"#,
        )
        .shell(
            "set -e; python3 -m venv env; env/bin/pip install -q --no-index --no-cache-dir ./pkg; \
             env/bin/python -c 'import greet; print(greet.greet())'",
        )
        .run_as_each_user(|_, report| {
            report.assert_exit(0).assert_full();
            assert_eq!(report.stdout(), "installed\n");
        });
}

#[test]
fn make_compiles_a_c_program_in_parallel_and_only_once() {
    Case::new(WorkspaceWrite)
        .setup(
            "printf '#include <stdio.h>\\nconst char *word(void);\\nint main(void) { puts(word()); return 0; }\\n' > main.c\n\
             printf 'const char *word(void) { return \"made\"; }\\n' > word.c\n\
             printf 'prog: main.o word.o\\n\\tcc -o $@ $^\\n%%.o: %%.c\\n\\tcc -c -o $@ $<\\n' > Makefile",
        )
        .shell("make -s -j2 && ./prog && make")
        .run_as_each_user(|_, report| {
            report.assert_exit(0).assert_full().assert_denied(false);
            assert_eq!(report.stdout(), "made\nmake: 'prog' is up to date.\n");
        });
}

#[test]
fn tar_restores_modes_and_times() {
    Case::new(WorkspaceWrite)
        .setup(
            "mkdir -p $OUT/t/a; echo 1 > $OUT/t/a/f; chmod 751 $OUT/t/a/f; touch -d 2003-03-03 $OUT/t/a/f\n\
             ln -s f $OUT/t/a/l; ln $OUT/t/a/f $OUT/t/a/h; tar -C $OUT -cf $OUT/t.tar t",
        )
        .shell("tar xpf $OUT/t.tar && tar cf again.tar t && tar tf again.tar | wc -l")
        .run_as_each_user(|world, report| {
            report.assert_exit(0).assert_full().assert_denied(false);
            let f = fs::metadata(world.inside("t/a/f")).unwrap();
            assert_eq!((f.mode() & 0o777, f.mtime(), f.nlink()), (0o751, 1_046_649_600, 2));
            assert_eq!(report.stdout(), "5\n");
        });
}

#[test]
fn sqlite_has_its_locks_journals_and_shared_memory() {
    Case::new(WorkspaceWrite)
        .shell(
            r#"python3 -B -c "
import sqlite3
c = sqlite3.connect('t.db')
c.execute('pragma journal_mode=wal')
c.execute('create table t(x)')
c.executemany('insert into t values(?)', [(i,) for i in range(1000)])
c.commit()
print(sqlite3.connect('t.db').execute('select count(*) from t').fetchone()[0])""#,
        )
        .run_as_each_user(|_, report| {
            report.assert_exit(0).assert_full().assert_denied(false);
            assert_eq!(report.stdout(), "1000\n");
        });
}

#[test]
fn python_has_its_semaphores_and_processes() {
    Case::new(WorkspaceWrite)
        .shell("python3 -B -c 'import multiprocessing as m; m.Lock(); print(sum(m.Pool(2).map(abs, [-1, -2])))'")
        .run_as_each_user(|_, report| {
            report.assert_exit(0).assert_full().assert_denied(false);
            assert_eq!(report.stdout(), "3\n");
        });
}

#[test]
fn a_temp_file_lies_where_tmpdir_says() {
    Case::new(WorkspaceWrite)
        .shell(r#"f=$(mktemp) && test -w "$f" && test -d "${TMPDIR:-/tmp}" && rm "$f" && sort -T "${TMPDIR:-/tmp}" <<< ok"#)
        .run_as_each_user(|_, report| {
            report.assert_exit(0).assert_full().assert_denied(false);
            assert_eq!(report.stdout(), "ok\n");
        });
}

#[test]
fn a_file_is_replaced_at_once_across_directories() {
    Case::new(WorkspaceWrite)
        .shell("mkdir d && echo a > x && mv x d/x && echo b > d/.t && mv -f d/.t d/x && ln d/x y && cat y")
        .run_as_each_user(|_, report| {
            report.assert_exit(0).assert_full().assert_denied(false);
            assert_eq!(report.stdout(), "b\n");
        });
}
