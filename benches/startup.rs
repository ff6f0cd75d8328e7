//! What it costs to start a command confined: whole processes, paired with the bare command.
//!
//! `cargo bench --bench startup -- ROUNDS`
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot go on has nothing to tell"
)]

mod common;

use common::{Place, candidates, machine, table};

fn main() {
    let rounds = std::env::args()
        .skip(1)
        .find_map(|word| word.parse().ok())
        .unwrap_or(200_usize)
        .max(3);
    let place = Place::new();
    println!("{}\n", machine());
    let command = ["bash", "-c", "true"];
    println!("start-up: {} ({rounds} rounds, × bare)", command.join(" "));
    table(&candidates(&place), rounds, |candidate| {
        candidate.time(&place, &command)
    });
}
