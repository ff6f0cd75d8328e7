//! What it costs to record a run, and to verify what was recorded.
//!
//! `cargo bench --bench audit -- RECORDS`; `BENCH_DIR` must lie outside the temp area.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot go on has nothing to tell"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use ringfence::audit::{Durability, Entry, Event, Trail};
use ringfence::facts::Operation;
use ringfence::{BackendId, SandboxMode};

fn main() {
    let records = std::env::args()
        .skip(1)
        .find_map(|word| word.parse().ok())
        .unwrap_or(1_000_000_usize);
    let base = std::env::var_os("BENCH_DIR").map_or_else(|| PathBuf::from("/var/lib"), PathBuf::from);
    let place = tempfile::TempDir::with_prefix_in("ringfence-bench-", base).expect("a directory for the trail");
    let (small, large) = (place.path().join("small"), place.path().join("large"));

    let run = run();
    let trail = Trail::open(&small).unwrap();
    for (what, durability, rounds) in [
        ("not on the disk yet", Durability::Kernel, 4000),
        ("on the disk", Durability::Disk, 200),
    ] {
        let mut times: Vec<_> = (0..rounds)
            .map(|round| {
                let began = Instant::now();
                trail.append(&run[round % 3..=round % 3], durability).unwrap();
                began.elapsed()
            })
            .collect();
        times.sort();
        let at = |part: usize| times[times.len() * part / 100];
        println!("one record, {what}: median {:?}, 99 % {:?}", at(50), at(99));
    }
    let mut times: Vec<_> = (0..2000)
        .map(|_| {
            let began = Instant::now();
            Trail::open(&small)
                .unwrap()
                .append(&run[..1], Durability::Kernel)
                .unwrap();
            began.elapsed()
        })
        .collect();
    times.sort();
    println!(
        "the first record of a process, without its start: median {:?}",
        times[1000]
    );

    let trail = Trail::open(&large).unwrap();
    let batch: Vec<_> = run.iter().cycle().take(999).cloned().collect();
    let mut written = 0;
    while written < records {
        written += batch.len();
        trail.append(&batch, Durability::Kernel).unwrap();
    }
    let (began, before) = (Instant::now(), processor());
    let verified = Trail::read(&large).unwrap().verify(None).unwrap().unwrap();
    println!(
        "verifying {} records: {:?} of processor time, {:?} by the clock",
        verified.last,
        processor().saturating_sub(before),
        began.elapsed()
    );
}

/// What an ordinary run leaves.
fn run() -> [Entry; 3] {
    let entry = |event| Entry {
        session: None,
        run: Some("019ad7a2-7cf5-7e51-a5f9-0e7b2f0b7a11".to_owned()),
        event,
    };
    [
        entry(Event::RunStart {
            argv: ["cargo", "test", "--workspace", "--all-features", "--", "--nocapture"]
                .map(str::to_owned)
                .to_vec(),
            workdir: "/home/somebody/projects/something".to_owned(),
            mode: SandboxMode::WorkspaceWrite,
            backend: BackendId::Landlock,
            enforcement: Some("full".to_owned()),
            ungoverned: std::collections::BTreeSet::new(),
            approval: None,
            retry_of: None,
        }),
        entry(Event::Denial {
            op: Operation::Create,
            path: "/home/somebody/.cache/something/else/entirely".to_owned(),
            path_bytes: None,
            program: Some("cargo".to_owned()),
            pid: Some(4711),
            errno: "EACCES".to_owned(),
            count: 3,
        }),
        entry(Event::RunEnd {
            exit_code: Some(0),
            signal: None,
            timed_out: false,
            aborted: false,
            duration_ms: 1234,
            denied: Some(true),
            evidence: Some("observed".to_owned()),
            survivors: None,
        }),
    ]
}

fn processor() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(micros).unwrap())
}
