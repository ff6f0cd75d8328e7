//! A state directory, clocks that the test sets, and both sides of a request.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::clock::Clock;
use super::super::request::tests::question;
use super::*;
use crate::audit::Trail;
use crate::config::Reject;

pub(super) struct Scene {
    place: tempfile::TempDir,
    clock: Arc<Mutex<Moment>>,
}

impl Scene {
    pub(super) fn new() -> Self {
        Self {
            place: crate::state::tests::place(),
            clock: Arc::new(Mutex::new(Moment {
                boot: "boot".to_owned(),
                since_boot_ms: 1_000_000,
                wall_ms: 1_700_000_000_000,
            })),
        }
    }

    pub(super) fn set(&self, change: impl Fn(&mut Moment)) {
        change(&mut self.clock.lock().unwrap());
    }

    pub(super) fn boot(&self) -> String {
        self.clock.lock().unwrap().boot.clone()
    }

    pub(super) fn file(&self, directory: &str, name: &str) -> PathBuf {
        self.place.path().join("approvals").join(directory).join(name)
    }

    pub(super) fn path(&self) -> &std::path::Path {
        self.place.path()
    }

    pub(super) fn question() -> Question {
        question()
    }

    pub(super) fn binding() -> Binding {
        binding::tests::binding()
    }

    pub(super) fn settings() -> Settings {
        Settings {
            policy: ApprovalPolicy::Ask,
            answerers: vec![Answerer::Queue],
            notify: None,
            reject: Vec::new(),
            most: Looseness::FullAccess,
            request_ttl: Duration::from_mins(15),
            grant_ttl: Duration::from_mins(2),
        }
    }

    pub(super) fn desk(&self) -> Desk {
        self.desk_with(Self::settings())
    }

    pub(super) fn desk_with(&self, settings: Settings) -> Desk {
        let trail = Arc::new(Trail::open(self.place.path()).unwrap());
        let clock = Clock::Set(Arc::clone(&self.clock));
        Desk::with_clock(self.place.path(), trail, settings, clock).unwrap()
    }

    pub(super) fn queue(&self) -> Queue {
        Queue::with_clock(self.place.path(), Clock::Set(Arc::clone(&self.clock))).unwrap()
    }

    pub(super) fn state(&self, id: &str) -> State {
        self.queue().find(id).unwrap().state
    }

    /// A grant of the queue's.
    pub(super) fn granted(&self) -> Grant {
        let posted = self.desk().post(Self::question(), Self::binding()).unwrap();
        let listed = self.queue().find(posted.request.id()).unwrap();
        self.queue().answer(&listed, &yes(), None).unwrap();
        let decision = match posted.office.store.decision(&posted.request) {
            store::Found::Ours(decision) => decision,
            other => panic!("{other:?}"),
        };
        posted.settle((decision.outcome, decision.by)).unwrap()
    }

    /// Asks, and does something as soon as it is asked; when that fails the request is withdrawn.
    pub(super) fn ask_and(&self, act: impl FnOnce(&Listed, &Flag)) -> Result<Grant, Error> {
        struct OnPanic<'a>(&'a Flag);
        impl Drop for OnPanic<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.0.store(true, Ordering::SeqCst);
                }
            }
        }
        let (desk, flag) = (self.desk(), Flag::default());
        std::thread::scope(|threads| {
            let asking = threads.spawn(|| desk.ask(Self::question(), Self::binding(), &flag));
            let guard = OnPanic(&flag);
            let listed = loop {
                if let Some(listed) = self.queue().list(false).unwrap().0.pop() {
                    break listed;
                }
                assert!(!asking.is_finished(), "it was not asked");
                std::thread::yield_now();
            };
            act(&listed, &flag);
            drop(guard);
            asking.join().unwrap()
        })
    }

    /// What the trail says of a request.
    pub(super) fn records(&self, id: &str) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.place.path().join("audit"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
            .collect();
        names.sort();
        let mut records = Vec::new();
        for line in names.iter().flat_map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        }) {
            let record: serde_json::Value = serde_json::from_str(&line).unwrap();
            if record["request"] == id {
                let outcome = record["outcome"]
                    .as_str()
                    .map_or_else(String::new, |it| format!(" {it}"));
                records.push(format!("{}{outcome}", record["type"].as_str().unwrap()));
            }
        }
        records
    }
}

/// Withdraws a request once it is set.
#[derive(Default)]
pub(super) struct Flag(pub(super) AtomicBool);

impl Withdrawal for Flag {
    fn is_withdrawn(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

pub(super) fn yes() -> Answer {
    Answer {
        allow: true,
        reason: None,
    }
}

/// A rule, as a file of the deployment says it.
pub(super) fn rules(what: &str) -> Vec<Reject> {
    let place = crate::state::tests::place();
    let file = place.path().join("config.toml");
    let text = format!("schema = 1\n[[approval.reject]]\nname = \"rule\"\nreason = \"because\"\n{what}\n");
    std::fs::write(&file, text).unwrap();
    let files = crate::config::Files {
        user: Some(&file),
        ..crate::config::Files::default()
    };
    crate::config::load(&files).unwrap().approval().reject().to_vec()
}
