//! Which backend serves a run: the first that this host can use and that meets the policy.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ringfence_backend::{
    Backend, BackendId, CommandSpec, Effect, Enforcement, HostSupport, LaunchPlan, Probe, Require,
    SandboxExecutionPolicy,
};

use crate::error::{Error, Tried};
use crate::state::StateDir;

mod verdict;

/// The backends of this host in order of preference, and what is known of them.
#[derive(Debug)]
pub struct Selection {
    backends: Vec<Box<dyn Backend>>,
    state_dir: Option<PathBuf>,
    known: Mutex<BTreeMap<BackendId, Known>>,
    /// Backends whose remembered verdict proved wrong here, whether or not its file could be removed.
    disproved: Mutex<BTreeSet<BackendId>>,
}

/// An answer of a backend, and whether it was only remembered.
#[derive(Clone, Debug)]
struct Known {
    probe: Probe,
    recalled: bool,
}

/// The backend that serves a run, and its plan.
#[derive(Debug)]
pub struct Choice<'a> {
    /// The backend.
    pub backend: &'a dyn Backend,
    /// What it will do.
    pub plan: LaunchPlan,
}

/// Whether another backend could keep protected paths as they are that this plan does not: those that are there,
/// and named by no link.
fn leaves_protected_open(plan: &LaunchPlan, policy: &SandboxExecutionPolicy) -> bool {
    let open = matches!(&plan.enforcement, Some(Enforcement::Partial { ungoverned })
        if ungoverned.contains(&Effect::ProtectedPaths));
    open && !plan.has_mounts() && !policy.protected().is_empty()
}

/// What one backend would do.
#[derive(Clone, Debug)]
pub struct Considered {
    /// The backend.
    pub backend: BackendId,
    /// What it would do, or why it would not serve, in a sentence.
    pub plan: Result<LaunchPlan, String>,
    /// The same in the words of what carries it out, a line each, where those are others than the steps'.
    pub rendered: Vec<String>,
}

/// The same with the backend of the other system: its text is made here too, for whoever writes a policy for both.
#[cfg(target_os = "linux")]
fn with_the_other_system(
    mut considered: Vec<Considered>,
    policy: &SandboxExecutionPolicy,
    command: &CommandSpec,
) -> Vec<Considered> {
    use ringfence_seatbelt::Seatbelt;
    let plan = Seatbelt.plan(&HostSupport::default(), policy, command);
    let reason = match Seatbelt.probe() {
        Probe::Unusable { reason } => reason,
        Probe::Usable(_) => return considered,
    };
    considered.push(Considered {
        backend: BackendId::Seatbelt,
        rendered: plan.map(|plan| Seatbelt.rendered(&plan)).unwrap_or_default(),
        plan: Err(reason),
    });
    considered
}

impl Selection {
    /// The backends of this system, in the order in which they are asked.
    ///
    /// `state_dir` is where the accelerator of evidence and long output are kept; without one neither is.
    /// Programs that backends start are looked for in the directories of `path`, as the PATH of a shell, or in
    /// the system's.
    #[must_use]
    pub fn of_this_system(state_dir: Option<PathBuf>, path: Option<OsString>) -> Self {
        // No backend there looks for a program.
        #[cfg(not(target_os = "linux"))]
        drop(path);
        let backends: Vec<Box<dyn Backend>> = vec![
            #[cfg(target_os = "linux")]
            Box::new(ringfence_landlock::Landlock::default()),
            #[cfg(target_os = "linux")]
            Box::new(ringfence_bwrap::Bwrap::on(path)),
            #[cfg(target_os = "macos")]
            Box::new(ringfence_seatbelt::Seatbelt),
            Box::new(ringfence_none::NoBackend),
        ];
        Self::of(backends, state_dir)
    }

    /// The same, and nothing that was remembered is believed: the host is asked now.
    #[must_use]
    pub fn asked_afresh(path: Option<OsString>) -> Self {
        let afresh = Self::of_this_system(None, path);
        let all = afresh.backends().map(Backend::id).collect();
        *afresh.disproved.lock().unwrap_or_else(PoisonError::into_inner) = all;
        afresh
    }

    /// These backends, in this order.
    #[must_use]
    pub fn of(backends: Vec<Box<dyn Backend>>, state_dir: Option<PathBuf>) -> Self {
        Self {
            backends,
            state_dir,
            known: Mutex::default(),
            disproved: Mutex::default(),
        }
    }

    /// The backends, in order of preference.
    pub fn backends(&self) -> impl Iterator<Item = &dyn Backend> {
        self.backends.iter().map(AsRef::as_ref)
    }

