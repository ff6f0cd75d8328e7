//! What a command finds when it starts, and what happens when it cannot.

use std::ffi::CStr;
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::fcntl::OFlag;
use ringfence_backend::darwin::LaunchError;
use ringfence_backend::descriptor::End;
use ringfence_backend::status::Stage;
use ringfence_backend::{ChildLimit, ChildStdio, FileId, Session};

use crate::world::{PROFILE, World, script};

/// The stage and errno of a launch that failed.
fn failure(result: Result<crate::world::Running, LaunchError>) -> (Stage, i32) {
    match result {
        Err(LaunchError::Failed(failure)) => (failure.stage, failure.errno),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("the command ran"),
    }
}

#[test]
fn a_command_has_its_arguments_environment_directory_and_streams() {
    let world = World::new();
    let mut asked = script("printf '%s|' \"$0\" \"$@\" \"$ONE\"; pwd; echo no >&2; exit 7");
    asked.argv.extend(["zero", "a b", "", "ü\n"]);
    asked.env.push(("ONE", "1 \"'\n2"));
    let done = world.run(asked);
    assert_eq!(done.end, Some(End::Exited(7)));
    assert_eq!(
        done.stdout,
        format!("zero|a b||ü\n|1 \"'\n2|{}\n", world.path().display())
    );
    assert_eq!((done.stderr.as_str(), done.survivors), ("no\n", Some(0)));
}

#[test]
fn sandbox_exec_gets_the_profile_and_nothing_of_the_command() {
    let world = World::new();
    let mut asked = script("echo SECRET-IN-THE-TEXT");
    asked.env.push(("TOKEN", "SECRET-IN-THE-ENVIRONMENT"));
    assert_eq!(world.run(asked).stdout, "SECRET-IN-THE-TEXT\n");
    assert_eq!(world.read("profile"), PROFILE);
    for name in ["words", "environment"] {
        assert!(!world.read(name).contains("SECRET"), "{}", world.read(name));
    }
}

#[test]
fn without_a_boundary_no_sandbox_exec_is_started() {
    let world = World::new();
    let mut asked = script("echo ran");
    asked.confined = false;
    assert_eq!(world.run(asked).stdout, "ran\n");
    assert!(!world.has("profile"));
}

#[test]
fn a_sandbox_exec_that_refuses_is_quoted_and_the_command_does_not_run() {
    for text in [
        "echo 'sandbox-exec: unbound variable: file-graft' >&2; exit 65",
        "echo 'sandbox-exec: unbound variable: file-graft' >&2; kill -9 $$",
        // It says that all went well, and has started nothing.
        "echo 'sandbox-exec: unbound variable: file-graft' >&2; exit 0",
    ] {
        let world = World::new();
        world.stand_in(text);
        match world.start(script("touch ran")) {
            Err(LaunchError::Vanished { words }) => assert!(words.contains("unbound variable"), "{words}"),
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("the command ran"),
        }
        assert!(!world.has("ran"));
    }
}

#[test]
fn a_sandbox_exec_that_is_not_there_is_no_missing_command() {
    let world = World::new();
    fs::remove_file(world.path().join("sandbox-exec")).unwrap();
    assert_eq!(failure(world.start(script("touch ran"))), (Stage::Parent, libc::ENOENT));
    assert!(!world.has("ran"));
}

#[test]
fn a_program_that_does_not_know_the_words_starts_nothing() {
    let world = World::new();
    let mut asked = script("touch ran");
    asked.program = Path::new("/bin/true");
    assert!(matches!(world.start(asked), Err(LaunchError::Vanished { .. })));
    let mut asked = script("touch ran");
    asked.program = Path::new("/none");
    assert!(matches!(world.start(asked), Err(LaunchError::Prepare(_))));
    assert!(!world.has("ran"));
}

#[test]
fn a_command_that_cannot_be_executed_says_why() {
    let world = World::new();
    for (program, errno) in [
        ("no-such-command", libc::ENOENT),
        ("/etc/passwd", libc::EACCES),
        ("/bin/sh/x", libc::ENOENT),
    ] {
        let mut asked = script("");
        asked.argv = vec![program];
        assert_eq!(failure(world.start(asked)), (Stage::Exec, errno), "{program}");
    }
}

#[test]
fn a_directory_that_was_exchanged_is_not_entered() {
    let world = World::new();
    let mut asked = script("touch ran");
    asked.workdir_id = Some(FileId { device: 1, inode: 1 });
    assert_eq!(failure(world.start(asked)), (Stage::WorkingDirectory, libc::ESTALE));
    assert!(!world.has("ran"));
}

