//! Many runs at once.

use std::collections::BTreeMap;
use std::thread;

use serde_json::Value;

use super::{audit, objects, run};
use crate::support::for_each_user;

#[test]
fn runs_at_once_are_all_recorded_once_and_the_trail_verifies() {
    const RUNS: usize = 24;
    for_each_user(|world| {
        let ids: Vec<String> = thread::scope(|scope| {
            let threads: Vec<_> = (0..RUNS)
                .map(|_| scope.spawn(|| run(world, "echo x > $OUT/new; exit 0").text("/runId").to_owned()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let records = objects(&audit(world, &["list", "--json"]));
        let mut of_run: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for record in &records {
            let run = record["run"].as_str().unwrap();
            of_run.entry(run).or_default().push(record["type"].as_str().unwrap());
        }
        assert_eq!(of_run.len(), RUNS);
        for id in &ids {
            assert_eq!(of_run[id.as_str()], ["run.start", "denial", "run.end"], "{id}");
        }
        let numbers: Vec<_> = records.iter().map(|record| record["seq"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=3 * RUNS as u64).collect::<Vec<_>>());
        let steady: Vec<_> = records
            .iter()
            .map(|record| record["monoNs"].as_u64().unwrap())
            .collect();
        assert!(
            steady.is_sorted(),
            "the order of writing is the order of the steady clock"
        );
        let verdict: Value = serde_json::from_str(&audit(world, &["verify", "--json"]).stdout()).unwrap();
        assert_eq!(verdict["last"], 3 * RUNS, "{verdict}");
    });
}
