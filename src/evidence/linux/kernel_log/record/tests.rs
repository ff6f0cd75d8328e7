use std::path::Path;

use super::*;

/// The child that made the domain in these records.
const CHILD: i32 = 300;

fn following() -> Records {
    let mut records = Records::default();
    records.follow(CHILD);
    records
}

fn access(event: u32, domain: &str, blockers: &str, path: &str) -> (u16, String) {
    let text =
        format!("audit(1743440000.100:{event}): domain={domain} blockers={blockers} path={path} dev=\"sda\" ino=5");
    (ACCESS, text)
}

fn domain(event: u32, domain: &str, pid: i32, program: &Path) -> (u16, String) {
    let program = program.display();
    let text = format!(
        "audit(1743440000.100:{event}): domain={domain} status=allocated mode=enforcing pid={pid} uid=0 exe=\"{program}\" comm=\"it\""
    );
    (DOMAIN, text)
}

fn call(event: u32, number: i64, exit: i32, comm: &str) -> (u16, String) {
    let text = format!(
        "audit(1743440000.100:{event}): arch=c000003e syscall={number} success=no exit={exit} a0=0 items=0 ppid=1 pid=77 uid=0 comm={comm} exe=\"/bin/x\" key=(null)"
    );
    (SYSCALL, text)
}

fn ours(event: u32, id: &str) -> (u16, String) {
    domain(event, id, CHILD, &std::env::current_exe().unwrap())
}

fn seen(records: impl IntoIterator<Item = (u16, String)>) -> Vec<Denial> {
    let mut all = following();
    for (kind, text) in records {
        all.take(kind, text.as_bytes());
    }
    all.finish().map_or_else(Vec::new, |seen| seen.denials)
}

#[test]
fn a_refusal_is_told_with_its_caller_where_the_call_is_logged() {
    let denials = seen([
        access(1, "1a2b", "fs.write_file", "\"/etc/passwd\""),
        ours(1, "1a2b"),
        call(1, -1, -13, "\"sh\""),
    ]);
    let expected = Denial {
        op: Operation::Write,
        path: "/etc/passwd".into(),
        program: "sh".to_owned(),
        pid: 77,
        errno: Errno::EACCES,
        count: 1,
    };
    assert_eq!(denials, [expected]);
}

#[test]
fn without_the_call_nobody_is_named() {
    let denials = seen([access(1, "1a", "fs.write_file", "\"/etc/passwd\""), ours(1, "1a")]);
    assert_eq!((denials[0].pid, denials[0].program.as_str()), (0, ""));
}

#[test]
fn a_name_that_was_to_change_is_told_by_its_directory() {
    let denials = seen([access(1, "1a", "fs.make_reg", "\"/srv\""), ours(1, "1a")]);
    assert_eq!(denials[0].op, Operation::Create);
    assert_eq!(denials[0].path.as_os_str(), "/srv/");
}

#[test]
fn paths_with_spaces_and_bytes_of_any_kind_are_read() {
    let denials = seen([access(1, "1a", "fs.truncate", "2F6120FF"), ours(1, "1a")]);
    assert_eq!(denials[0].path.as_os_str().as_bytes(), b"/a \xff");
    for broken in ["\"/a", "2F6", "(null)", "+1"] {
        assert_eq!(untrusted(broken), None, "{broken}");
    }
}

#[test]
fn other_domains_are_none_of_this_runs_business() {
    let me = std::env::current_exe().unwrap();
    assert_eq!(
        seen([
            access(1, "1a", "fs.write_file", "\"/a\""),
            domain(1, "1a", CHILD + 1, &me),
            // The command confines itself further, and is refused something by that.
            access(2, "1b", "fs.write_file", "\"/b\""),
            domain(2, "1b", CHILD, Path::new("/usr/bin/setpriv")),
        ]),
        []
    );
}

#[test]
fn refusals_that_arrive_before_their_domain_is_known_count() {
    let denials = seen([
        access(1, "1a", "fs.make_dir", "\"/srv\""),
        access(2, "1a", "fs.make_dir", "\"/srv\""),
        access(3, "1b", "fs.make_dir", "\"/opt\""),
        ours(1, "1a"),
        call(2, -1, -13, "\"mkdir\""),
        access(4, "1a", "fs.make_dir", "\"/srv\""),
    ]);
    let counts: Vec<_> = denials
        .iter()
        .map(|denial| (denial.program.as_str(), denial.count))
        .collect();
    assert_eq!(counts, [("", 2), ("mkdir", 1)]);
}

#[test]
fn what_is_no_effect_on_a_file_is_no_denial() {
    for blockers in [
        "ptrace",
        "scope.signal",
        "net.bind_tcp",
        "fs.ioctl_dev",
        "fs.something_new",
    ] {
        assert_eq!(
            seen([access(1, "1a", blockers, "\"/dev/x\""), ours(1, "1a")]),
            [],
            "{blockers}"
        );
    }
}

#[test]
fn a_storm_is_bounded() {
    let storm = (1..=20_000).map(|event| access(event, "1a", "fs.write_file", "\"/a\""));
    let denials = seen(
        [access(0, "1a", "fs.write_file", "\"/a\""), ours(0, "1a")]
            .into_iter()
            .chain(storm),
    );
    assert_eq!((denials.len(), denials[0].count), (1, 20_001));
}

#[test]
fn the_missing_rights_and_the_call_say_what_was_attempted() {
    let find = |wanted: fn(&Call) -> bool| table().into_iter().map(|(_, call)| call).find(wanted);
    let rename = find(|call| matches!(call, Call::Rename(..)));
    let link = find(|call| matches!(call, Call::Link(..)));
    for (blockers, call, op) in [
        ("fs.make_reg", None, Operation::Create),
        ("fs.make_fifo", None, Operation::Mknod),
        ("fs.make_sym", None, Operation::Symlink),
        ("fs.remove_dir", None, Operation::Remove),
        ("fs.write_file,fs.truncate", None, Operation::Write),
        ("fs.change_topology", None, Operation::Mount),
        ("fs.remove_file,fs.make_reg", None, Operation::Rename),
        ("fs.remove_file,fs.refer", None, Operation::Rename),
        ("fs.refer", None, Operation::Link),
        ("fs.make_reg,fs.refer", None, Operation::Create),
        ("fs.make_reg,fs.refer", link, Operation::Link),
        ("fs.make_reg,fs.refer", rename, Operation::Rename),
    ] {
        assert_eq!(operation(blockers, call).unwrap().0, op, "{blockers} {call:?}");
    }
}
