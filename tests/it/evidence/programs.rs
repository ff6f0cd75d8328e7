//! The same attempts from programs of every make: all are seen, and as the same thing.

use std::fmt::Write;

use nix::libc;
use ringfence::SandboxMode::WorkspaceWrite;

use super::{CALL, WATCHED, assert_same, attempts, compile, denials, snapshot, watched};
use crate::support::{Case, Report, World, for_each_user, names};

/// One attempt: what it is recorded as, and how each program makes it. No program makes what is empty.
struct Attempt {
    denial: &'static str,
    shell: &'static str,
    python: &'static str,
    node: &'static str,
    function: &'static str,
    call: (libc::c_long, &'static str),
}

const fn attempt(
    denial: &'static str,
    shell: &'static str,
    python: &'static str,
    node: &'static str,
    function: &'static str,
    call: (libc::c_long, &'static str),
) -> Attempt {
    Attempt {
        denial,
        shell,
        python,
        node,
        function,
        call,
    }
}

/// In `$OUT`: files `f1` to `f24`, directories `d1` to `d4`, links `l1` and `l2` to nothing.
const ROOM: &str = "cd $OUT; for n in {1..24}; do echo keep > f$n; done; mkdir d1 d2 d3 d4; ln -s no l1; ln -s no l2\n\
     python3 -c 'import os; os.setxattr(\"f20\", \"user.a\", b\"b\")'; echo in > $W/in";

#[rustfmt::skip]
const ATTEMPTS: [Attempt; 24] = [
    attempt("create n1", ": > n1", "open('n1', 'w')", "fs.writeFileSync('n1', '')", "open =n1 01101 0644",
        (libc::SYS_openat, "-100 =n1 01101 0644")),
    attempt("create n2", "set -C; : > n2", "open('n2', 'x')", "fs.openSync('n2', 'wx')", "open =n2 0301 0644",
        (libc::SYS_openat, "-100 =n2 0301 0644")),
    attempt("write f1", "set +C; : > f1", "open('f1', 'w')", "fs.writeFileSync('f1', '')", "creat =f1 0644",
        (libc::SYS_openat, "-100 =f1 01001")),
    attempt("write f2", "echo x >> f2", "open('f2', 'a')", "fs.appendFileSync('f2', 'x')", "open =f2 02001",
        (libc::SYS_openat, "-100 =f2 02001")),
    attempt("write f3", "cp f1 f3", "open('f3', 'r+')", "fs.truncateSync('f3', 0)", "open =f3 2",
        (libc::SYS_openat2, "-100 =f3 %2,0,0 24")),
    attempt("truncate f4", "", "os.truncate('f4', 0)", "", "truncate =f4 0",
        (libc::SYS_truncate, "=f4 0")),
    attempt("mkdir n3", "mkdir -p n3", "os.mkdir('n3')", "fs.mkdirSync('n3', {recursive: true})", "mkdir =n3 0755",
        (libc::SYS_mkdirat, "-100 =n3 0755")),
    attempt("remove d1", "rmdir d1", "os.rmdir('d1')", "fs.rmdirSync('d1')", "rmdir =d1",
        (libc::SYS_unlinkat, "-100 =d1 0x200")),
    attempt("remove f5", "rm -f f5", "os.remove('f5')", "fs.unlinkSync('f5')", "unlink =f5",
        (libc::SYS_unlinkat, "-100 =f5 0")),
    attempt("remove l1", "rm -f l1", "os.remove('l1')", "fs.rmSync('l1')", "unlink =l1",
        (libc::SYS_unlinkat, "-100 =l1 0")),
    attempt("rename f6", "mv f6 n4", "os.rename('f6', 'n4')", "fs.renameSync('f6', 'n4')", "rename =f6 =n4",
        (libc::SYS_renameat2, "-100 =f6 -100 =n4 0")),
    attempt("rename n5", "", "os.rename(w + '/in', 'n5')", "fs.renameSync(w + '/in', 'n5')", "rename =$W/in =n5",
        (libc::SYS_renameat2, "-100 =$W/in -100 =n5 0")),
    attempt("link f7", "ln f7 n6", "os.link('f7', 'n6')", "fs.linkSync('f7', 'n6')", "link =f7 =n6",
        (libc::SYS_linkat, "-100 =f7 -100 =n6 0")),
    attempt("symlink n7", "ln -s x n7", "os.symlink('x', 'n7')", "fs.symlinkSync('x', 'n7')", "symlink =x =n7",
        (libc::SYS_symlinkat, "=x -100 =n7")),
    attempt("mknod n8", "mkfifo n8", "os.mkfifo('n8')", "", "mknod =n8 010644 0",
        (libc::SYS_mknodat, "-100 =n8 010644 0")),
    attempt("chmod f8", "chmod 600 f8", "os.chmod('f8', 0o600)", "fs.chmodSync('f8', 0o600)", "chmod =f8 0600",
        (libc::SYS_fchmodat, "-100 =f8 0600")),
    attempt("chmod f9", "", "os.fchmod(os.open('f9', os.O_RDONLY), 0o600)", "fs.fchmodSync(fs.openSync('f9'), 0o600)",
        "fchmod @f9 0600", (libc::SYS_fchmod, "@f9 0600")),
    attempt("chown f10", "chown $UID f10", "os.chown('f10', u, u)", "fs.chownSync('f10', u, u)", "chown =f10 $UID $UID",
        (libc::SYS_fchownat, "-100 =f10 $UID $UID 0")),
    attempt("chown l2", "chown -h $UID l2", "os.lchown('l2', u, u)", "fs.lchownSync('l2', u, u)", "lchown =l2 $UID $UID",
        (libc::SYS_fchownat, "-100 =l2 $UID $UID 0x100")),
    attempt("utime f11", "touch -c -d 2001-01-01 f11", "os.utime('f11', (1, 1))", "fs.utimesSync('f11', 1, 1)",
        "utimensat -100 =f11 %1,0,1,0 0", (libc::SYS_utimensat, "-100 =f11 %1,0,1,0 0")),
    attempt("utime d2", "touch -c -h d2", "os.utime('d2')", "fs.lutimesSync('d2', 1, 1)", "utimes =d2 0",
        (libc::SYS_utimensat, "-100 =d2 0 0")),
    attempt("xattr f12", "", "os.setxattr('f12', 'user.b', b'1')", "", "setxattr =f12 =user.b =1 1 0",
        (libc::SYS_setxattr, "=f12 =user.b =1 1 0")),
    attempt("xattr f20", "", "os.removexattr('f20', 'user.a')", "", "removexattr =f20 =user.a",
        (libc::SYS_removexattr, "=f20 =user.a")),
    attempt("flags f13", "chattr +d f13", "fcntl.ioctl(os.open('f13', 0), 0x40086602, struct.pack('l', 0x80040))", "",
        "ioctl @f13 0x40086602 !", (libc::SYS_ioctl, "@f13 0x40086602 !")),
];

/// Runs what makes the attempts and asserts that each that it makes is recorded, and nothing else.
fn assert_all_are_seen(world: &World, case: &Case, of: impl Fn(&Attempt) -> &str, program: Option<&str>) {
    let mut expected: Vec<_> = ATTEMPTS
        .iter()
        .filter(|attempt| !of(attempt).is_empty())
        .map(|attempt| attempt.denial.replacen(' ', " out/", 1))
        .collect();
    expected.sort();
    world.prepare(ROOM);
    let before = snapshot(&world.beside());
    for evidence in WATCHED {
        let report = watched(case, evidence, world).run_in(world);
        assert_same(&expected, &attempts(world, &report), &format!("{evidence}\n{report}"));
        assert_same(&before, &snapshot(&world.beside()), "the outside changed");
        for denial in denials(&report) {
            assert_eq!(denial["count"], 1, "{report}");
            if let Some(program) = program {
                assert_eq!(denial["program"], program, "{report}");
            }
        }
    }
}

/// The attempts of one program, one a line.
fn lines<'a>(of: impl Fn(&'a Attempt) -> &'a str + 'a) -> impl Iterator<Item = &'a str> {
    ATTEMPTS.iter().map(of).filter(|line| !line.is_empty())
}

