//! A run that another program watches already: the kernel's log serves, where it is on.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use ringfence::SandboxMode::WorkspaceWrite;
use serde_json::json;

use crate::support::{Case, Report, World, names, text};

/// Listens, for a call that nobody makes, to the program that it becomes, which can make no namespaces.
const LISTENER: &str = r#"cc -x c -o "$HOME/listen" - <<'C'
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_lookup_dcookie, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWNS | CLONE_NEWUSER, 2, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    /* It listens for as long as the descriptor is open. */
    if (listener < 0 || fcntl(listener, F_SETFD, 0) < 0) return 99;
    execv(words[1], words + 1);
    return 98;
}
C"#;

/// `AUDIT_GET` and `AUDIT_SET`; `NLM_F_REQUEST | NLM_F_ACK`; `AUDIT_STATUS_ENABLED`.
const GET: u16 = 1000;
const SET: u16 = 1001;
const REQUEST: u16 = 1 | 4;
const ENABLED: u32 = 1;

/// Auditing as it was before the test, restored when dropped.
struct Auditing {
    socket: OwnedFd,
    before: u32,
}

impl Auditing {
    /// None when this kernel, or this user, has none.
    fn look() -> Option<Self> {
        let (raw, flags) = (SockType::Raw, SockFlag::SOCK_CLOEXEC);
        let socket = socket(AddressFamily::Netlink, raw, flags, SockProtocol::NetlinkAudit).ok()?;
        let mut auditing = Self { socket, before: 0 };
        auditing.before = auditing.ask(GET, &[])?;
        Some(auditing)
    }

    fn is_on(&self) -> bool {
        self.before != 0
    }

    fn set(&self, enabled: u32) -> Option<()> {
        self.ask(SET, &[ENABLED, enabled, 0, 0, 0, 0, 0, 0, 0, 0]).map(drop)
    }

    /// Makes a request, and gives whether auditing is on, where that is the answer.
    fn ask(&self, kind: u16, words: &[u32]) -> Option<u32> {
        let length = u32::try_from(16 + 4 * words.len()).unwrap();
        let mut request = length.to_ne_bytes().to_vec();
        request.extend([kind, REQUEST].into_iter().flat_map(u16::to_ne_bytes));
        request.extend([0; 8]);
        request.extend(words.iter().copied().flat_map(u32::to_ne_bytes));
        send(self.socket.as_raw_fd(), &request, MsgFlags::empty()).ok()?;
        let (mut enabled, mut acknowledged) = (None, false);
        while !acknowledged || (kind == GET && enabled.is_none()) {
            let mut answer = [0; 9000];
            recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::empty()).ok()?;
            let word = |at: usize| u32::from_ne_bytes([answer[at], answer[at + 1], answer[at + 2], answer[at + 3]]);
            match u16::from_ne_bytes([answer[4], answer[5]]) {
                2 if word(16) != 0 => return None,
                2 => acknowledged = true,
                GET => enabled = Some(word(20)),
                _ => {}
            }
        }
        Some(enabled.unwrap_or(0))
    }
}

impl Drop for Auditing {
    fn drop(&mut self) {
        if !self.is_on() {
            self.set(0);
        }
    }
}

fn watched(world: &World, script: &str) -> Report {
    let listener = world.home().join("listen");
    Case::new(WorkspaceWrite).inside([listener]).shell(script).run_in(world)
}

fn reason(report: &Report) -> &str {
    assert_eq!(report.field("/sandbox/evidence"), "inferred", "{report}");
    report.text("/sandbox/evidenceReason")
}

#[test]
fn a_refusal_is_known_from_the_kernels_log_and_its_absence_is_not() {
    let test = "a_refusal_is_known_from_the_kernels_log_and_its_absence_is_not";
    let Some(world) = World::of_root(test) else { return };
    let Some(auditing) = Auditing::look() else {
        eprintln!("NOT RUN, needs a kernel that can audit: {test}");
        return;
    };
    world.prepare(&format!("echo keep > $OUT/f; {LISTENER}"));
    let attack = "echo x > $OUT/f; mkdir \"$OUT/a b\"; rm -f $OUT/f; mv $OUT/f $OUT/g; ln $OUT/f f; exit 0";
    if !auditing.is_on() {
        let report = watched(&world, attack);
        report.assert_exit(0).assert_denied(false);
        assert!(reason(&report).contains("switched off"), "{report}");
        auditing.set(1).expect("auditing can be switched on");
    }

    let report = watched(&world, attack);
    report.assert_exit(0).assert_denied(true);
    assert_eq!(report.field("/sandbox/evidence"), "observed", "{report}");
    assert_eq!(report.field("/sandbox/evidenceSource"), "audit", "{report}");
    let out = world.beside();
    let (file, directory) = (out.join("f"), out.join(""));
    let denials = report.field("/sandbox/denials").as_array().unwrap();
    let told: Vec<_> = denials.iter().map(|it| json!([it["op"], it["path"]])).collect();
    // The log is the whole machine's and loses records under load: it never says too much.
    let possible = [
        json!(["write", file]),
        json!(["mkdir", directory]),
        json!(["remove", directory]),
        json!(["rename", directory]),
        json!(["link", directory]),
    ];
    assert!(
        told.iter().all(|denial| possible.contains(denial)) && !told.is_empty(),
        "{report}"
    );
    assert_eq!(denials[1]["loosen"]["addWrite"], json!(out), "{report}");
    assert!(report.field("/sandbox/denialsOmitted").is_null(), "{report}");
    assert_eq!(names(&out), ["f"]);
    assert_eq!(text(world.outside("f")), "keep\n");

    let report = watched(&world, "echo in > in; true");
    report.assert_exit(0).assert_denied(false);
    assert!(reason(&report).contains("no proof"), "{report}");
    // The words still count, and mean what they always do.
    let report = watched(&world, "echo Permission denied >&2; exit 1");
    report.assert_exit(1).assert_denied(true);
    assert!(reason(&report).contains("no proof"), "{report}");
}
