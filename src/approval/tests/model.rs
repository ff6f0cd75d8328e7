//! The states of a request as a model: whatever is done in whatever order, nothing but a yes in time
//! leads to a permit, and to one at most.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::settle::Posted;
use super::super::vigil::{End, Vigil};
use super::*;

#[derive(Clone, Debug)]
enum Step {
    Ask,
    Answer { request: usize, allow: bool },
    Look { request: usize },
    Withdraw { request: usize },
    Crash { request: usize },
    Use { request: usize, changed: bool },
    Replay { request: usize },
    Pass { seconds: u64 },
    SetWall { seconds: i64 },
    Reboot,
}

fn step() -> impl Strategy<Value = Step> {
    let request = 0..3_usize;
    prop_oneof![
        3 => Just(Step::Ask),
        4 => (request.clone(), prop::bool::weighted(0.8)).prop_map(|(request, allow)| Step::Answer { request, allow }),
        4 => request.clone().prop_map(|request| Step::Look { request }),
        1 => request.clone().prop_map(|request| Step::Withdraw { request }),
        1 => request.clone().prop_map(|request| Step::Crash { request }),
        4 => (request.clone(), prop::bool::weighted(0.2)).prop_map(|(request, changed)| Step::Use { request, changed }),
        2 => request.prop_map(|request| Step::Replay { request }),
        2 => prop::sample::select(vec![1, 30, 119, 121, 600, 901]).prop_map(|seconds| Step::Pass { seconds }),
        1 => prop::sample::select(vec![-5000, 60, 5000]).prop_map(|seconds| Step::SetWall { seconds }),
        1 => Just(Step::Reboot),
    ]
}

/// A moment of the model: seconds of each clock.
#[derive(Clone, Copy, Debug)]
struct Now {
    boot: u32,
    ticks: u64,
    wall: i64,
}

impl Now {
    /// Whether an end that was set here, this many seconds long, has not come at `now`.
    fn holds(self, seconds: u64, now: Self) -> bool {
        self.boot == now.boot
            && now.ticks - self.ticks < seconds
            && now.wall < self.wall + i64::try_from(seconds).unwrap()
    }
}

/// A request, as the model has it.
struct Asked {
    posted: Option<Posted>,
    grant: Option<Grant>,
    at: Now,
    /// The first answer that was taken, and when.
    answer: Option<(bool, Now)>,
    permits: usize,
}