#[test]
fn a_shell_and_its_tools_are_seen() {
    let script: Vec<_> = std::iter::once("cd $OUT")
        .chain(lines(|attempt| attempt.shell))
        .collect();
    let case = Case::new(WorkspaceWrite).shell(&script.join("\n"));
    for_each_user(|world| assert_all_are_seen(world, &case, |attempt| attempt.shell, None));
}

#[test]
fn python_is_seen() {
    let mut script =
        "import fcntl, os, struct\nu, w = os.getuid(), os.getcwd()\nos.chdir(os.environ['OUT'])\n".to_owned();
    for line in lines(|attempt| attempt.python) {
        let _ = writeln!(script, "try: {line}\nexcept OSError: pass");
    }
    let case = Case::new(WorkspaceWrite).argv(["python3", "-B", "-I", "-c", &script]);
    for_each_user(|world| assert_all_are_seen(world, &case, |attempt| attempt.python, Some("python3")));
}

#[test]
fn node_is_seen() {
    let mut script =
        "const fs = require('fs'), u = process.getuid(), w = process.cwd(); process.chdir(process.env.OUT);\n"
            .to_owned();
    for line in lines(|attempt| attempt.node) {
        let _ = writeln!(
            script,
            "try {{ {line} }} catch (error) {{ if (!error.syscall) throw error }}"
        );
    }
    for_each_user(|world| {
        let case = Case::new(WorkspaceWrite).argv(["node", "-e", &script]);
        assert_all_are_seen(world, &case, |attempt| attempt.node, Some("node"));
    });
}

