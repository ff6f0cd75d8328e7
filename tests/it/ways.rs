//! Every known way round a confinement of file effects: one row, one test, one name.
//!
//! A row is an attempt to change what lies outside. It is made bare first, where it must change
//! something: an attempt that cannot succeed proves nothing. Then it is made under each backend, in
//! both modes, watched and unwatched, and nothing outside may differ in any way afterwards.

mod descriptor;
mod kernel;
mod metadata;
mod mount;
mod path;
mod process;
mod programs;
mod race;
mod scene;
mod snapshot;
mod socket;
mod system;
mod way;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::thread;

use nix::unistd::geteuid;
use ringfence::SandboxMode::{self, ReadOnly, WorkspaceWrite};

use crate::support::{CONTAINER, Case, Outcome, Report, User, World};

use scene::Scene;
use snapshot::differences;
use way::{Way, Works};

/// The backends that confine on this system.
const BACKENDS: &[&str] = &["landlock", "bwrap"];

/// What the last line of an attempt says: it was made to its end, however that was.
const TRIED: &str = "tried";

/// One test for each row, named after it.
macro_rules! ways {
    ($($name:ident: $way:expr;)*) => { $(
        #[test]
        fn $name() {
            crate::ways::attempt(stringify!($name), &$way);
        }
    )* };
}
use ways;

/// Whether the kernel is at least this old, for calls that came late.
macro_rules! since {
    ($major:literal, $minor:literal) => {
        || {
            if crate::ways::kernel_version() >= ($major, $minor) {
                Ok(())
            } else {
                Err(concat!("Linux ", $major, ".", $minor))
            }
        }
    };
}
use since;

/// The first two numbers of the kernel's version.
fn kernel_version() -> (u32, u32) {
    let release = crate::support::text("/proc/sys/kernel/osrelease");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    let mut next = || numbers.next().unwrap().expect("a version");
    (next(), next())
}

/// How an attempt is confined.
#[derive(Clone, Copy, Debug)]
struct Variant {
    backend: &'static str,
    mode: SandboxMode,
    evidence: &'static str,
    /// Whether it is made where there are no namespaces to be had.
    contained: bool,
}

/// Every variant that a row is tried in.
fn variants(way: &Way) -> Vec<Variant> {
    let mut variants = Vec::new();
    let all = [
        (WorkspaceWrite, "auto", false),
        (WorkspaceWrite, "off", false),
        (ReadOnly, "auto", false),
        (WorkspaceWrite, "auto", true),
        (ReadOnly, "off", true),
    ];
    for &backend in BACKENDS {
        for (mode, evidence, contained) in all {
            // Nothing but Landlock confines where there are no namespaces.
            if way.modes.contains(&mode) && (!contained || backend == "landlock") {
                variants.push(Variant {
                    backend,
                    mode,
                    evidence,
                    contained,
                });
            }
        }
    }
    variants
}

/// Makes the attempt bare and in every variant, as each user, each in a world of its own.
///
/// Most of a run is waiting for the kernel to take its namespaces down, so they run beside each other,
/// unless they are about something of which the host has only one.
fn attempt(test: &str, way: &Way) {
    if !way.before.is_empty() && !geteuid().is_root() {
        not_run(test, "what it needs takes root to prepare");
        return;
    }
    let one_at_a_time = way.alone.then(|| ALONE.lock().unwrap_or_else(PoisonError::into_inner));
    for user in User::all() {
        let mut parts: Vec<Part> = vec![Box::new(move |world| control(test, way, world))];
        for variant in variants(way) {
            parts.push(Box::new(move |world| confined(way, world, variant)));
        }
        let run = |part: Part| {
            let world = World::new(user);
            equip(way, &world);
            part(&world);
        };
        if one_at_a_time.is_some() {
            parts.into_iter().for_each(run);
        } else {
            thread::scope(|scope| {
                let started: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || run(part))).collect();
                for part in started {
                    if let Err(panic) = part.join() {
                        std::panic::resume_unwind(panic);
                    }
                }
            });
        }
    }
}

/// One time that the attempt is made.
type Part<'a> = Box<dyn FnOnce(&World) + Send + 'a>;

/// Held by those that are about something of which the host has only one.
static ALONE: Mutex<()> = Mutex::new(());

/// Puts the programs that the attempt needs into the home. Each is compiled once.
fn equip(way: &Way, world: &World) {
    for &(name, source, options) in way.tools {
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = compiled.get(name) {
            fs::write(world.home().join("copy"), program).unwrap();
            // Another process writes what is executed: had this one it open, a child of another thread
            // could keep it busy.
            world.prepare(&format!("cd \"$HOME\"; cp copy {name}; chmod 755 {name}; rm -f copy"));
        } else {
            fs::write(world.home().join("source.c"), source).unwrap();
            world.prepare(&format!("cd \"$HOME\"; cc -O1 -pthread {options} -o {name} source.c"));
            compiled.insert(name, fs::read(world.home().join(name)).unwrap());
        }
    }
}

/// The programs that were compiled, by their names.
static COMPILED: Mutex<BTreeMap<&str, Vec<u8>>> = Mutex::new(BTreeMap::new());

/// Shows that the attempt changes the outside where nobody confines it.
fn control(test: &str, way: &Way, world: &World) {
    if let Err(missing) = (way.here)() {
        not_run(test, &format!("the attempt without confinement needs {missing}"));
        return;
    }
    if way.works == Works::ForRoot && world.uid() != 0 {
        if !geteuid().is_root() {
            not_run(test, "the attempt without confinement needs root");
        }
        return;
    }
    let scene = Scene::set(way, world, WorkspaceWrite);
    let before = scene.look();
    let words: Vec<String> = scene.through().into_iter().chain(scene.words()).collect();
    let mut command = world.command(&words[0]);
    command
        .args(&words[1..])
        .env("T", &scene.target)
        .env("N", scene.pid())
        .env("BARE", "1");
    let outcome = world.outcome(command);
    eprintln!("bare: {outcome}");
    assert!(
        !differences(&before, &scene.look()).is_empty(),
        "without confinement it changes nothing, so it proves nothing:\n{outcome}"
    );
}

/// Says past the capture of the test harness what could not be tried: nothing is left out in silence.
fn not_run(test: &str, what: &str) {
    let _ = writeln!(std::io::stderr(), "NOT RUN, {test}: {what}");
}

/// Shows that the attempt, confined, leaves all that lies outside as it was.
fn confined(way: &Way, world: &World, variant: Variant) {
    let scene = Scene::set(way, world, variant.mode);
    let before = scene.look();
    let mut inside: Vec<String> = Vec::new();
    if variant.contained {
        inside.extend(CONTAINER.map(str::to_owned));
    }
    inside.extend(scene.through());
    let case = Case::new(variant.mode)
        .inside(inside)
        .options(["--backend", variant.backend, "--evidence", variant.evidence])
        .env("T", &scene.target)
        .env("N", scene.pid())
        .argv(scene.words());
    let outcome: Outcome = case.outcome_in(world);
    let changed = differences(&before, &scene.look());
    let report = Report::read(outcome);
    assert!(
        report.stdout().lines().any(|line| line == TRIED),
        "{variant:?}: it was not made to its end:\n{report}"
    );
    let open: Vec<_> = report.field("/sandbox/ungoverned").as_array().unwrap().clone();
    let named = open
        .iter()
        .any(|word| way.open.contains(&word.as_str().unwrap_or_default()));
    if !variant.contained {
        report.assert_full();
    }
    assert!(
        changed.is_empty() || (variant.contained && named),
        "{variant:?}: the outside changed:\n{changed:#?}\n{report}"
    );
}
