//! What it costs to read a command's output: processor time for each GB, of the reader and of the
//! writer apart, and the memory that the reader takes.
//!
//! `BENCH_DIR=/var/lib cargo bench --bench output -- GIB`; the directory must lie outside the temp
//! area, where no state is kept.
//!
//! The floor reads the same pipe into one page-aligned buffer of 64 KiB and keeps nothing, or writes each
//! buffer to a file and keeps that. Processor time says more than wall time here: how long a byte
//! takes depends on where the scheduler puts the two processes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot go on has nothing to tell"
)]

#[allow(dead_code, reason = "the other benchmarks use the rest")]
mod common;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Place, machine, start};
use nix::sys::resource::{UsageWho, getrusage};
use ringfence::policy::open_root;
use ringfence::{
    Abort, Capture, Deployment, Evidence, ExecRequest, Runner, SandboxExecutionPolicy, SandboxMode, Surroundings,
};

const STEP: usize = 64 * 1024;
const GIB: u64 = 1 << 30;

fn main() {
    let words: Vec<_> = std::env::args().skip(1).collect();
    if let [word, bytes, chunk, first] = &words[..]
        && word == "write"
    {
        return write(bytes.parse().unwrap(), chunk.parse().unwrap(), first.parse().unwrap());
    }
    let gib: u64 = words.iter().find_map(|word| word.parse().ok()).unwrap_or(4).max(1);
    let place = Place::new();
    println!("{}\n", machine());
    println!(
        "{:<34} {:>9} {:>9} {:>9} {:>9}",
        "", "reader", "writer", "wall", "memory"
    );
    println!("{:<34} {:>9} {:>9} {:>9} {:>9}", "", "s/GB", "s/GB", "GB/s", "KiB more");
    let spill = place.0.path().join("spill");
    for (chunk, bytes) in [
        (STEP, gib * GIB),
        (4096, gib * GIB / 4),
        (1000, gib * GIB / 16),
        (80, gib * GIB / 32),
    ] {
        row(&format!("floor, writes of {chunk}"), bytes, || {
            floor(bytes, chunk, None);
        });
        row(&format!("the end kept, writes of {chunk}"), bytes, || {
            captured(&place, &writer(bytes, chunk, 0), bytes, 0);
        });
    }
    row("the end kept, after a short line", GIB, || {
        captured(&place, &writer(GIB, STEP, 20), GIB, 0);
    });
    row("floor with a file", GIB, || floor(GIB, STEP, Some(&spill)));
    row("the end kept, all in a file", GIB, || {
        captured(&place, &writer(GIB, STEP, 0), GIB, GIB);
    });
}

/// Runs it three times and prints the best.
fn row(name: &str, bytes: u64, run: impl Fn()) {
    let gb = Duration::from_nanos(bytes).as_secs_f64();
    let best = (0..3)
        .map(|_| {
            forget_peak();
            let (own, others, memory) = (cpu(UsageWho::RUSAGE_SELF), cpu(UsageWho::RUSAGE_CHILDREN), peak());
            let started = Instant::now();
            run();
            let wall = started.elapsed().as_secs_f64();
            let more = peak().saturating_sub(memory);
            let spent = |before: Duration, who| cpu(who).saturating_sub(before).as_secs_f64() / gb;
            let reader = spent(own, UsageWho::RUSAGE_SELF);
            (reader, spent(others, UsageWho::RUSAGE_CHILDREN), gb / wall, more)
        })
        .min_by(|one, other| one.0.total_cmp(&other.0))
        .unwrap();
    println!(
        "{name:<34} {:>9.3} {:>9.3} {:>9.2} {:>9}",
        best.0, best.1, best.2, best.3
    );
}

/// User and system time so far.
fn cpu(who: UsageWho) -> Duration {
    let used = getrusage(who).unwrap();
    let micros = |time: nix::sys::time::TimeVal| u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap();
    Duration::from_micros(micros(used.user_time()) + micros(used.system_time()))
}

/// The most memory that this process had since [`forget_peak`], in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn forget_peak() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// A buffer that begins on a page, as the second half of what is needed for one.
fn aligned(memory: &mut Vec<u8>) -> &mut [u8] {
    memory.resize(STEP + 4096, b'x');
    let start = memory.as_ptr().align_offset(4096);
    &mut memory[start..][..STEP]
}

/// What the other side does: writes `bytes` bytes, `chunk` at a time after the `first`.
fn write(bytes: u64, chunk: usize, first: u64) {
    let mut memory = Vec::new();
    let buffer = &aligned(&mut memory)[..chunk];
    let mut out = File::from(
        std::os::fd::AsFd::as_fd(&std::io::stdout())
            .try_clone_to_owned()
            .unwrap(),
    );
    out.write_all(&buffer[..usize::try_from(first).unwrap()]).unwrap();
    let mut left = bytes - first;
    while left > 0 {
        let now = left.min(chunk as u64);
        out.write_all(&buffer[..usize::try_from(now).unwrap()]).unwrap();
        left -= now;
    }
}

fn floor(bytes: u64, chunk: usize, file: Option<&Path>) {
    let mut memory = Vec::new();
    let buffer = aligned(&mut memory);
    let mut file = file.map(|path| (File::create(path).unwrap(), path));
    let [program, words @ ..] = &writer(bytes, chunk, 0)[..] else {
        unreachable!()
    };
    let mut child = start(program.to_str().unwrap())
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let mut total = 0;
    loop {
        let got = pipe.read(buffer).unwrap();
        if got == 0 {
            break;
        }
        total += got as u64;
        if let Some((file, _)) = &mut file {
            file.write_all(&buffer[..got]).unwrap();
        }
    }
    assert_eq!(total, bytes);
    assert!(child.wait().unwrap().success());
    if let Some((_, path)) = file {
        fs::remove_file(path).unwrap();
    }
}

fn captured(place: &Place, writer: &[OsString], bytes: u64, max_spill: u64) {
    let runner = Runner::new(Some(place.state()));
    let mut request = ExecRequest::new(writer.to_vec(), policy(place));
    request.evidence = Evidence::Off;
    request.timeout = Some(Duration::from_mins(10));
    request.capture = Capture::Captured {
        max_stdout: 64_000,
        max_stderr: 64_000,
        max_spill,
        merge: false,
    };
    let report = runner
        .run_blocking(runner.resolve(request).unwrap(), &Abort::new())
        .unwrap();
    let out = report.stdout.unwrap();
    assert_eq!((out.bytes, out.text.len()), (bytes, 64_000), "{:?}", report.stderr);
    if max_spill > 0 {
        let path = out.spill_path.unwrap_or_else(|| panic!("no file: {:?}", out.spill));
        assert_eq!(fs::metadata(&path).unwrap().len(), bytes);
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}

fn writer(bytes: u64, chunk: usize, first: u64) -> Vec<OsString> {
    let program = std::env::current_exe().unwrap().into_os_string();
    let numbers = [bytes, chunk as u64, first].map(|number| number.to_string().into());
    [program, "write".into()].into_iter().chain(numbers).collect()
}

fn policy(place: &Place) -> SandboxExecutionPolicy {
    let root = open_root(&place.workspace()).unwrap();
    let deployment = Deployment {
        mode: SandboxMode::ReadOnly,
        root: Some(root.clone()),
        ..Deployment::default()
    };
    let surroundings = Surroundings::of(root);
    ringfence::resolve(&deployment, None, None, &surroundings).unwrap()
}
