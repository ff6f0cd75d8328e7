//! Commands with odd names, that flood, that die in mid-call, or that filter themselves.

use std::time::Duration;

use base64::Engine;
use ringfence::SandboxMode::WorkspaceWrite;
use serde_json::Value;

use super::{WATCHED, assert_same, attempts, denials, records, snapshot, watched};
use crate::support::{Case, Report, World, for_each_user, names};

/// Python with the C library at hand, and a way to make an attempt that may fail.
const PYTHON: &str = "
import ctypes, os, signal, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
out, work = os.environ['OUT'], os.getcwd()
x86 = os.uname().machine == 'x86_64'
def attempt(function, *args, **more):
    try: function(*args, **more); print('done')
    except OSError as error: print(error.strerror)
def hide(): assert libc.prctl(4, 0, 0, 0, 0) == 0
";

pub(super) fn python(program: &str) -> [String; 5] {
    ["python3", "-B", "-I", "-c", &format!("{PYTHON}{program}")].map(str::to_owned)
}

/// Runs a program in a fresh world of each user, watched in each way.
pub(super) fn each_way(program: &str, check: impl Fn(&World, &Report)) {
    for evidence in WATCHED {
        for_each_user(|world| {
            world.prepare("echo keep > $OUT/f; echo keep > $OUT/g");
            let before = snapshot(&world.beside());
            let report = watched(&Case::new(WorkspaceWrite).argv(python(program)), evidence, world).run_in(world);
            report.assert_exit(0);
            check(world, &report);
            assert_same(&before, &snapshot(&world.beside()), "the outside changed");
        });
    }
}

// --- names --------------------------------------------------------------------------------------

#[test]
fn a_path_of_any_bytes_is_shown_with_its_bytes() {
    let odd = b"\xff\xfe\n\x1b[1m\" (deleted)";
    let program = "open_at = os.fsencode(out) + b'/\\xff\\xfe\\n\\x1b[1m\" (deleted)'; attempt(os.mkdir, open_at)";
    each_way(program, |world, report| {
        let [denial] = denials(report) else { panic!("{report}") };
        let path = denial["path"].as_str().unwrap();
        assert!(
            path.ends_with("/out/\u{fffd}\u{fffd}\n\u{1b}[1m\" (deleted)"),
            "{path:?}"
        );
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(denial["pathBytes"].as_str().unwrap())
            .unwrap();
        assert_eq!(
            bytes,
            [world.beside().as_os_str().as_encoded_bytes(), b"/", odd].concat()
        );
    });
}

#[test]
fn a_path_that_is_text_needs_no_bytes() {
    each_way("attempt(os.mkdir, out + '/\u{e4}\u{1f600} \\n\\t')", |_, report| {
        let [denial] = denials(report) else { panic!("{report}") };
        assert!(
            denial["path"].as_str().unwrap().ends_with("/\u{e4}\u{1f600} \n\t"),
            "{report}"
        );
        assert!(denial.get("pathBytes").is_none(), "{report}");
    });
}

#[test]
fn a_program_of_any_name_is_shown_by_it() {
    each_way(
        "libc.prctl(15, b'odd\\xff \\n\"', 0, 0, 0); attempt(os.mkdir, out + '/new')",
        |_, report| {
            let [denial] = denials(report) else { panic!("{report}") };
            assert!(
                denial["program"].as_str().unwrap().starts_with("odd\u{fffd}"),
                "{report}"
            );
        },
    );
}

#[test]
fn a_path_that_is_too_long_for_any_call_is_no_denial() {
    each_way(
        "attempt(open, '/a' * 3000, 'w'); attempt(os.mkdir, out + '/..' * 2000 + '/x')",
        |world, report| {
            assert!(!report.stdout().contains("done"), "{report}");
            assert_same(&[], &records(world, report), &format!("{report}"));
        },
    );
}

// --- ends and floods ----------------------------------------------------------------------------

#[test]
fn threads_that_end_in_mid_call_leave_the_run_as_it_is() {
    let program = "
def loop(n):
    while True:
        try: os.open(out + '/n%d' % n, os.O_CREAT | os.O_WRONLY)
        except OSError: pass
for how in range(30):
    child = os.fork()
    if child == 0:
        for n in range(4): threading.Thread(target=loop, args=(n,), daemon=True).start()
        time.sleep(0.005)
        if how % 3 == 0: os._exit(0)
        if how % 3 == 1: os.execv('/bin/true', ['true'])
        time.sleep(60)
    if how % 3 == 2: time.sleep(0.01); os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print('over')";
    each_way(program, |world, report| {
        assert_eq!(report.stdout(), "over\n");
        let expected: Vec<_> = (0..4).map(|n| format!("create out/n{n}")).collect();
        assert!(!denials(report).is_empty(), "{report}");
        for attempt in attempts(world, report) {
            assert!(expected.contains(&attempt), "{attempt}\n{report}");
        }
    });
}