#[test]
fn a_program_that_carries_its_c_library_in_itself_is_seen() {
    let script: Vec<_> = lines(|attempt| attempt.function)
        .map(|call| format!("$TOOLS/call {call}"))
        .collect();
    let case = Case::new(WorkspaceWrite).shell(&format!("cd $OUT\n{}", script.join("\n")));
    for_each_user(|world| {
        compile(world, "call", CALL, "-static");
        assert_all_are_seen(world, &case, |attempt| attempt.function, Some("call"));
    });
}

#[test]
fn a_program_that_calls_by_the_instruction_itself_is_seen() {
    let script: Vec<_> = ATTEMPTS
        .iter()
        .map(|attempt| format!("$TOOLS/call {} {}", attempt.call.0, attempt.call.1))
        .collect();
    let case = Case::new(WorkspaceWrite).shell(&format!("cd $OUT\n{}", script.join("\n")));
    for_each_user(|world| {
        compile(world, "call", CALL, "");
        assert_all_are_seen(world, &case, |attempt| attempt.call.1, Some("call"));
    });
}

#[test]
fn threads_and_children_of_every_kind_are_seen() {
    const PROGRAM: &str = "
import os, subprocess, threading
os.chdir(os.environ['OUT'])
def attempt(name):
    try: open(name, 'w')
    except OSError: pass
threads = [threading.Thread(target=attempt, args=('thread%d' % n,)) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
if os.fork() == 0: attempt('child'); os._exit(0)
os.wait()
if os.fork() == 0:
    os.setsid()
    attempt('session')
    os._exit(0)
os.wait()
os.waitpid(os.posix_spawn('/bin/mkdir', ['mkdir', 'spawned'], os.environ), 0)
try: os.posix_spawn('/bin/true', ['true'], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, 'redirected', os.O_CREAT | os.O_WRONLY, 0o644)])
except OSError: pass
subprocess.run(['sh', '-c', 'echo x | tee piped | cat > redirect'], stderr=subprocess.DEVNULL)
subprocess.run(['setsid', '--wait', 'touch', 'apart'], stderr=subprocess.DEVNULL)";
    for_each_user(|world| {
        let case = Case::new(WorkspaceWrite).argv(["python3", "-B", "-I", "-c", PROGRAM]);
        for evidence in WATCHED {
            let report = watched(&case, evidence, world).run_in(world);
            report.assert_exit(0);
            let mut expected: Vec<_> = (0..8).map(|n| format!("create out/thread{n}")).collect();
            expected.extend(
                ["child", "session", "redirected", "piped", "redirect", "apart"]
                    .map(|name| format!("create out/{name}")),
            );
            expected.push("mkdir out/spawned".to_owned());
            expected.sort();
            assert_same(&expected, &attempts(world, &report), &format!("{evidence}\n{report}"));
            assert_eq!(names(world.beside()), [""; 0]);
        }
    });
}

/// A refusal of which nobody hears anything is a denial as well.
#[test]
fn what_a_command_keeps_silent_about_is_seen() {
    let check = |world: &World, report: &Report| {
        report.assert_exit(0);
        assert_eq!((report.stdout(), report.stderr()), ("", ""));
        let expected = ["create out/a", "create out/b", "create out/c"].map(str::to_owned);
        assert_same(&expected, &attempts(world, report), &format!("{report}"));
    };
    Case::new(WorkspaceWrite)
        .shell(
            "{ touch $OUT/a || true; } 2> /dev/null; (touch $OUT/b 2> /dev/null) | true; ! touch $OUT/c 2> /dev/null",
        )
        .run_as_each_user(check);
}

#[test]
fn a_socket_that_is_bound_outside_is_a_node_that_was_refused() {
    const PROGRAM: &str = "
import os, socket
for path in 'in', os.environ['OUT'] + '/socket':
    try: socket.socket(socket.AF_UNIX).bind(path)
    except OSError: print('refused')";
    for_each_user(|world| {
        for evidence in WATCHED {
            world.prepare("rm -f in");
            let case = Case::new(WorkspaceWrite).argv(["python3", "-B", "-I", "-c", PROGRAM]);
            let report = watched(&case, evidence, world).run_in(world);
            assert_eq!(report.stdout(), "refused\n");
            assert_eq!(
                (names(world.workspace()), names(world.beside())),
                (vec!["in".to_owned()], vec![])
            );
            assert_same(
                &["mknod out/socket".to_owned()],
                &attempts(world, &report),
                &format!("{evidence}\n{report}"),
            );
        }
    });
}
