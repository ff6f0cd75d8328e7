//! A day's ordinary work is no denial, watched in either way.

use ringfence::SandboxMode::WorkspaceWrite;

use super::{WATCHED, denials, watched};
use crate::support::{Case, Report, World, for_each_user};

const GIT: &str = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main";

/// Runs a script in a fresh workspace, watched in each way, and asserts that nothing was refused.
fn assert_nothing_is_refused(case: &Case, check: impl Fn(&World, &Report)) {
    for evidence in WATCHED {
        for_each_user(|world| {
            let report = watched(case, evidence, world).run_in(world);
            report.assert_exit(0).assert_full();
            assert!(denials(&report).is_empty(), "{evidence}\n{report}");
            check(world, &report);
        });
    }
}

#[test]
fn git_and_all_that_it_does_to_a_history() {
    let script = format!(
        "set -e; {GIT} init -q .; for n in 1 2 3; do echo $n > f$n; git add f$n; {GIT} commit -qm $n; done\n\
         git checkout -qb side HEAD~1; echo s > s; git add s; {GIT} commit -qm side; {GIT} rebase -q main\n\
         echo changed >> f1; {GIT} stash -q; git checkout -q main; {GIT} merge -q side; {GIT} stash pop -q; git diff --stat > /dev/null\n\
         git checkout -q f1; git branch -q -d side; {GIT} tag -m t t1; git mv f2 g2; {GIT} commit -qm moved; git rm -q f3; git reset -q --hard\n\
         {GIT} revert --no-edit HEAD > /dev/null; {GIT} commit -q --amend -m again; git worktree add -q tree HEAD~1; git worktree remove tree\n\
         git gc -q; git fsck --no-dangling; git bundle create -q b.bundle --all; git clone -q b.bundle clone; git log --oneline | wc -l; git status --porcelain"
    );
    assert_nothing_is_refused(&Case::new(WorkspaceWrite).shell(&script), |_, report| {
        assert_eq!(report.stdout(), "6\n?? b.bundle\n?? clone/\n");
    });
}

#[test]
fn cargo_and_a_crate_with_a_dependency() {
    const CRATES: &str = r#"mkdir -p app/src dep/src
printf '[package]\nname="dep"\nversion="0.1.0"\nedition="2024"\n' > dep/Cargo.toml
echo 'pub fn word() -> &'\''static str { "built" }' > dep/src/lib.rs
printf '[package]\nname="app"\nversion="0.1.0"\nedition="2024"\n[dependencies]\ndep={path="../dep"}\n[workspace]\n' > app/Cargo.toml
echo 'fn main() { println!("{}", dep::word()) }' > app/src/main.rs
echo 'fn main() { std::fs::write(std::env::var("OUT_DIR").unwrap() + "/made", "x").unwrap() }' > app/build.rs"#;
    for evidence in WATCHED {
        for_each_user(|world| {
            world.prepare(CRATES);
            let path = format!("{}:/usr/local/bin:/usr/bin:/bin", world.toolchain().display());
            let case = Case::new(WorkspaceWrite)
                .env("PATH", path)
                .options(["--env", "CARGO_HOME=$W/.cargo"])
                .shell("cd app && cargo build -q --offline && touch src/main.rs && cargo build -q --offline && ./target/debug/app && cargo clean -q");
            let report = watched(&case, evidence, world).run_in(world);
            report.assert_exit(0).assert_full();
            assert!(denials(&report).is_empty(), "{evidence}\n{report}");
            assert_eq!(report.stdout(), "built\n");
        });
    }
}

#[test]
fn pip_and_a_virtual_environment() {
    let script = r#"set -e
mkdir pkg
cat > pkg/pyproject.toml <<'FILE'
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
FILE
cat > pkg/backend.py <<'FILE'
import zipfile

def build_wheel(directory, config_settings=None, metadata_directory=None):
    info, name = "greet-1.0.dist-info/", "greet-1.0-py3-none-any.whl"
    with zipfile.ZipFile(directory + "/" + name, "w") as wheel:
        wheel.writestr("greet.py", "def greet(): return 'installed'\n")
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: pkg\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(info + "RECORD", "greet.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n")
    return name
FILE
python3 -m venv env
env/bin/pip install -q --no-index --no-cache-dir ./pkg
env/bin/python -c 'import greet; print(greet.greet())'
ls env/lib/python3*/site-packages/__pycache__ | grep -c greet
env/bin/pip uninstall -q -y greet"#;
    assert_nothing_is_refused(&Case::new(WorkspaceWrite).shell(script), |_, report| {
        assert_eq!(report.stdout(), "installed\n1\n");
    });
}

