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
    /// The answer that was taken, and when.
    answer: Option<(bool, Now)>,
    permits: usize,
}

/// The model beside the thing.
struct Walk {
    scene: Scene,
    asked: BTreeMap<usize, (String, Asked)>,
    now: Now,
}

impl Walk {
    fn new() -> Self {
        Self {
            scene: Scene::new(),
            asked: BTreeMap::new(),
            now: Now {
                boot: 0,
                ticks: 1000,
                wall: 1_700_000_000,
            },
        }
    }

    /// Takes a step, and compares what comes of it with the model.
    fn take(&mut self, step: &Step) {
        let now = self.now;
        self.scene.set(|moment| {
            moment.boot = format!("boot {}", now.boot);
            moment.since_boot_ms = now.ticks * 1000;
            moment.wall_ms = now.wall.unsigned_abs() * 1000;
        });
        match *step {
            Step::Ask => self.ask(),
            Step::Answer { request, allow } => self.answer(request, allow),
            Step::Look { request } => self.look(request),
            Step::Withdraw { request } => {
                if let Some(posted) = self.asked.get_mut(&request).and_then(|(_, it)| it.posted.take()) {
                    let by = office::decider("asker", "", None);
                    assert!(posted.settle((Outcome::Cancelled, by)).is_err());
                }
            }
            Step::Crash { request } => {
                if let Some((_, it)) = self.asked.get_mut(&request) {
                    it.posted = None;
                    it.grant = None;
                }
            }
            Step::Use { request, changed } => self.use_grant(request, changed),
            Step::Replay { request } => self.replay(request),
            Step::Pass { seconds } => {
                self.now.ticks += seconds;
                self.now.wall += i64::try_from(seconds).unwrap();
            }
            Step::SetWall { seconds } => self.now.wall += seconds,
            Step::Reboot => {
                self.now.boot += 1;
                self.now.ticks += 1;
            }
        }
    }

    fn binding(&self) -> Binding {
        Binding {
            boot: self.scene.boot(),
            ..Scene::binding()
        }
    }

    fn ask(&mut self) {
        let Some(free) = (0..3).find(|slot| !self.asked.contains_key(slot)) else {
            return;
        };
        let posted = self.scene.desk().post(Scene::question(), self.binding()).unwrap();
        let id = posted.request.id.clone();
        let asked = Asked {
            posted: Some(posted),
            grant: None,
            at: self.now,
            answer: None,
            permits: 0,
        };
        self.asked.insert(free, (id, asked));
    }

    fn answer(&mut self, request: usize, allow: bool) {
        let Some((id, it)) = self.asked.get_mut(&request) else {
            return;
        };
        let queue = self.scene.queue();
        let answer = Answer { allow, reason: None };
        let taken = queue
            .find(id)
            .and_then(|listed| queue.answer(&listed, &answer, None))
            .is_ok();
        let may = it.posted.is_some() && it.answer.is_none() && it.at.holds(900, self.now);
        assert_eq!(taken, may, "an answer");
        if taken {
            it.answer = Some((allow, self.now));
        }
    }

    /// Whoever asks looks for an answer, and ends the request when there is one or the time is over.
    fn look(&mut self, request: usize) {
        let Some((_, it)) = self.asked.get_mut(&request) else {
            return;
        };
        let Some(posted) = it.posted.take() else { return };
        let vigil = Vigil::new(&posted.office.store, &posted.office.clock, &posted.request, &Never);
        let verdict = match vigil.look().unwrap() {
            None => {
                assert!(it.answer.is_none() && it.at.holds(900, self.now));
                it.posted = Some(posted);
                return;
            }
            Some(End::Decided(decision)) => (decision.outcome, decision.by),
            Some(End::Expired(_)) => (Outcome::Expired, office::decider("clock", "", None)),
            Some(End::Withdrawn) => unreachable!("nobody withdraws it"),
        };
        it.grant = posted.settle(verdict).ok();
        let yes = it.answer.is_some_and(|(allow, _)| allow);
        assert_eq!(it.grant.is_some(), yes, "a grant");
    }

    fn use_grant(&mut self, request: usize, changed: bool) {
        let mut binding = self.binding();
        let Some((_, it)) = self.asked.get_mut(&request) else {
            return;
        };
        let Some(grant) = it.grant.take() else { return };
        if changed {
            binding.argv.push("more".into());
        }
        let (_, answered) = it.answer.unwrap();
        let may = !changed && it.at.boot == self.now.boot && answered.holds(120, self.now);
        let permit = grant.consume(&binding);
        assert_eq!(permit.is_ok(), may, "{permit:?}");
        it.permits += usize::from(permit.is_ok());
    }

    /// What was used is put where it was before, as a copy of the directory would have it.
    fn replay(&self, request: usize) {
        let Some((id, _)) = self.asked.get(&request) else {
            return;
        };
        let name = format!("{id}.json");
        let used = self.scene.file("used", &name);
        if used.exists() {
            std::fs::copy(used, self.scene.file("decided", &name)).unwrap();
            let (closed, pending) = (self.scene.file("closed", &name), self.scene.file("pending", &name));
            std::fs::copy(closed, pending).unwrap();
        }
    }

    /// What the trail says in the end; tells how many permits there were.
    fn end(self) -> usize {
        let mut all = 0;
        for (id, it) in self.asked.values() {
            let records = self.scene.records(id);
            let count = |word: &str| records.iter().filter(|record| record.starts_with(word)).count();
            assert!(it.permits <= 1);
            assert_eq!(count("approval.consumed"), it.permits, "{records:?}");
            assert_eq!(count("approval.asked"), 1);
            assert!(count("approval.decided") <= 1, "{records:?}");
            if it.permits == 1 {
                assert_eq!(records[1], "approval.decided allowed-once");
            }
            all += it.permits;
        }
        all
    }
}

#[test]
fn the_model_knows_the_way_to_a_permit() {
    let mut walk = Walk::new();
    let yes = Step::Answer {
        request: 0,
        allow: true,
    };
    let used = Step::Use {
        request: 0,
        changed: false,
    };
    for step in [Step::Ask, yes, Step::Look { request: 0 }, used] {
        walk.take(&step);
    }
    assert_eq!(walk.end(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_but_a_yes_in_time_leads_to_a_permit_and_to_one_at_most(steps in prop::collection::vec(step(), 1..40)) {
        let mut walk = Walk::new();
        for step in &steps {
            walk.take(step);
        }
        walk.end();
    }
}
