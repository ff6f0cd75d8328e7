use ringfence_backend::calls::INODE_REQUESTS;

use super::assembly::halves;
use super::*;

const NONE: [u32; 3] = [0; 3];
/// The runner's process id.
const RUNNER: u32 = 77;

/// Runs a filter as the kernel would, for the instructions that occur in it.
fn verdict(program: &[sock_filter], arch: u32, nr: u32, args: [u32; 3]) -> u32 {
    with_cookie(program, arch, nr, args, 0)
}

fn with_cookie(program: &[sock_filter], arch: u32, nr: u32, args: [u32; 3], sixth: u64) -> u32 {
    let mut accumulator = 0;
    let mut at = 0;
    loop {
        let i = program[at];
        at += 1;
        let jump = |holds: bool| usize::from(if holds { i.jt } else { i.jf });
        match i.code {
            LOAD => {
                accumulator = match i.k {
                    NR => nr,
                    ARCHITECTURE => arch,
                    56 => halves(sixth)[0],
                    60 => halves(sixth)[1],
                    argument => args[(argument - ARGUMENTS) as usize / 8],
                };
            }
            JUMP_EQUAL => at += jump(accumulator == i.k),
            JUMP_GREATER_OR_EQUAL => at += jump(accumulator >= i.k),
            0x25 => at += jump(accumulator > i.k),
            JUMP_SET => at += jump(accumulator & i.k != 0),
            0x54 => accumulator &= i.k,
            JUMP => at += i.k as usize,
            RETURN => return i.k,
            other => panic!("an instruction that the test does not know: {other:#x}"),
        }
    }
}

fn errno(value: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | value.cast_unsigned()
}

#[test]
fn foreign_architectures_and_io_uring_do_not_exist() {
    let base = base(RUNNER, Sockets::default()).unwrap();
    assert_eq!(
        verdict(&base, 0x4000_0003, number(libc::SYS_read), NONE),
        errno(libc::ENOSYS)
    );
    assert_eq!(
        verdict(&base, ARCH, number(libc::SYS_io_uring_setup), NONE),
        errno(libc::ENOSYS)
    );
    #[cfg(target_arch = "x86_64")]
    assert_eq!(verdict(&base, ARCH, X32 | 1, NONE), errno(libc::ENOSYS));
}

#[test]
fn keyrings_modules_and_typing_into_terminals_are_refused() {
    let base = base(RUNNER, Sockets::default()).unwrap();
    for call in REFUSED {
        assert_eq!(
            verdict(&base, ARCH, number(call), NONE),
            errno(libc::EPERM),
            "call {call}"
        );
    }
    for typed in [libc::TIOCSTI, libc::TIOCLINUX] {
        assert_eq!(
            verdict(&base, ARCH, number(libc::SYS_ioctl), [0, request(typed), 0]),
            errno(libc::EPERM)
        );
    }
}

#[test]
fn leases_and_delegations_are_refused_and_other_commands_of_fcntl_are_not() {
    for filter in [
        base(RUNNER, Sockets::default()),
        observing(RUNNER, Sockets::default(), None),
    ] {
        let judged = |command| verdict(filter.as_ref().unwrap(), ARCH, number(libc::SYS_fcntl), [3, command, 0]);
        assert_eq!(judged(1024), errno(libc::EPERM), "F_SETLEASE");
        assert_eq!(judged(1040), errno(libc::EPERM), "F_SETDELEG");
        for command in [
            libc::F_GETFL,
            libc::F_SETFL,
            libc::F_SETLK,
            libc::F_DUPFD_CLOEXEC,
            libc::F_GETLEASE,
        ] {
            assert_eq!(
                judged(command.cast_unsigned()),
                libc::SECCOMP_RET_ALLOW,
                "command {command}"
            );
        }
    }
}

#[test]
fn ordinary_calls_pass_the_base_filter() {
    let base = base(RUNNER, Sockets::default()).unwrap();
    for call in [libc::SYS_read, libc::SYS_openat, libc::SYS_fchmod, libc::SYS_execve] {
        assert_eq!(
            verdict(&base, ARCH, number(call), NONE),
            libc::SECCOMP_RET_ALLOW,
            "call {call}"
        );
    }
    assert_eq!(
        verdict(&base, ARCH, number(libc::SYS_ioctl), [0, request(libc::TCGETS), 0]),
        libc::SECCOMP_RET_ALLOW
    );
}