#[test]
fn archives_and_copies() {
    let script = "set -e; mkdir -p t/a; for n in {1..300}; do echo $n > t/a/$n; done; chmod 751 t/a/7; ln -s 7 t/a/l; ln t/a/7 t/h\n\
         touch -d 2003-03-03 t/a/9; tar czf t.tgz t; mkdir u; tar xzpf t.tgz -C u; diff -r --no-dereference t u/t; cp -a u v; rm -r u\n\
         mv v w; find w -type f | wc -l; sed -i s/9/nine/ w/t/a/9; cat w/t/a/9; install -D -m 640 t/a/1 deep/er/one; truncate -s 9 t/a/2\n\
         gzip -k t/a/3; gunzip -f t/a/3.gz; sort -o t/a/4 t/a/4; mktemp -p . -d made.XXXXXX > /dev/null; rm -r t w made.*";
    assert_nothing_is_refused(&Case::new(WorkspaceWrite).shell(script), |_, report| {
        assert_eq!(report.stdout(), "301\nnine\n");
    });
}

#[test]
fn make_and_a_compiler() {
    let script = "set -e; printf '#include <stdio.h>\\nconst char *word(void);\\nint main(void) { puts(word()); return 0; }\\n' > main.c\n\
         printf 'const char *word(void) { return \"made\"; }\\n' > word.c\n\
         printf 'prog: main.o libword.a\\n\\tcc -o $@ $^\\nlibword.a: word.o\\n\\tar rcs $@ $<\\n%%.o: %%.c\\n\\tcc -g -c -o $@ $<\\nclean:\\n\\trm -f *.o *.a prog\\n' > Makefile\n\
         make -s -j2; strip prog; ./prog; make -s clean; ls";
    assert_nothing_is_refused(&Case::new(WorkspaceWrite).shell(script), |_, report| {
        assert_eq!(report.stdout(), "made\nMakefile\nmain.c\nword.c\n");
    });
}

#[test]
fn python_its_bytecode_its_processes_and_a_database() {
    let script = r#"set -e
mkdir package; echo 'VALUE = 7' > package/__init__.py; echo 'from . import VALUE' > package/other.py
python3 - <<'PROGRAM'
import sys; sys.path.insert(0, "")
import package.other, sqlite3, tempfile, multiprocessing, subprocess, shutil, os, pathlib
print(package.other.VALUE, len(list(pathlib.Path("package/__pycache__").iterdir())))
for journal in "delete", "wal", "truncate":
    base = sqlite3.connect(journal + ".db")
    base.execute("pragma journal_mode=" + journal)
    base.execute("create table t(x)")
    base.executemany("insert into t values(?)", [(i,) for i in range(500)])
    base.commit()
    base.execute("vacuum")
    print(base.execute("select sum(x) from t").fetchone()[0])
multiprocessing.Lock()
with tempfile.TemporaryDirectory() as d, tempfile.TemporaryFile() as f, tempfile.NamedTemporaryFile(dir=".") as g:
    f.write(b"x"); shutil.copytree("package", d + "/copy")
print(subprocess.run(["sh", "-c", "echo out > file; cat file"], capture_output=True, text=True).stdout.strip())
PROGRAM"#;
    assert_nothing_is_refused(&Case::new(WorkspaceWrite).shell(script), |_, report| {
        assert_eq!(report.stdout(), "7 2\n124750\n124750\n124750\nout\n");
    });
}

#[test]
fn a_shell_that_makes_and_changes_everything_there_is() {
    let script = "set -e; mkdir -p a/b/c; umask 027; echo x > a/f; exec 5<> a/g; echo y >&5; exec 5>&-; cat <<< here > a/h; : >> a/f\n\
         mkfifo p; (cat p > got &); echo through > p; ln a/f hard; ln -s a/f soft; ln -sfn a soft2; mv -f a/g a/f; chmod -R u=rwX a\n\
         chown -R $UID a; chgrp -R $(id -g) a; touch -h -d 2001-01-01 soft; chattr +d a/f; chattr -d a/f; cp --reflink=auto a/f r; rm -rf a\n\
         f=$(mktemp); echo t > $f; mv $f here; trap 'rm -f here' EXIT; (exec 9> lock; flock 9; echo locked); set -C; echo x > fresh; true";
    assert_nothing_is_refused(&Case::new(WorkspaceWrite).shell(script), |_, report| {
        assert_eq!(report.stdout(), "locked\n");
    });
}

#[test]
fn node_and_its_files() {
    let script = "node -e \"const fs = require('fs'); fs.mkdirSync('a/b', {recursive: true}); fs.writeFileSync('a/f', 'x'); \
         fs.copyFileSync('a/f', 'a/g'); fs.renameSync('a/g', 'a/b/g'); fs.promises.appendFile('a/f', 'y').then(() => { \
         fs.chmodSync('a/f', 0o600); fs.utimesSync('a/f', 1, 1); fs.symlinkSync('f', 'a/l'); fs.mkdtempSync('tmp-'); \
         console.log(fs.readFileSync('a/l', 'utf8')); fs.rmSync('a', {recursive: true}) })\"";
    assert_nothing_is_refused(&Case::new(WorkspaceWrite).shell(script), |_, report| {
        assert_eq!(report.stdout(), "xy\n");
    });
}
