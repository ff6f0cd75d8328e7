//! A trail with every kind of record in it.

use std::collections::BTreeSet;
use std::path::Path;

use ringfence::audit::{Decider, Durability, Entry, Event, Trail};
use ringfence::error::{ErrorCode, Tried};
use ringfence::facts::{Operation, Survivors};
use ringfence::{BackendId, Effect, SandboxMode};

/// What breaks lines, quotes, markup, terminals and spreadsheets.
pub(super) const NASTY: &str =
    "a\nb\r\t\"q\" 'x' \\ ] [ = , ; <84> \u{1b}[2J\u{7f}\u{9b}\u{202e}\u{2028} é文件 %s ${x} \u{1}";
/// A path that is no UTF-8.
pub(super) const BYTES: &[u8] = b"/w/\xff\xfe ]\\\"\n=\x80";
/// The same in base64.
pub(super) const BASE64: &str = "L3cv//4gXVwiCj2A";

/// Every operation.
const OPERATIONS: [Operation; 15] = [
    Operation::Create,
    Operation::Write,
    Operation::Truncate,
    Operation::Remove,
    Operation::Rename,
    Operation::Link,
    Operation::Symlink,
    Operation::Mkdir,
    Operation::Mknod,
    Operation::Chmod,
    Operation::Chown,
    Operation::Utime,
    Operation::Xattr,
    Operation::Flags,
    Operation::Mount,
];

/// Writes the trail of a state directory.
pub(super) fn record(state: &Path) {
    let trail = Trail::open(state).unwrap();
    let entries: Vec<_> = events()
        .into_iter()
        .enumerate()
        .map(|(number, event)| Entry {
            session: (number % 2 == 0).then(|| format!("s{number}")),
            run: (number % 3 > 0).then(|| format!("r{number}")),
            event,
        })
        .collect();
    trail.append(&entries, Durability::Kernel).unwrap();
}

/// Each kind of record, as the source of the vocabulary names it.
pub(super) fn kinds() -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/audit/record.rs");
    let source = crate::support::text(source);
    let named = source.split("#[serde(rename = \"").skip(1);
    let kinds: BTreeSet<_> = named.map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
    assert!(kinds.contains("denial") && kinds.contains("audit.pruned"), "{kinds:?}");
    kinds
}

fn argv() -> Vec<String> {
    ["/usr/bin/python3", "-c", NASTY, "", "=1+1", "-flag", "it's"]
        .map(str::to_owned)
        .into()
}

fn denial(op: Operation, path: &str) -> Event {
    Event::Denial {
        op,
        path: path.to_owned(),
        path_bytes: None,
        program: Some("sh".to_owned()),
        pid: Some(4711),
        errno: "EACCES".to_owned(),
        count: 3,
    }
}

fn start(argv: Vec<String>, enforcement: Option<&str>, mode: SandboxMode) -> Event {
    Event::RunStart {
        argv,
        workdir: format!("/w/{NASTY}"),
        mode,
        backend: BackendId::Landlock,
        enforcement: enforcement.map(str::to_owned),
        ungoverned: BTreeSet::from([Effect::Metadata, Effect::Truncate]),
        approval: Some("q1".to_owned()),
        retry_of: Some("r0".to_owned()),
    }
}

fn decided(outcome: &str, reason: Option<&str>) -> Event {
    Event::ApprovalDecided {
        request: "q1".to_owned(),
        outcome: outcome.to_owned(),
        by: Decider {
            kind: "tty".to_owned(),
            principal: "alice (1000)".to_owned(),
            assurance: reason.map(|_| "seen".to_owned()),
            reason: reason.map(str::to_owned),
        },
        digest: "d".repeat(64),
    }
}

fn end(exit_code: Option<i32>, signal: Option<&str>) -> Event {
    Event::RunEnd {
        exit_code,
        signal: signal.map(str::to_owned),
        timed_out: signal.is_some(),
        aborted: false,
        duration_ms: 1234,
        denied: Some(true),
        evidence: Some("observed".to_owned()),
        survivors: Some(Survivors { found: 2, killed: 1 }),
    }
}

fn events() -> Vec<Event> {
    let mut events: Vec<_> = OPERATIONS.map(|op| denial(op, &format!("/etc/{NASTY}"))).into();
    events.extend([denial(Operation::Write, "/etc/"), denial(Operation::Mount, "/")]);
    events.push(Event::Denial {
        op: Operation::Create,
        path: String::from_utf8_lossy(BYTES).into_owned(),
        path_bytes: Some(BASE64.to_owned()),
        program: None,
        pid: None,
        errno: "EPERM".to_owned(),
        count: u64::from(u32::MAX),
    });
    let large = vec!["sh".to_owned(), "-c".to_owned(), "y\"\n".repeat(12_000)];
    events.extend([
        start(argv(), Some("full"), SandboxMode::WorkspaceWrite),
        start(large, Some("partial"), SandboxMode::ReadOnly),
        start(Vec::new(), None, SandboxMode::DangerFullAccess),
        end(Some(3), None),
        end(Some(0), None),
        end(None, Some("SIGKILL")),
        Event::SandboxUnavailable {
            tried: vec![Tried {
                backend: BackendId::Bwrap,
                reason: NASTY.to_owned(),
            }],
        },
        Event::RunnerFailed {
            code: ErrorCode::CommandNotFound,
            message: NASTY.to_owned(),
        },
        Event::SessionCreated {
            cwd: format!("/w/{NASTY}"),
            mode: Some(SandboxMode::WorkspaceWrite),
        },
        Event::ModeChanged {
            from: None,
            to: SandboxMode::DangerFullAccess,
        },
        Event::ApprovalAsked {
            request: "q1".to_owned(),
            argv: argv(),
            workdir: "/w".to_owned(),
            difference: NASTY.to_owned(),
            justification: format!("=cmd|' /C calc'!A0 {NASTY}"),
            digest: "d".repeat(64),
            expires_at: "2030-01-01T00:00:00.000000Z".to_owned(),
        },
        decided("allowed-once", Some(NASTY)),
        decided("rejected", None),
        decided("expired", None),
        Event::ApprovalConsumed {
            request: "q1".to_owned(),
            digest: "d".repeat(64),
        },
        Event::PolicyLoaded {
            source: format!("/etc/{NASTY}"),
            sha256: "0".repeat(64),
        },
        Event::Gap {
            what: NASTY.to_owned(),
            omitted: 7,
        },
        Event::Torn {
            bytes: 9,
            sha256: "0".repeat(64),
        },
        Event::Pruned {
            through: 1,
            hash: "0".repeat(64),
            frontier: vec!["1".repeat(64), "2".repeat(64)],
        },
    ]);
    events
}
