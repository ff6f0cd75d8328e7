//! Input that Ringfence feeds to a command: whole, or for as long as the command wants it.

use std::fs::{self, File};
use std::process::Stdio;

use ringfence::SandboxMode::{ReadOnly, WorkspaceWrite};

use crate::support::{Case, Report, for_each_user, text};

#[test]
fn a_command_that_does_not_read_its_input_ends_as_it_would_without() {
    for size in ["1M", "20M"] {
        for script in [
            "exit 3",
            "exec <&-; echo on > on; exit 3",
            "head -c 1 > /dev/null; exit 3",
        ] {
            Case::new(WorkspaceWrite)
                .setup(&format!("head -c {size} /dev/zero > $OUT/in"))
                .options(["--stdin", "$OUT/in"])
                .shell(script)
                .run_as_each_user(|_, report| {
                    report.assert_exit(3).assert_denied(false);
                    assert_eq!(report.stderr(), "");
                });
        }
    }
}

#[test]
fn input_larger_than_a_pipe_arrives_whole() {
    for_each_user(|world| {
        world.prepare("head -c 5000003 /dev/urandom > $OUT/in");
        let file = Case::new(WorkspaceWrite)
            .options(["--stdin", "$OUT/in"])
            .shell("cat > got");
        file.run_in(world).assert_exit(0);
        let sent = fs::read(world.outside("in")).unwrap();
        assert!(fs::read(world.inside("got")).unwrap() == sent);

        let own = Case::new(WorkspaceWrite).options(["--stdin", "-"]).shell("cat > got2");
        let mut command = own.command_in(world);
        command.stdin(File::open(world.outside("in")).unwrap());
        Report::read(world.outcome(command)).assert_exit(0);
        assert!(fs::read(world.inside("got2")).unwrap() == sent);
    });
}

#[test]
fn a_named_pipe_as_input_is_read_to_the_end_of_its_writer() {
    for_each_user(|world| {
        world.prepare("mkfifo $OUT/p");
        let mut writer = world.command("bash");
        writer
            .args(["-c", "head -c 300000 /dev/zero > $OUT/p"])
            .stdout(Stdio::null());
        let mut writer = writer.spawn().unwrap();
        let report = Case::new(ReadOnly)
            .options(["--stdin", "$OUT/p", "-t", "60s"])
            .argv(["wc", "-c"])
            .run_in(world);
        assert_eq!(report.assert_exit(0).stdout(), "300000\n");
        assert!(writer.wait().unwrap().success());
    });
}

#[test]
fn input_that_cannot_be_read_starts_nothing_and_is_named() {
    for_each_user(|world| {
        world.prepare("mkdir dir; : > closed; chmod 0 closed");
        let mut files = vec![("dir", "directory"), ("none", "No such file"), ("", "No such file")];
        if world.uid() != 0 {
            files.push(("closed", "Permission denied"));
        }
        for (file, reason) in files {
            let report = Case::new(WorkspaceWrite)
                .options(["--stdin", file])
                .shell("echo ran > ran")
                .run_in(world);
            report.assert_error("INPUT_INVALID");
            let message = report.text("/error/message");
            assert!(message.contains("--stdin") && message.contains(reason), "{report}");
        }
        assert!(!world.inside("ran").exists());
    });
}

#[test]
fn without_input_a_captured_command_reads_the_null_device() {
    Case::new(WorkspaceWrite)
        .shell("stat -L -c '%F %t:%T' /proc/self/fd/0 > kind; wc -c > length")
        .run_as_each_user(|world, report| {
            report.assert_exit(0);
            assert_eq!(text(world.inside("kind")), "character special file 1:3\n");
            assert_eq!(text(world.inside("length")), "0\n");
        });
}
