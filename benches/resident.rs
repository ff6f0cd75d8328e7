//! What a run costs a host that has much memory, against one that has little.
//!
//! `cargo bench --bench resident -- ROUNDS`. Runs are started by the library, in this process: first as it
//! is, then with two gigabytes resident. A launch that copied page tables would take a hundred times as long.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot go on has nothing to tell"
)]

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod common;

use std::time::{Duration, Instant};

use common::{Place, machine};
use ringfence::policy::open_root;
use ringfence::{Abort, Deployment, ExecRequest, Runner, SandboxMode, Surroundings, Temp, resolve};

const GIBIBYTES: usize = 2;

fn main() {
    let rounds = std::env::args()
        .skip(1)
        .find_map(|word| word.parse().ok())
        .unwrap_or(200_usize)
        .max(10);
    let place = Place::new();
    let deployment = Deployment {
        mode: SandboxMode::WorkspaceWrite,
        temp: Some(Temp::None),
        ..Deployment::default()
    };
    let surroundings = Surroundings::of(open_root(&place.workspace()).unwrap());
    let policy = resolve(&deployment, None, None, &surroundings).unwrap();
    let runner = Runner::new(None);
    let once = || {
        let request = ExecRequest::new(vec!["/bin/true".into()], policy.clone());
        let spec = runner.resolve(request).unwrap();
        let (abort, started) = (Abort::new(), Instant::now());
        runner.run_blocking(spec, &abort).unwrap();
        started.elapsed()
    };
    let median = || {
        let mut took: Vec<Duration> = (0..rounds).map(|_| once()).collect();
        took.sort_unstable();
        took[rounds / 2]
    };
    println!("{}", machine());
    median();
    let small = median();
    let ballast = vec![1_u8; GIBIBYTES << 30];
    let large = median();
    assert!(ballast.iter().step_by(4096).all(|byte| *byte == 1));
    println!("\na run of /bin/true from the library ({rounds} rounds, medians)");
    println!("  small host                  {small:?}");
    println!(
        "  {GIBIBYTES} GiB resident              {large:?}   × {:.2}",
        large.as_secs_f64() / small.as_secs_f64()
    );
}
