//! Commands that run while their host does something else.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::output::{Part, SharedStream};
use super::wait::Ends;
use super::{Abort, Capture, ExecSpec, Runner};
use crate::error::Error;
use crate::facts::{Exit, RunReport};

/// What ends a background run that does not end by itself. A run's own deadline is not among it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// How long it may run; without, as long as it likes.
    pub most: Option<Duration>,
    /// How long it may say nothing.
    pub idle: Option<Duration>,
    /// How many bytes it may say on both streams together.
    pub output: Option<u64>,
}

/// How a background run stands. It only ever moves down this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It runs, or is about to.
    Running,
    /// It was asked to end and has not yet.
    Stopping,
    /// Its command ended by itself, with whatever status.
    Completed,
    /// It was ended: by [`Background::kill`], a limit, or a signal, its own included.
    Killed,
    /// Its command never ran.
    NeverRan,
}

/// What came of a run: its report, or why its command never ran.
pub type Outcome = Arc<Result<RunReport, Error>>;

/// What both streams have said since they were last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Standard output, or both streams where they are merged.
    pub stdout: Part,
    /// Standard error.
    pub stderr: Part,
}

/// A run in the background. When this is dropped the run is asked to end, and nobody waits for it.
#[derive(Debug)]
pub struct Background {
    run_id: String,
    state: Arc<State>,
    /// Where the next read of each stream begins.
    read: Mutex<[u64; 2]>,
}

/// What the thread of a run and its handle share.
pub(super) struct State {
    abort: Abort,
    asked: AtomicBool,
    streams: Mutex<[Option<SharedStream>; 2]>,
    outcome: Mutex<Option<Outcome>>,
    finished: Condvar,
    told: watch::Sender<bool>,
}

/// The runs of a runner that go on.
#[derive(Debug, Default)]
pub(super) struct Live(Mutex<Vec<Weak<State>>>);

impl Runner {
    /// Starts a command and returns at once. The spec's own deadline does not apply.
    ///
    /// That the command could not be started is a fact of the handle: [`Status::NeverRan`].
    ///
    /// # Errors
    /// [`Error::Input`] for a run that is not captured or a lifetime of nothing;
    /// [`Error::Host`] when the system has no thread or descriptor to give.
    pub fn start(&self, spec: ExecSpec, lifetime: Lifetime) -> Result<Background, Error> {
        check(&spec, lifetime)?;
        let host = |source| Error::Host {
            doing: "could not start a run",
            source,
        };
        let state = Arc::new(State {
            abort: Abort::new(),
            asked: AtomicBool::new(false),
            streams: Mutex::default(),
            outcome: Mutex::default(),
            finished: Condvar::new(),
            told: watch::Sender::new(false),
        });
        let run_id = spec.run_id().to_owned();
        let (runner, shared) = (self.clone(), Arc::clone(&state));
        self.live.add(&state);
        // The reaper is tied to the thread that starts it, which therefore stays until the end.
        std::thread::Builder::new()
            .name("ringfence-run".to_owned())
            .spawn(move || shared.run(&runner, spec, lifetime))
            .map_err(host)?;
        Ok(Background {
            run_id,
            state,
            read: Mutex::default(),
        })
    }

    /// Ends every background run of this runner and its clones, and waits until they have ended, which
    /// is no longer than their grace periods and a few seconds. Says how many there were.
    pub fn stop_all(&self) -> usize {
        let runs = self.live.all();
        for run in &runs {
            run.ask();
        }
        for run in &runs {
            run.wait();
        }
        runs.len()
    }
}

fn check(spec: &ExecSpec, lifetime: Lifetime) -> Result<(), Error> {
    if spec.capture() == Capture::Passthrough {
        let reason = "a run in the background shares no terminal";
        return Err(Error::input(
            "capture",
            "passthrough",
            reason,
            "capture the run's output",
        ));
    }
    let nothing = |field, value| Err(Error::duration(field, value, "it must be positive"));
    match lifetime {
        Lifetime {
            most: Some(Duration::ZERO),
            ..
        } => nothing("lifetime.most", Duration::ZERO),
        Lifetime {
            idle: Some(Duration::ZERO),
            ..
        } => nothing("lifetime.idle", Duration::ZERO),
        _ => Ok(()),
    }
}