#[test]
fn a_priority_is_set_of_one_process_and_never_of_the_runner_a_group_or_a_user() {
    let base = base(RUNNER, Sockets::default()).unwrap();
    for (call, process) in [
        (libc::SYS_setpriority, PRIO_PROCESS),
        (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS),
    ] {
        let of = |which, who| verdict(&base, ARCH, number(call), [which, who, 0]);
        assert_eq!(of(process, 0), libc::SECCOMP_RET_ALLOW);
        assert_eq!(of(process, RUNNER + 1), libc::SECCOMP_RET_ALLOW);
        assert_eq!(of(process, RUNNER), errno(libc::EPERM));
        for which in [process + 1, process + 2] {
            assert_eq!(of(which, 0), errno(libc::EPERM));
        }
    }
}

#[test]
fn the_filters_stay_short() {
    assert!(observing(RUNNER, Sockets::default(), None).unwrap().len() <= 220);
}

#[test]
fn every_metadata_call_is_refused_in_the_fallback() {
    let metadata = metadata().unwrap();
    for (call, _) in calls::table().into_iter().filter(|(_, call)| call.is_metadata()) {
        assert_eq!(
            verdict(&metadata, ARCH, number(call), NONE),
            errno(libc::EROFS),
            "call {call}"
        );
    }
    // FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR change an inode, FS_IOC_GETFLAGS and FICLONE do not.
    for (ioctl, want) in [
        (0x4008_6602, errno(libc::EROFS)),
        (0x401c_5820, errno(libc::EROFS)),
        (0x8008_6601, libc::SECCOMP_RET_ALLOW),
        (0x4004_9409, libc::SECCOMP_RET_ALLOW),
        (request(libc::TCGETS), libc::SECCOMP_RET_ALLOW),
    ] {
        assert_eq!(
            verdict(&metadata, ARCH, number(libc::SYS_ioctl), [0, ioctl, 0]),
            want,
            "ioctl {ioctl:#x}"
        );
    }
    assert_eq!(
        verdict(&metadata, ARCH, number(libc::SYS_openat), NONE),
        libc::SECCOMP_RET_ALLOW
    );
}

#[test]
fn every_call_that_changes_files_waits_when_observed() {
    let observing = observing(RUNNER, Sockets::default(), None).unwrap();
    for (call, kind) in calls::table() {
        let args = match kind {
            Call::Open(_, 1) => [0, libc::O_WRONLY.cast_unsigned(), 0],
            Call::Open(..) => [0, 0, libc::O_RDWR.cast_unsigned()],
            Call::Ioctl => [0, INODE_REQUESTS[0], 0],
            _ => NONE,
        };
        assert_eq!(
            verdict(&observing, ARCH, number(call), args),
            libc::SECCOMP_RET_USER_NOTIF,
            "call {call}"
        );
    }
    for opening in [libc::O_CREAT, libc::O_TRUNC, libc::O_TMPFILE] {
        let args = [0, 0, opening.cast_unsigned()];
        assert_eq!(
            verdict(&observing, ARCH, number(libc::SYS_openat), args),
            libc::SECCOMP_RET_USER_NOTIF
        );
    }
}

#[test]
fn reading_does_not_wait_when_observed() {
    let observing = observing(RUNNER, Sockets::default(), None).unwrap();
    for opening in [0, libc::O_DIRECTORY | libc::O_CLOEXEC, libc::O_NOFOLLOW] {
        let args = [0, 0, opening.cast_unsigned()];
        assert_eq!(
            verdict(&observing, ARCH, number(libc::SYS_openat), args),
            libc::SECCOMP_RET_ALLOW
        );
    }
    for call in [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_execve,
        libc::SYS_sendmsg,
        libc::SYS_rt_sigprocmask,
    ] {
        assert_eq!(
            verdict(&observing, ARCH, number(call), NONE),
            libc::SECCOMP_RET_ALLOW,
            "call {call}"
        );
    }
}

#[test]
fn what_the_base_filter_refuses_is_never_allowed_when_observed() {
    const COOKIE: u64 = 0x1122_3344_5566_7788;
    let observing = observing(RUNNER, Sockets::default(), Some(COOKIE)).unwrap();
    let mounts = calls::table()
        .into_iter()
        .filter(|(_, kind)| matches!(kind, Call::Mount(_)));
    let mounts: Vec<_> = mounts.map(|(call, _)| call).collect();
    assert_eq!(mounts.len(), 11);
    for call in REFUSED {
        let expected = if mounts.contains(&call) {
            libc::SECCOMP_RET_USER_NOTIF
        } else {
            errno(libc::EPERM)
        };
        for sixth in [0, COOKIE] {
            assert_eq!(
                with_cookie(&observing, ARCH, number(call), NONE, sixth),
                expected,
                "call {call}"
            );
        }
    }
    assert_eq!(
        verdict(&observing, ARCH, number(libc::SYS_io_uring_setup), NONE),
        errno(libc::ENOSYS)
    );
}

