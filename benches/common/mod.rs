//! What the benchmarks share: candidates, rounds, and the table of paired ratios.
//!
//! Every round starts each candidate once, in an order that moves on by one each round, and each is
//! compared with the bare command of the same round, so that a machine that grows slower in between
//! slows down both. The second bare column is the noise.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A way of running the same command.
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    wrapper: Vec<String>,
}

impl Candidate {
    pub(crate) fn new<S: Into<String>>(name: &'static str, wrapper: impl IntoIterator<Item = S>) -> Self {
        Self {
            name,
            wrapper: wrapper.into_iter().map(Into::into).collect(),
        }
    }

    /// The wrapped command, from start to end.
    pub(crate) fn time(&self, place: &Place, command: &[&str]) -> Duration {
        let words: Vec<&str> = self
            .wrapper
            .iter()
            .map(String::as_str)
            .chain(command.iter().copied())
            .collect();
        let mut process = start(words[0]);
        process
            .args(&words[1..])
            .current_dir(place.workspace())
            .env("RINGFENCE_STATE_DIR", place.state())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let started = Instant::now();
        let status = process
            .status()
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let took = started.elapsed();
        assert!(status.success(), "{}: {status}", self.name);
        took
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "what is measured here is the start of processes"
)]
pub(crate) fn start(program: &str) -> Command {
    Command::new(program)
}

/// A workspace and a state directory of the benchmark's own.
pub(crate) struct Place(pub(crate) TempDir);

impl Place {
    /// In the directory that `BENCH_DIR` names (one in memory shows more than a busy disk), else in the target's.
    pub(crate) fn new() -> Self {
        let base = std::env::var_os("BENCH_DIR").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
        let place = Self(TempDir::with_prefix_in("bench-", base).expect("a directory to work in"));
        fs::create_dir(place.workspace()).unwrap();
        // Installed, as users have it. What the linker wrote lies in the page cache piece by piece, which
        // costs a tenth of a millisecond at each start.
        fs::copy(env!("CARGO_BIN_EXE_ringfence"), place.program()).unwrap();
        place
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.0.path().join("ringfence")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.0.path().join("w")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.0.path().join("state")
    }
}

/// Ringfence, and what else this machine has for the purpose.
pub(crate) fn candidates(place: &Place) -> Vec<Candidate> {
    let (program, workspace) = (place.program(), place.workspace());
    let program = program.to_str().expect("a plain path");
    let ringfence =
        |name, mode, evidence| Candidate::new(name, [program, "run", "--mode", mode, "--evidence", evidence, "--"]);
    let workspace = workspace.to_str().expect("a plain path");
    let mut all = vec![
        Candidate::new("bare", [""; 0]),
        Candidate::new("bare again", [""; 0]),
        ringfence("ringfence workspace-write", "workspace-write", "auto"),
        ringfence("ringfence, every call watched", "workspace-write", "strict"),
        ringfence("ringfence, denials unwatched", "workspace-write", "off"),
        ringfence(READ_ONLY, "read-only", "auto"),
        ringfence("ringfence full access", "danger-full-access", "auto"),
        Candidate::new(
            THROUGH_BWRAP,
            [program, "run", "--mode", "workspace-write", "--backend", "bwrap", "--"],
        ),
        Candidate::new(SAME_BY_BWRAP, same_by_bwrap(workspace)),
    ];
    let peers = [
        Candidate::new(
            "bwrap",
            [
                "bwrap",
                "--ro-bind",
                "/",
                "/",
                "--dev",
                "/dev",
                "--bind",
                workspace,
                workspace,
                "--chdir",
                workspace,
            ]
            .into_iter()
            .chain(["--bind", "/tmp", "/tmp", "--cap-drop", "ALL", "--die-with-parent", "--"]),
        ),
        Candidate::new(
            "setpriv --landlock",
            [
                "setpriv",
                "--no-new-privs",
                "--landlock-access",
                "fs",
                "--landlock-rule",
                "path-beneath:execute,read-file:/",
            ]
            .map(str::to_owned)
            .into_iter()
            .chain(["--landlock-rule".to_owned(), "path-beneath:read-dir:/".to_owned()])
            .chain([
                "--landlock-rule".to_owned(),
                format!("path-beneath:fs:{workspace}"),
                "--".to_owned(),
            ]),
        ),
    ];
    for peer in peers {
        let mut trial = start(&peer.wrapper[0]);
        trial
            .args(&peer.wrapper[1..])
            .arg("true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if trial.status().is_ok_and(|status| status.success()) {
            all.push(peer);
        } else {
            println!("not compared: {} does not run here", peer.name);
        }
    }
    all
}

/// bubblewrap with the options that the backend `bwrap` gives it, and nothing inside to see whether it did
/// what they say.
fn same_by_bwrap(workspace: &str) -> Vec<&str> {
    let own = "bwrap --unshare-pid --as-pid-1 --die-with-parent --cap-drop ALL --ro-bind / / --dev /dev --proc /proc \
               --remount-ro /dev --remount-ro /proc --bind /tmp /tmp --bind /var/tmp /var/tmp --bind /dev/shm /dev/shm";
    let rest = ["--bind", workspace, workspace, "--chdir", workspace, "--"];
    own.split_ascii_whitespace().chain(rest).collect()
}

/// Runs the rounds and prints one line a candidate.
pub(crate) fn table(candidates: &[Candidate], rounds: usize, time: impl Fn(&Candidate) -> Duration) {
    for candidate in candidates {
        time(candidate);
    }
    let mut ratios = vec![Vec::with_capacity(rounds); candidates.len()];
    let mut bare_times = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let mut took = vec![Duration::ZERO; candidates.len()];
        for step in 0..candidates.len() {
            let turn = (round + step) % candidates.len();
            took[turn] = time(&candidates[turn]);
        }
        let bare = took[0].as_secs_f64();
        bare_times.push(bare * 1000.0);
        for (ratios, took) in ratios.iter_mut().zip(&took) {
            ratios.push(took.as_secs_f64() / bare);
        }
    }
    println!("  {:<28} {:>8} {:>8} {:>8}", "", "median", "p10", "p90");
    let [median, low, high] = spread(&mut bare_times);
    println!("  {:<28} {median:>8.2} {low:>8.2} {high:>8.2}  (ms)", "bare");
    for (candidate, ratios) in candidates.iter().zip(&mut ratios).skip(1) {
        let [median, low, high] = spread(ratios);
        println!("  {:<28} {median:>8.2} {low:>8.2} {high:>8.2}", candidate.name);
    }
}

/// Median, 10th and 90th percentile.
fn spread(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [50, 10, 90].map(|percent| values[(values.len() - 1) * percent / 100])
}

/// The backend `bwrap`, and bubblewrap by itself doing what that asks of it.
pub(crate) const THROUGH_BWRAP: &str = "ringfence through bwrap";
pub(crate) const SAME_BY_BWRAP: &str = "bwrap with the same options";

/// The candidate that cannot unpack anything.
pub(crate) const READ_ONLY: &str = "ringfence read-only";

/// The machine, in one line: figures from two machines are not to be compared.
pub(crate) fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let virtual_machine = if cpus.contains(" hypervisor") { ", virtual" } else { "" };
    let kernel = read("/proc/sys/kernel/osrelease");
    let user = nix::unistd::geteuid();
    format!(
        "Linux {}, {cores} cores, {}{virtual_machine}, uid {user}",
        kernel.trim(),
        model.unwrap_or("unknown processor")
    )
}
