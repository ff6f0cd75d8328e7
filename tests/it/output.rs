//! Long output: what is kept of it, the file that gets all of it, and both streams in one.

mod budget;
mod spill;

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};
use ringfence::facts::Spill;
use ringfence::policy::open_root;
use ringfence::{Abort, Capture, Deployment, ExecRequest, Runner, Surroundings, resolve};

use crate::support::{Case, User, World, for_each_user, text};

/// Prints what `$1` says, then how much memory the run took at most in KiB, on stderr.
const WEIGHED: &str = "
import os, sys, resource
pid = os.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(pid, 0)
print(used.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))";

#[test]
fn both_streams_in_one_are_in_the_order_in_which_they_were_written() {
    let text = "for i in 1 2 3 4 5 6 7 8 9; do echo out $i; echo err $i >&2; done; printf end >&2";
    Case::new(WorkspaceWrite)
        .options(["--merge"])
        .shell(text)
        .run_as_each_user(|_, report| {
            let expected: Vec<_> = (1..10).map(|i| format!("out {i}\nerr {i}\n")).collect();
            report.assert_exit(0);
            assert_eq!(report.stdout(), expected.concat() + "end");
            assert_eq!((report.stderr(), report.field("/stderr/bytes")), ("", &0.into()));
            assert_eq!(report.field("/merged"), true);
        });
}

#[test]
fn streams_that_were_not_merged_say_so() {
    Case::new(ReadOnly)
        .shell("echo out; echo err >&2")
        .run_as_each_user(|_, report| {
            assert_eq!((report.stdout(), report.stderr()), ("out\n", "err\n"));
            assert_eq!(report.field("/merged"), false);
        });
}

#[test]
fn one_of_the_merged_streams_can_be_closed_and_the_other_goes_on() {
    Case::new(ReadOnly)
        .options(["--merge"])
        .shell("echo a; exec >&-; echo b >&2; echo c > /dev/stderr")
        .run_as_each_user(|_, report| {
            report.assert_exit(0);
            assert_eq!(report.stdout(), "a\nb\nc\n");
        });
}

#[test]
fn streams_that_are_the_callers_cannot_be_merged() {
    for_each_user(|world| {
        let mut command = world.command(world.program());
        command.args(["run", "--merge", "-c", "echo ran > $W/ran"]);
        world
            .outcome(command)
            .assert_refused(&["INPUT_INVALID", "--merge", "--json"]);
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn a_denial_in_merged_streams_is_told_all_the_same() {
    for evidence in ["auto", "off"] {
        Case::new(ReadOnly)
            .options(["--merge", "--evidence", evidence])
            .shell("echo x > $W/x")
            .run_as_each_user(|world, report| {
                report.assert_exit(1).assert_denied(true);
                assert!(!world.inside("x").exists());
            });
    }
}

#[test]
fn output_that_reads_like_no_text_is_called_binary() {
    let cases = [
        ("printf 'plain text'", false, false),
        ("printf 'caf\\351 au lait'", true, false),
        ("printf 'a\\0b'", false, true),
        ("head -c 5000 /dev/zero | tr '\\0' '\\377'", true, true),
        ("head -c 300000 /dev/zero", false, true),
        ("true", false, false),
    ];
    for (script, lossy, binary) in cases {
        Case::new(ReadOnly).shell(script).run_as_each_user(|_, report| {
            assert_eq!(report.field("/stdout/lossyUtf8"), lossy, "{script}");
            assert_eq!(report.field("/stdout/binary"), binary, "{script}");
            assert_eq!(report.field("/stderr/binary"), false);
        });
    }
}

#[test]
fn memory_does_not_grow_with_the_output() {
    let weigh = |script: &str| {
        Case::new(ReadOnly)
            .inside(["python3", "-c", WEIGHED])
            .options(["--max-spill", "0"])
            .shell(script)
    };
    let (short, long) = (
        weigh("head -c 10 /dev/zero | tr '\\0' x"),
        weigh("head -c 268435456 /dev/zero | tr '\\0' x"),
    );
    for_each_user(|world| {
        // The first run of all also asks the host what it can do.
        short.outcome_in(world);
        let most = |case: &Case| {
            let outcome = case.outcome_in(world);
            assert_eq!(outcome.status(), 0, "{outcome}");
            outcome.stderr().trim().parse::<u64>().unwrap()
        };
        let (short, long) = (most(&short), most(&long));
        assert!(
            long < short + 1024,
            "{short} KiB with 10 bytes, {long} KiB with 256 MiB"
        );
    });
}

#[test]
fn one_line_of_many_bytes_is_as_good_as_many_lines() {
    Case::new(ReadOnly)
        .options(["--max-output", "10"])
        .shell("head -c 20000000 /dev/zero | tr '\\0' x; printf 'THE END'")
        .run_as_each_user(|_, report| {
            assert_eq!(report.stdout(), "xxxTHE END");
            assert_eq!(report.field("/stdout/bytes"), 20_000_007);
        });
}

#[test]
fn many_tiny_writes_lose_nothing() {
    let text = "import os\nfor i in range(100000): os.write(1, b'%05d\\n' % i)";
    Case::new(ReadOnly)
        .options(["--max-output", "1m"])
        .argv(["python3", "-c", text])
        .run_as_each_user(|_, report| {
            let expected: Vec<_> = (0..100_000).map(|i| format!("{i:05}\n")).collect();
            assert!(
                report.stdout() == expected.concat(),
                "{} bytes came",
                report.stdout().len()
            );
            assert_eq!(report.field("/stdout/truncated"), false);
        });
}

#[test]
fn in_the_library_each_stream_has_a_limit_of_its_own() {
    let world = World::new(User::Caller);
    let root = open_root(&world.workspace()).unwrap();
    let deployment = Deployment {
        mode: ReadOnly,
        root: Some(root.clone()),
        ..Deployment::default()
    };
    let surroundings = Surroundings::of(root);
    let policy = resolve(&deployment, None, None, &surroundings).unwrap();
    let argv = ["/bin/sh", "-c", "echo 123456789; echo 123456789 >&2"];
    let mut request = ExecRequest::new(argv.map(Into::into).to_vec(), policy);
    request.capture = Capture::Captured {
        max_stdout: 3,
        max_stderr: 5,
        max_spill: 8,
        merge: false,
    };
    let runner = Runner::new(Some(world.state()));
    let spec = runner.resolve(request).unwrap();
    let report = runner.run_blocking(spec, &Abort::new()).unwrap();
    let (stdout, stderr) = (report.stdout.unwrap(), report.stderr.unwrap());
    assert_eq!((stdout.text.as_str(), stderr.text.as_str()), ("89\n", "6789\n"));
    for stream in [stdout, stderr] {
        assert_eq!(stream.spill, Some(Spill::Head { bytes: 8 }));
        assert_eq!(text(stream.spill_path.unwrap()), "12345678");
    }
}
