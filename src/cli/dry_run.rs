//! What a run would do, as data that can be shown in words or as a document.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use ringfence::exec::limits::UNLIMITED;
use ringfence::facts::LongCommand;
use ringfence::facts::SCHEMA;
use ringfence::{BackendId, Door, Effect, Enforcement, ExecSpec, Require, SandboxMode, Temp};
use ringfence_backend::{LandlockRule, Observe, PlanStep};
use serde::Serialize;

use super::standing::Standing;
use super::text::{shown, visible};

/// The document of `--dry-run`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DryRun<'a> {
    schema: u32,
    run_id: &'a str,
    #[serde(rename = "dryRun")]
    nothing_was_run: bool,
    argv: Vec<Cow<'a, str>>,
    #[serde(rename = "command", skip_serializing_if = "Option::is_none")]
    long: Option<&'a LongCommand>,
    workdir: Cow<'a, str>,
    timeout_ms: Option<u64>,
    pub(crate) policy: PolicyView,
    pub(crate) backend: BackendId,
    /// Absent in words, null in the document, when nothing is confined.
    pub(crate) enforcement: Option<&'static str>,
    pub(crate) ungoverned: Vec<Effect>,
    pub(crate) not_confined: &'a [Door],
    pub(crate) steps: Vec<String>,
    /// The limits that were asked for, each in its own unit.
    pub(crate) limits: BTreeMap<&'static str, String>,
    /// Names of the caller's variables that the command does not get.
    pub(crate) withheld: Vec<Cow<'a, str>>,
    /// The same as it is, for people.
    #[serde(skip)]
    pub(crate) command: Words<'a>,
}

/// The policy, as a document shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyView {
    pub(crate) session: Option<String>,
    pub(crate) mode: SandboxMode,
    /// Where the mode comes from, in words.
    pub(crate) mode_from: String,
    /// The loosest mode that is allowed.
    pub(crate) ceiling: SandboxMode,
    /// Which file says so; absent in words, null in the document, when none does.
    pub(crate) ceiling_from: Option<String>,
    pub(crate) workspace_root: String,
    pub(crate) writable: Vec<String>,
    pub(crate) protected: Vec<String>,
    pub(crate) temp: Temp,
    pub(crate) require: Require,
    /// Whether the run is recorded.
    pub(crate) audit: &'static str,
}

/// What words show and the document has in its own form.
#[derive(Debug)]
pub(crate) struct Words<'a> {
    pub(crate) argv: &'a [OsString],
    pub(crate) long: Option<&'a LongCommand>,
    pub(crate) workdir: PathBuf,
    pub(crate) timeout: Option<std::time::Duration>,
    pub(crate) withheld: &'a [OsString],
}

impl<'a> DryRun<'a> {
    /// Takes down what would be done.
    pub(crate) fn new(spec: &'a ExecSpec, withheld: &'a [OsString], standing: &Standing) -> Self {
        let (policy, plan) = (spec.policy(), spec.plan());
        let lossy = |path: &std::path::Path| path.to_string_lossy().into_owned();
        Self {
            schema: SCHEMA,
            run_id: spec.run_id(),
            nothing_was_run: true,
            argv: spec.argv().iter().map(|word| word.to_string_lossy()).collect(),
            long: spec.long_command(),
            workdir: spec.workdir().to_string_lossy(),
            timeout_ms: spec
                .timeout()
                .map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
            policy: PolicyView {
                session: policy.session().map(str::to_owned),
                mode: policy.mode(),
                mode_from: standing.mode_from.clone(),
                ceiling: standing.settings.ceiling(),
                ceiling_from: standing.ceiling_from(),
                workspace_root: lossy(policy.workspace_root().path()),
                writable: policy.writable().iter().map(|root| lossy(root.path())).collect(),
                protected: policy.protected().iter().map(|it| lossy(&it.path)).collect(),
                temp: policy.temp(),
                require: policy.require(),
                audit: standing.recording.name(),
            },
            backend: plan.backend,
            enforcement: plan.enforcement.as_ref().map(word),
            ungoverned: plan.enforcement.as_ref().map(left_open).unwrap_or_default(),
            not_confined: &plan.not_confined,
            steps: plan.steps.iter().map(describe).collect(),
            limits: spec
                .limits()
                .iter()
                .map(|(resource, value)| (resource.name(), shown_limit(*value)))
                .collect(),
            withheld: withheld.iter().map(|name| name.to_string_lossy()).collect(),
            command: Words {
                argv: spec.argv(),
                long: spec.long_command(),
                workdir: spec.workdir().to_owned(),
                timeout: spec.timeout(),
                withheld,
            },
        }
    }
}