/// Takes the steps, and compares each with the model.
fn walk(steps: Vec<Step>) {
    let scene = Scene::new();
    let mut asked: BTreeMap<usize, (String, Asked)> = BTreeMap::new();
    let mut all: Vec<(String, usize)> = Vec::new();
    let mut now = Now {
        boot: 0,
        ticks: 1000,
        wall: 1_700_000_000,
    };
    let bound = |scene: &Scene| Binding {
        boot: scene.boot(),
        ..scene.binding()
    };
    for step in steps {
        scene.set(|moment| {
            moment.boot = format!("boot {}", now.boot);
            moment.since_boot_ms = now.ticks * 1000;
            moment.wall_ms = now.wall.unsigned_abs() * 1000;
        });
        match step {
            Step::Ask => {
                let Some(free) = (0..3).find(|slot| !asked.contains_key(slot)) else {
                    let (id, old) = asked.remove(&0).unwrap();
                    all.push((id, old.permits));
                    continue;
                };
                let posted = scene.desk().post(scene.question(), bound(&scene)).unwrap();
                let new = Asked {
                    at: now,
                    grant: None,
                    answer: None,
                    permits: 0,
                    posted: None,
                };
                let id = posted.request.id.clone();
                asked.insert(
                    free,
                    (
                        id,
                        Asked {
                            posted: Some(posted),
                            ..new
                        },
                    ),
                );
            }
            Step::Answer { request, allow } => {
                let Some((id, it)) = asked.get_mut(&request) else {
                    continue;
                };
                let queue = scene.queue();
                let answer = Answer { allow, reason: None };
                let taken = queue
                    .find(id)
                    .and_then(|listed| queue.answer(&listed, &answer, None))
                    .is_ok();
                let may = it.posted.is_some() && it.answer.is_none() && it.at.holds(900, now);
                assert_eq!(taken, may, "{step:?}");
                if taken {
                    it.answer = Some((allow, now));
                }
            }
            Step::Look { request } => {
                let Some((_, it)) = asked.get_mut(&request) else {
                    continue;
                };
                let Some(posted) = it.posted.take() else { continue };
                let vigil = Vigil::new(&posted.office.store, &posted.office.clock, &posted.request, &Never);
                let end = vigil.look().unwrap();
                let verdict = match end {
                    None => {
                        assert!(it.answer.is_none() && it.at.holds(900, now));
                        it.posted = Some(posted);
                        continue;
                    }
                    Some(End::Decided(decision)) => (decision.outcome, decision.by),
                    Some(End::Expired(_)) => (Outcome::Expired, office::decider("clock", "", None)),
                    Some(End::Withdrawn) => unreachable!("nobody withdraws it"),
                };
                it.grant = posted.settle(verdict).ok();
                let yes = it.answer.is_some_and(|(allow, _)| allow);
                assert_eq!(it.grant.is_some(), yes, "{step:?}");
            }
            Step::Withdraw { request } => {
                let Some((_, it)) = asked.get_mut(&request) else {
                    continue;
                };
                if let Some(posted) = it.posted.take() {
                    let by = office::decider("asker", "", None);
                    assert!(posted.settle((Outcome::Cancelled, by)).is_err());
                }
            }
            Step::Crash { request } => {
                if let Some((_, it)) = asked.get_mut(&request) {
                    it.posted = None;
                    it.grant = None;
                }
            }
            Step::Use { request, changed } => {
                let Some((_, it)) = asked.get_mut(&request) else {
                    continue;
                };
                let Some(grant) = it.grant.take() else { continue };
                let mut binding = bound(&scene);
                if changed {
                    binding.argv.push("more".into());
                }
                let (_, answered) = it.answer.unwrap();
                let may = !changed && it.at.boot == now.boot && answered.holds(120, now);
                let permit = grant.consume(&binding);
                assert_eq!(permit.is_ok(), may, "{step:?} {permit:?}");
                it.permits += usize::from(permit.is_ok());
            }
            Step::Replay { request } => {
                // What was used is put where it was before, as a copy of the directory would have it.
                if let Some((id, _)) = asked.get(&request) {
                    let name = format!("{id}.json");
                    let (used, decided) = (scene.file("used", &name), scene.file("decided", &name));
                    if used.exists() {
                        std::fs::copy(used, decided).unwrap();
                        let pending = scene.file("pending", &name);
                        std::fs::copy(scene.file("closed", &name), pending).unwrap();
                    }
                }
            }
            Step::Pass { seconds } => {
                now.ticks += seconds;
                now.wall += i64::try_from(seconds).unwrap();
            }
            Step::SetWall { seconds } => now.wall += seconds,
            Step::Reboot => {
                now.boot += 1;
                now.ticks += 1;
            }
        }
    }
    all.extend(asked.into_values().map(|(id, it)| (id, it.permits)));
    for (id, permits) in all {
        let records = scene.records(&id);
        let count = |word: &str| records.iter().filter(|it| it.starts_with(word)).count();
        assert!(permits <= 1);
        assert_eq!(count("approval.consumed"), permits, "{records:?}");
        assert_eq!(count("approval.asked"), 1);
        assert!(count("approval.decided") <= 1, "{records:?}");
        if permits == 1 {
            assert_eq!(records[1], "approval.decided allowed-once");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_but_a_yes_in_time_leads_to_a_permit_and_to_one_at_most(steps in prop::collection::vec(step(), 1..40)) {
        walk(steps);
    }
}