impl Background {
    /// The run's name.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// How it stands.
    #[must_use]
    pub fn status(&self) -> Status {
        match self.outcome() {
            Some(outcome) => State::settled(&outcome),
            None if self.state.asked.load(Ordering::SeqCst) => Status::Stopping,
            None => Status::Running,
        }
    }

    /// What both streams have said since this was last called. No byte is given twice; bytes that are
    /// no longer kept are lost, which each part says. After the end it gives the rest, and then nothing.
    #[must_use]
    pub fn read_output(&self) -> Output {
        let mut read = lock(&self.read);
        let streams = lock(&self.state.streams).clone();
        let mut part = |number: usize| {
            let part = streams[number]
                .as_ref()
                .map(|stream| stream.lock().read_from(read[number]));
            let part = part.unwrap_or_default();
            read[number] = part.next.max(read[number]);
            part
        };
        Output {
            stdout: part(0),
            stderr: part(1),
        }
    }

    /// Asks every process of the run to end, and kills what has not after the grace period. True the
    /// first time, while it still runs. Asked again, it kills at once.
    pub fn kill(&self) -> bool {
        self.state.kill()
    }

    /// What came of it, once it has ended: every fact is there by then.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        lock(&self.state.outcome).clone()
    }

    /// Waits for the end on the calling thread.
    #[must_use]
    pub fn wait(&self) -> Outcome {
        self.state.wait()
    }

    /// Waits for the end.
    pub async fn done(&self) -> Outcome {
        let mut told = self.state.told.subscribe();
        // The sender lives as long as this handle, so this ends only when it was told.
        let _ = told.wait_for(|ended| *ended).await;
        self.state.wait()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.state.ask();
    }
}

impl State {
    fn settled(outcome: &Result<RunReport, Error>) -> Status {
        match outcome {
            Err(Error::Aborted) => Status::Killed,
            Err(_) => Status::NeverRan,
            Ok(report) => {
                let ended = report.aborted || report.timed_out || report.limit.is_some();
                match report.exit {
                    Exit::Code(_) if !ended => Status::Completed,
                    _ => Status::Killed,
                }
            }
        }
    }

    fn run(&self, runner: &Runner, spec: ExecSpec, lifetime: Lifetime) {
        let ends = Ends {
            abort: &self.abort,
            lifetime: lifetime.most,
            idle: lifetime.idle,
            output: lifetime.output,
        };
        let started = Instant::now();
        // Whatever happens to this thread, nobody waits for its run for ever.
        let last_word = LastWord(self);
        let outcome = runner.run_until(spec, &ends, started, &mut |_| {}, &mut |spawned| {
            *lock(&self.streams) = [spawned.stdout.clone(), spawned.stderr.clone()];
        });
        last_word.0.settle(outcome);
    }

    /// Says what came of the run, the first time.
    fn settle(&self, outcome: Result<RunReport, Error>) {
        lock(&self.outcome).get_or_insert_with(|| Arc::new(outcome));
        self.finished.notify_all();
        self.told.send_replace(true);
    }

    /// Asks for the end, if nobody has yet.
    fn ask(&self) {
        if lock(&self.outcome).is_none() && !self.asked.swap(true, Ordering::SeqCst) {
            self.abort.trigger();
        }
    }

    fn kill(&self) -> bool {
        let outcome = lock(&self.outcome);
        if outcome.is_some() {
            return false;
        }
        self.abort.trigger();
        !self.asked.swap(true, Ordering::SeqCst)
    }

    fn wait(&self) -> Outcome {
        let mut outcome = lock(&self.outcome);
        loop {
            if let Some(outcome) = &*outcome {
                return Arc::clone(outcome);
            }
            outcome = self.finished.wait(outcome).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct LastWord<'a>(&'a State);

impl Drop for LastWord<'_> {
    fn drop(&mut self) {
        self.0.settle(Err(Error::Lost {
            source: std::io::Error::other("the thread that waited for it has failed"),
        }));
    }
}

impl Live {
    fn add(&self, run: &Arc<State>) {
        let mut runs = lock(&self.0);
        runs.retain(|run| run.strong_count() > 0);
        runs.push(Arc::downgrade(run));
    }

    fn all(&self) -> Vec<Arc<State>> {
        let runs: Vec<_> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        runs.into_iter().filter(|run| lock(&run.outcome).is_none()).collect()
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("abort", &self.abort)
            .finish_non_exhaustive()
    }
}

/// What a mutex here guards is whole whatever happened to others who held it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