/// A limit as text: the highest ones are no number of JSON's.
fn shown_limit(value: u64) -> String {
    if value == UNLIMITED {
        "unlimited".to_owned()
    } else {
        value.to_string()
    }
}

/// The word for an enforcement.
pub(crate) const fn word(enforcement: &Enforcement) -> &'static str {
    match enforcement {
        Enforcement::Full => "full",
        Enforcement::Partial { .. } => "partial",
    }
}

/// The effects an enforcement leaves open.
pub(crate) fn left_open(enforcement: &Enforcement) -> Vec<Effect> {
    match enforcement {
        Enforcement::Full => Vec::new(),
        Enforcement::Partial { ungoverned } => ungoverned.iter().copied().collect(),
    }
}

/// One step in words.
pub(crate) fn describe(step: &PlanStep) -> String {
    match step {
        PlanStep::UserNamespace => "make a user namespace in which the caller stays who it is".to_owned(),
        PlanStep::PidNamespace => "make a PID namespace, whose processes all end with the command".to_owned(),
        PlanStep::ReadOnlyMounts => "make every mount read-only, in a mount namespace of the run's own".to_owned(),
        PlanStep::Writable(root) => format!("keep {} writable", shown(root.path())),
        PlanStep::Held(path) => format!("hold {} in its place", shown(path.path())),
        PlanStep::Protected(path) => format!("make {} read-only", shown(path.path())),
        PlanStep::Shown { from, at } => format!("show {} at {}", shown(from.path()), shown(at)),
        PlanStep::Bubblewrap { program, .. } => {
            format!("have {} make the namespaces and mounts that follow", shown(program))
        }
        PlanStep::ShownDevice { device, at } => format!("show the device {} at {}", shown(device), shown(at)),
        PlanStep::DropCapabilities => "drop every capability, and the way to new ones".to_owned(),
        PlanStep::Landlock { abi, rules, .. } => {
            let opened: Vec<_> = rules.iter().map(grant).collect();
            let but = if opened.is_empty() {
                String::new()
            } else {
                format!(", but for {}", opened.join(", "))
            };
            format!("refuse every file effect that Landlock {abi} knows{but}")
        }
        PlanStep::Replaced { by, at } => {
            format!(
                "show {}, which tells what is refused, in place of {}",
                shown(by.path()),
                shown(at)
            )
        }
        PlanStep::Seccomp {
            observe: Observe::No, ..
        } => "filter the system calls that would get around this".to_owned(),
        PlanStep::Seccomp { cookie, .. } => format!(
            "filter the system calls that would get around this, and watch {} that change files",
            if cookie.is_some() {
                "the refused ones of those"
            } else {
                "those"
            },
        ),
        PlanStep::SeccompInodeRequests => "refuse every request that changes inode flags".to_owned(),
        PlanStep::SeatbeltProfile(text) => {
            let lines: Vec<_> = text.lines().map(visible).collect();
            format!("confine it by this profile of Seatbelt: {}", lines.join(" "))
        }
        PlanStep::SeccompMetadata => "refuse every system call that changes metadata".to_owned(),
    }
}

fn grant(rule: &LandlockRule) -> String {
    match rule {
        LandlockRule::Everything(root) => shown(root.path()),
        LandlockRule::Device(path) | LandlockRule::Terminal(path) => shown(path),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ringfence::PinnedPath;

    use super::*;

    #[test]
    fn a_step_names_the_paths_it_opens() {
        let root = PinnedPath::open(Path::new("/")).unwrap();
        let step = PlanStep::Landlock {
            abi: 6,
            rules: vec![LandlockRule::Everything(root), LandlockRule::Device("/dev/null".into())],
            sockets: false,
            lasting: true,
            log: false,
        };
        assert_eq!(
            describe(&step),
            "refuse every file effect that Landlock 6 knows, but for /, /dev/null"
        );
    }

    #[test]
    fn partial_enforcement_names_what_it_leaves_open() {
        let partial = Enforcement::Partial {
            ungoverned: [Effect::Metadata].into(),
        };
        assert_eq!(
            (word(&partial), left_open(&partial)),
            ("partial", vec![Effect::Metadata])
        );
        assert_eq!(
            (word(&Enforcement::Full), left_open(&Enforcement::Full)),
            ("full", vec![])
        );
    }
}