    /// The first backend that is usable and meets the policy, or exactly `wanted`. If none keeps the protected
    /// paths as they are, the first that is usable serves, and its plan names them.
    ///
    /// # Errors
    /// [`Error::SandboxUnavailable`] with every backend asked and its reason.
    pub fn choose(
        &self,
        policy: &SandboxExecutionPolicy,
        command: &CommandSpec,
        wanted: Option<BackendId>,
    ) -> Result<Choice<'_>, Error> {
        let mut tried = Vec::new();
        let mut second_best = None;
        let confines = policy.mode().confines();
        for backend in self.backends() {
            let id = backend.id();
            let asked = match wanted {
                _ if !confines => id == BackendId::None,
                Some(wanted) => id == wanted,
                None => id != BackendId::None,
            };
            if !asked {
                continue;
            }
            match self.consider(backend, policy, command) {
                Ok(plan) if wanted.is_none() && leaves_protected_open(&plan, policy) => {
                    second_best.get_or_insert(Choice { backend, plan });
                }
                Ok(plan) => return Ok(Choice { backend, plan }),
                Err(reason) => tried.push(Tried { backend: id, reason }),
            }
        }
        if let Some(choice) = second_best {
            return Ok(choice);
        }
        if tried.is_empty() {
            let backend = wanted.unwrap_or(BackendId::None);
            tried.push(Tried {
                backend,
                reason: "this build of Ringfence does not have it on this system".to_owned(),
            });
        }
        Err(Error::SandboxUnavailable { tried })
    }

    /// What each confining backend would do for a policy and a command, in order of preference, or why it
    /// would not. Nothing is started but the probes.
    pub(crate) fn consider_each(&self, policy: &SandboxExecutionPolicy, command: &CommandSpec) -> Vec<Considered> {
        let confining = self.backends().filter(|backend| backend.id() != BackendId::None);
        let considered = confining.map(|backend| {
            let plan = self.consider(backend, policy, command);
            Considered {
                backend: backend.id(),
                rendered: plan.as_ref().map(|plan| backend.rendered(plan)).unwrap_or_default(),
                plan,
            }
        });
        let considered = considered.collect();
        #[cfg(target_os = "linux")]
        let considered = with_the_other_system(considered, policy, command);
        considered
    }

    /// The state directory, if no run can write it.
    ///
    /// # Errors
    /// Why it is not used, in a sentence.
    pub(crate) fn own_state(&self, policy: &SandboxExecutionPolicy) -> Result<StateDir, String> {
        let path = self.state_dir.as_deref().ok_or("no state directory is known")?;
        StateDir::open(path, Some(policy))
    }

    /// The state directory, for what concerns no single run.
    ///
    /// # Errors
    /// Why it is not used, in a sentence.
    pub(crate) fn state(&self) -> Result<StateDir, String> {
        StateDir::open(self.state_dir.as_deref().ok_or("no state directory is known")?, None)
    }

    /// The state directory as it was given. Whether it may be used is for [`StateDir::open`] to say.
    pub(crate) fn state_dir(&self) -> Option<&Path> {
        self.state_dir.as_deref()
    }

    fn consider(
        &self,
        backend: &dyn Backend,
        policy: &SandboxExecutionPolicy,
        command: &CommandSpec,
    ) -> Result<LaunchPlan, String> {
        // A policy that the backend cannot carry out anywhere needs no question to the host.
        let unasked = backend
            .plan(&HostSupport::default(), policy, command)
            .map_err(|e| e.to_string())?;
        if unasked.enforcement.is_none() {
            return Ok(unasked);
        }
        let host = match self.probe(backend) {
            Probe::Usable(host) => host,
            Probe::Unusable { reason } => return Err(reason),
        };
        let plan = backend.plan(&host, policy, command).map_err(|e| e.to_string())?;
        if let (Require::Full, Some(Enforcement::Partial { ungoverned })) = (policy.require(), &plan.enforcement) {
            let words: Vec<_> = ungoverned.iter().map(|effect| effect.word()).collect();
            // The host can do nothing about these: what closes them is how the caller starts the run.
            let files = if ungoverned.contains(&Effect::InheritedDescriptors) {
                "; inherited-descriptors: a standard stream is a file; a pipe in between, or --stdin FILE, closes that"
            } else {
                ""
            };
            let missing: Vec<_> = host
                .missing
                .iter()
                .map(|m| format!("; {}: {}", m.layer, m.reason))
                .collect();
            return Err(format!(
                "it leaves {} ungoverned here, and the policy requires full enforcement{files}{}",
                words.join(", "),
                missing.concat()
            ));
        }
        Ok(plan)
    }

    /// The backend's answer: known in this process, remembered from another, or asked now.
    fn probe(&self, backend: &dyn Backend) -> Probe {
        let id = backend.id();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&id) {
            return known.probe.clone();
        }
        let disproved = self
            .disproved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&id);
        let recalled = if disproved { None } else { verdict::recall(backend) };
        let answer = if let Some(host) = recalled {
            Known {
                probe: Probe::Usable(host),
                recalled: true,
            }
        } else {
            let probe = backend.probe();
            if let Probe::Usable(host) = &probe {
                verdict::remember(backend, host);
            }
            Known { probe, recalled: false }
        };
        known.insert(id, answer.clone());
        answer.probe
    }

    /// Drops a remembered verdict that a run has shown wrong. Whether there was one.
    pub(crate) fn forget(&self, backend: BackendId) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let recalled = known.get(&backend).is_some_and(|known| known.recalled);
        if recalled {
            known.remove(&backend);
            self.disproved
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(backend);
            verdict::forget(backend);
        }
        recalled
    }
}