#[test]
fn nothing_but_the_streams_and_the_one_descriptor_reaches_a_command() {
    let world = World::new();
    // Descriptors that are let through exec, as a careless host has them.
    let careless = File::open("/dev/zero").unwrap();
    nix::fcntl::fcntl(&careless, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    fs::write(world.path().join("text"), "handed on").unwrap();
    let listing = "ls /proc/self/fd | sort -n | tr '\\n' ' '";
    assert_eq!(world.run(script(listing)).stdout, shown(&[0, 1, 2]));
    let mut held = Vec::new();
    for _ in 0..8 {
        let extra = File::open(world.path().join("text")).unwrap();
        let number = extra.as_raw_fd();
        let text = format!("cat /dev/fd/{number}; {listing}");
        let mut asked = script(&text);
        asked.extra = Some(extra.as_fd());
        assert_eq!(
            world.run(asked).stdout,
            format!("handed on{}", shown(&[0, 1, 2, number]))
        );
        // So that the next has another number.
        held.push(extra);
    }
}

/// How ls(1) shows its descriptors, with the one more that it reads them from: the lowest that is free.
fn shown(open: &[i32]) -> String {
    let own = (0..9).find(|number| !open.contains(number)).unwrap();
    let mut all = [open, &[own]].concat();
    all.sort_unstable();
    let words: Vec<_> = all.iter().map(i32::to_string).collect();
    words.join(" ") + " "
}

#[test]
fn limits_hold_for_the_command() {
    let world = World::new();
    let nofile = ChildLimit {
        resource: i32::try_from(libc::RLIMIT_NOFILE).unwrap(),
        soft: 33,
        hard: 44,
    };
    let limits = [nofile];
    let mut asked = script("ulimit -Sn; ulimit -Hn");
    asked.limits = &limits;
    assert_eq!(world.run(asked).stdout, "33\n44\n");
    let unknown = [ChildLimit {
        resource: 999,
        ..nofile
    }];
    let mut asked = script("touch ran");
    asked.limits = &unknown;
    assert_eq!(failure(world.start(asked)), (Stage::Limits, libc::EINVAL));
    assert!(!world.has("ran"));
}

#[test]
fn a_device_is_opened_by_its_name_and_must_be_what_it_was() {
    let null = fs::metadata("/dev/null").unwrap().rdev();
    let device = |path: &'static CStr, rdev| ChildStdio::Device {
        path,
        flags: OFlag::O_RDONLY,
        rdev,
    };
    let world = World::new();
    let mut asked = script("readlink /proc/self/fd/0");
    asked.stdin = Some(device(c"/dev/null", null));
    assert_eq!(world.run(asked).stdout, "/dev/null\n");
    for (path, rdev) in [(c"/dev/zero", null), (c"/etc/passwd", null)] {
        let mut asked = script("touch ran");
        asked.stdin = Some(device(path, rdev));
        assert_eq!(failure(world.start(asked)), (Stage::Streams, libc::ESTALE));
    }
    assert!(!world.has("ran"));
}

#[test]
fn a_command_has_the_session_that_was_asked_for() {
    let world = World::new();
    let read = |session| {
        let mut asked = script("cut -d' ' -f1,5,6 /proc/$$/stat");
        asked.session = session;
        let running = world.start(asked).unwrap();
        let command = running.launched.command.unwrap();
        let said = running.finish().stdout;
        let numbers: Vec<i32> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
        (command, numbers)
    };
    let (command, numbers) = read(Session::Own);
    assert_eq!(numbers, [command, command, command]);
    let (command, numbers) = read(Session::Callers);
    let session = nix::unistd::getsid(None).unwrap().as_raw();
    assert_eq!((numbers[0], numbers[2]), (command, session));
}

#[test]
fn signals_are_what_a_fresh_program_expects() {
    let world = World::new();
    let said = world
        .run(script("exec grep -E '^Sig(Blk|Ign)' /proc/self/status"))
        .stdout;
    for line in said.lines() {
        let (_, mask) = line.split_once('\t').unwrap();
        // The two that the C library keeps to itself are nobody's.
        let mask = u64::from_str_radix(mask, 16).unwrap() & !(0b11 << 31);
        assert_eq!(mask, 0, "{said}");
    }
}