#[test]
fn a_call_that_a_signal_interrupts_is_one_call() {
    let program = "
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
for n in range(2000): attempt(os.mkdir, out + '/new')
signal.setitimer(signal.ITIMER_REAL, 0)";
    each_way(program, |_, report| {
        let [denial] = denials(report) else { panic!("{report}") };
        assert_eq!(denial["count"], 2000, "{report}");
        assert_eq!(report.stdout().replace("Read-only file system\n", ""), "");
    });
}

#[test]
fn a_flood_of_refusals_is_counted_and_the_list_of_them_is_bounded() {
    let program = "
for n in range(20000):
    try: os.open(out + '/n%d' % n, os.O_CREAT | os.O_WRONLY)
    except OSError: pass
    else: print('done')
for n in range(500):
    try: os.chmod(out + '/f', 0o600)
    except OSError: pass
    try: os.open(out + '/n7', os.O_CREAT | os.O_WRONLY)
    except OSError: pass";
    each_way(program, |_, report| {
        assert_eq!(report.stdout(), "");
        let list = denials(report);
        let count = |denial: &Value| denial["count"].as_u64().unwrap();
        let omitted = report.field("/sandbox/denialsOmitted").as_u64().unwrap();
        assert_eq!(
            list.iter().map(count).sum::<u64>() + omitted,
            21_000,
            "every refusal is counted once"
        );
        assert!((100..=1000).contains(&list.len()), "{} are listed", list.len());
        let seven = list
            .iter()
            .find(|denial| denial["path"].as_str().unwrap().ends_with("/out/n7"));
        assert_eq!(seven.map(count), Some(501), "what was listed goes on being counted");
    });
}

#[test]
fn a_flood_of_one_refusal_is_one_record() {
    let program = "
for n in range(20000):
    try: os.unlink(out + '/f')
    except OSError: pass";
    each_way(program, |_, report| {
        let [denial] = denials(report) else { panic!("{report}") };
        assert_eq!(
            (&denial["count"], report.field("/sandbox/denialsOmitted")),
            (&20_000.into(), &0.into())
        );
    });
}

#[test]
fn a_flood_does_not_put_off_the_deadline() {
    let program = "
if os.fork(): os.fork()
while True:
    try: os.open(out + '/new', os.O_CREAT | os.O_WRONLY)
    except OSError: pass";
    for evidence in WATCHED {
        for_each_user(|world| {
            let case = Case::new(WorkspaceWrite)
                .options(["--timeout", "1s", "--grace", "1s"])
                .argv(python(program));
            let report = watched(&case, evidence, world).run_in(world);
            assert_eq!(report.field("/timedOut"), true, "{report}");
            let took = Duration::from_millis(report.field("/durationMs").as_u64().unwrap());
            assert!(took < Duration::from_secs(4), "{report}");
            assert_same(
                &["create out/new".to_owned()],
                &attempts(world, &report),
                &format!("{report}"),
            );
        });
    }
}

// --- other filters ------------------------------------------------------------------------------

/// Installs a filter that answers mkdirat(2) with EPERM and allows all else.
const FILTER: &str = "
def install(flags, action):
    mkdirat = 258 if x86 else 34
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, mkdirat), (6, 0, 0, action), (6, 0, 0, 0x7fff0000)]
    code = b''.join(struct.pack('HBBI', *line) for line in code)
    holder = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 4, ctypes.addressof(holder)))
    return libc.syscall(317 if x86 else 277, 1, flags, ctypes.c_void_p(ctypes.addressof(program)))
def mkdirat(path):
    if libc.mkdirat(-100, path.encode(), 0o755) < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
";

#[test]
fn what_a_commands_own_filter_refuses_is_no_denial() {
    let program = format!(
        "{FILTER}\nassert install(0, 0x50001) == 0\nattempt(mkdirat, out + '/a'); attempt(mkdirat, 'b')\nattempt(open, out + '/c', 'w')"
    );
    each_way(&program, |world, report| {
        assert_eq!(
            report.stdout(),
            "Operation not permitted\nOperation not permitted\nRead-only file system\n"
        );
        assert_same(
            &["create out/c".to_owned()],
            &attempts(world, report),
            &format!("{report}"),
        );
    });
}

#[test]
fn a_filter_that_allows_everything_takes_no_call_from_sight() {
    let program = format!("{FILTER}\nassert install(0, 0x7fff0000) == 0\nattempt(mkdirat, out + '/a'); mkdirat('b')");
    each_way(&program, |world, report| {
        assert_same(
            &["mkdir out/a".to_owned()],
            &attempts(world, report),
            &format!("{report}"),
        );
        assert_eq!(names(world.workspace()), ["b"]);
    });
}

#[test]
fn a_command_cannot_watch_itself_instead() {
    // SECCOMP_FILTER_FLAG_NEW_LISTENER, and a second try without it for notifications that nobody would answer.
    let program = format!(
        "{FILTER}\nprint(install(8, 0x7fc00000) < 0 and os.strerror(ctypes.get_errno()))\nattempt(mkdirat, out + '/a')"
    );
    each_way(&program, |world, report| {
        assert_eq!(report.stdout(), "Device or resource busy\nRead-only file system\n");
        assert_same(
            &["mkdir out/a".to_owned()],
            &attempts(world, report),
            &format!("{report}"),
        );
    });
}