#[test]
fn a_call_with_the_cookie_does_not_wait_and_every_other_does() {
    const COOKIE: u64 = 0x1122_3344_5566_7788;
    let observing = observing(RUNNER, Sockets::default(), Some(COOKIE)).unwrap();
    let writes = [0, 0, libc::O_WRONLY.cast_unsigned()];
    for call in [libc::SYS_openat, libc::SYS_mkdirat, libc::SYS_fchmod] {
        let judged = |sixth| with_cookie(&observing, ARCH, number(call), writes, sixth);
        assert_eq!(judged(COOKIE), libc::SECCOMP_RET_ALLOW);
        for other in [0, COOKIE ^ 1, COOKIE ^ (1 << 40), u64::MAX - 29] {
            assert_eq!(judged(other), libc::SECCOMP_RET_USER_NOTIF, "{other:#x}");
        }
    }
    let refused = with_cookie(&observing, ARCH, number(libc::SYS_keyctl), NONE, COOKIE);
    assert_eq!(refused, errno(libc::EPERM), "the cookie opens nothing");
}

#[test]
fn where_the_runner_changes_metadata_only_inode_requests_are_refused() {
    let requests = metadata::inode_requests().unwrap();
    let judged = |call, args| verdict(&requests, ARCH, number(call), args);
    assert_eq!(
        judged(libc::SYS_ioctl, [0, 0x4008_6602, 0]),
        libc::SECCOMP_RET_ALLOW,
        "it waits"
    );
    assert_eq!(
        judged(libc::SYS_ioctl, [0, 0x800c_6613, 0]),
        errno(libc::EROFS),
        "encryption policies"
    );
    assert_eq!(judged(libc::SYS_ioctl, [0, 0x8008_6601, 0]), libc::SECCOMP_RET_ALLOW);
    assert_eq!(judged(libc::SYS_fchmod, NONE), libc::SECCOMP_RET_ALLOW);
}

#[test]
fn the_runner_is_out_of_reach_and_others_are_not() {
    let base = base(RUNNER, Sockets::default()).unwrap();
    for call in ON_A_PROCESS {
        let judged = |process| verdict(&base, ARCH, number(call), [process, 0, 0]);
        assert_eq!(judged(RUNNER), errno(libc::EPERM), "call {call}");
        assert_eq!(judged(0), libc::SECCOMP_RET_ALLOW, "call {call}");
        assert_eq!(judged(RUNNER + 1), libc::SECCOMP_RET_ALLOW, "call {call}");
    }
}

#[test]
fn without_a_pid_namespace_nobody_elses_limits_and_priorities_change() {
    let program = sparing().unwrap();
    let of = |call, args| verdict(&program, ARCH, number(call), args);
    for process in [RUNNER, 12345] {
        assert_eq!(of(libc::SYS_prlimit64, [process, 7, 1]), errno(libc::EPERM));
        assert_eq!(of(libc::SYS_setpriority, [0, process, 19]), errno(libc::EPERM));
        assert_eq!(
            of(libc::SYS_prlimit64, [process, 7, 0]),
            libc::SECCOMP_RET_ALLOW,
            "only read"
        );
    }
    assert_eq!(of(libc::SYS_prlimit64, [0, 7, 1]), libc::SECCOMP_RET_ALLOW, "its own");
    assert_eq!(
        of(libc::SYS_setpriority, [0, 0, 19]),
        libc::SECCOMP_RET_ALLOW,
        "its own"
    );
    assert_eq!(of(libc::SYS_kill, [12345, 9, 0]), libc::SECCOMP_RET_ALLOW);
    assert_eq!(of(libc::SYS_kill, [SPARED, 9, 0]), errno(libc::EPERM));
    assert_eq!(program.iter().filter(|line| line.k == SPARED).count(), 1);
}

#[test]
fn sockets_are_made_only_through_open_doors() {
    let closed = |doors: &[Door]| Sockets::new(&doors.iter().copied().collect());
    let families = [
        libc::AF_UNIX,
        libc::AF_NETLINK,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_PACKET,
        libc::AF_VSOCK,
    ];
    for (doors, open) in [
        (&[][..], [true; 6]),
        (&[Door::Network], [true, true, false, false, false, false]),
        (&[Door::UnixSockets], [false, true, true, true, true, true]),
        (
            &[Door::Network, Door::UnixSockets],
            [false, true, false, false, false, false],
        ),
    ] {
        for program in [
            base(RUNNER, closed(doors)).unwrap(),
            observing(RUNNER, closed(doors), Some(1)).unwrap(),
        ] {
            for (family, open) in families.into_iter().zip(open) {
                let made = verdict(&program, ARCH, number(libc::SYS_socket), [family.cast_unsigned(), 1, 0]);
                let expected = if open {
                    libc::SECCOMP_RET_ALLOW
                } else {
                    errno(libc::EACCES)
                };
                assert_eq!(made, expected, "{doors:?} {family}");
            }
        }
    }
}
