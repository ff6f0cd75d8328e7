//! What confinement and its evidence cost work that changes and reads many files.
//!
//! `cargo bench --bench work -- ROUNDS`, and `BENCH_DIR` says where: on a disk its own speed is most of what is seen.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot go on has nothing to tell"
)]

mod common;

use std::fs;
use std::path::Path;

use common::{Place, READ_ONLY, candidates, machine, start, table};

const FILES: usize = 4_000;

/// One piece of work: what is done before each turn, what is timed, and what is removed after.
struct Job {
    name: &'static str,
    before: &'static str,
    command: &'static str,
    after: &'static str,
}

/// Everything happens beneath the workspace: `../seed` holds what the jobs start from.
const JOBS: [Job; 8] = [
    Job {
        name: "untar of 4,000 files",
        before: "",
        command: "tar xf ../seed/tree.tar",
        after: "rm -rf tree",
    },
    Job {
        name: "git clone of 4,000 files",
        before: "",
        command: "git clone -q repo clone",
        after: "rm -rf clone",
    },
    Job {
        name: "cp -r",
        before: "",
        command: "cp -r ../seed/tree copy",
        after: "rm -rf copy",
    },
    Job {
        name: "rm -rf",
        before: "cp -r ../seed/tree copy",
        command: "rm -rf copy",
        after: "",
    },
    Job {
        name: "cargo build",
        before: "",
        command: "cargo build -q --offline --manifest-path crate/Cargo.toml",
        after: "rm -rf crate/target",
    },
    Job {
        name: "grep -r",
        before: "",
        command: "grep -rq nothing-has-this ../seed/tree || true",
        after: "",
    },
    Job {
        name: "git status",
        before: "",
        command: "git -C repo status --porcelain",
        after: "",
    },
    Job {
        name: "300 execs",
        before: "",
        command: "for i in {1..300}; do /bin/true; done",
        after: "",
    },
];

fn main() {
    let rounds = std::env::args()
        .skip(1)
        .find_map(|word| word.parse().ok())
        .unwrap_or(15_usize)
        .max(3);
    let place = Place::new();
    seed(&place);
    let mut candidates = candidates(&place);
    candidates.retain(|candidate| candidate.name != READ_ONLY);
    println!("{}", machine());
    for job in JOBS {
        println!("\n{} ({rounds} rounds, × bare)", job.name);
        table(&candidates, rounds, |candidate| {
            bash(&place.workspace(), job.before);
            let took = candidate.time(&place, &["bash", "-c", job.command]);
            bash(&place.workspace(), job.after);
            took
        });
    }
}

/// Makes what the jobs start from: a tree of small files, an archive, a repository and a crate.
fn seed(place: &Place) {
    let seed = place.0.path().join("seed");
    for number in 0..FILES {
        let directory = seed.join(format!("tree/d{}", number / 100));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("f{number}")), format!("{number}\n").repeat(100)).unwrap();
    }
    bash(&seed, "tar cf tree.tar tree");
    bash(
        &place.workspace(),
        "cp -r ../seed/tree repo && cd repo && git init -q && git add . && \
         git -c user.name=a -c user.email=a@b commit -qm all",
    );
    bash(
        &place.workspace(),
        "mkdir -p crate/src && printf '[package]\\nname=\"a\"\\nversion=\"0.1.0\"\\n[workspace]\\n' > crate/Cargo.toml && \
         echo 'fn main() {}' > crate/src/main.rs",
    );
}

fn bash(directory: &Path, text: &str) {
    if !text.is_empty() {
        let status = start("bash").args(["-c", text]).current_dir(directory).status();
        assert!(status.is_ok_and(|status| status.success()), "{text}");
    }
}
