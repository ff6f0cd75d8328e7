//! The command's resource limits: what can be limited, and what the kernel is told.

use std::collections::BTreeMap;

use nix::libc;
use ringfence_backend::{ChildLimit, current_limit};

use crate::error::Error;

/// The value of a limit that is none (`RLIM_INFINITY`).
pub const UNLIMITED: u64 = nix::sys::resource::RLIM_INFINITY;

/// After the limit of processor time, the command has this long to end by itself, in seconds.
const CPU_GRACE: u64 = 1;

/// What can be limited, as getrlimit(2) has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// Address space of each process, in bytes: what goes beyond cannot be allocated.
    As,
    /// Core dumps, in bytes; 0 unless asked otherwise.
    Core,
    /// Processor time of each process, in seconds: SIGXCPU, and SIGKILL a second later.
    Cpu,
    /// Each file written, in bytes: SIGXFSZ.
    Fsize,
    /// Open descriptors of each process: one more than the highest number.
    Nofile,
    /// Processes and threads of the user. The kernel counts those of the run alone when it has a user
    /// namespace, else all that the user has anywhere; it does not hold root to it.
    Nproc,
}

impl Resource {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::As, Self::Core, Self::Cpu, Self::Fsize, Self::Nofile, Self::Nproc];

    /// Its name, as getrlimit(2) spells it behind `RLIMIT_`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::As => "as",
            Self::Core => "core",
            Self::Cpu => "cpu",
            Self::Fsize => "fsize",
            Self::Nofile => "nofile",
            Self::Nproc => "nproc",
        }
    }

    /// Its number, whose type differs from one C library to the next.
    #[allow(clippy::cast_possible_wrap, clippy::unnecessary_cast, reason = "they are small")]
    const fn kernel(self) -> i32 {
        match self {
            Self::As => libc::RLIMIT_AS as i32,
            Self::Core => libc::RLIMIT_CORE as i32,
            Self::Cpu => libc::RLIMIT_CPU as i32,
            Self::Fsize => libc::RLIMIT_FSIZE as i32,
            Self::Nofile => libc::RLIMIT_NOFILE as i32,
            Self::Nproc => libc::RLIMIT_NPROC as i32,
        }
    }
}

/// What the child sets: what was asked for, and no core dumps unless they were.
///
/// Everything else the command inherits as it is: Ringfence changes no limit of its own.
pub(super) fn resolve(asked: &BTreeMap<Resource, u64>) -> Result<Vec<ChildLimit>, Error> {
    let mut limits = Vec::new();
    for resource in Resource::ALL {
        let asked = asked.get(&resource).copied();
        if asked.is_none() && resource != Resource::Core {
            continue;
        }
        let (_, hard) = current_limit(resource.kernel()).map_err(|source| Error::Host {
            doing: "could not read the limits of this process",
            source,
        })?;
        let soft = asked.unwrap_or(0);
        if soft > hard {
            return Err(above(resource, soft, hard));
        }
        limits.push(ChildLimit {
            resource: resource.kernel(),
            soft,
            hard: match (asked, resource) {
                // Nobody asked for it to be final: a command that wants a core dump can have one.
                (None, _) => hard,
                (Some(_), Resource::Cpu) => soft.saturating_add(CPU_GRACE).min(hard),
                (Some(_), _) => soft,
            },
        });
    }
    Ok(limits)
}

fn above(resource: Resource, value: u64, hard: u64) -> Error {
    let name = resource.name();
    let value = if value == UNLIMITED {
        "unlimited".to_owned()
    } else {
        value.to_string()
    };
    Error::input(
        "--limit",
        format!("{name}={value}"),
        format!("the hard limit of {name} is {hard} here"),
        format!("ask for at most {hard}, or have whoever starts Ringfence raise the hard limit (ulimit -H)"),
    )
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use nix::sys::resource::{Resource as Kernel, getrlimit};
    use ringfence_backend::status::Stage;
    use ringfence_backend::{
        Backend, BackendId, ChildStdio, ExecImage, Launch, LaunchError, LaunchPlan, PinnedPath, Session, launch,
    };

    use super::*;

    fn of(asked: &[(Resource, u64)]) -> Result<Vec<ChildLimit>, Error> {
        resolve(&asked.iter().copied().collect())
    }

    #[test]
    fn nothing_asked_for_is_no_core_dump_and_nothing_else() {
        let limits = of(&[]).unwrap();
        assert_eq!(limits.len(), 1);
        assert_eq!((limits[0].resource, limits[0].soft), (Kernel::RLIMIT_CORE as i32, 0));
    }

    #[test]
    fn a_limit_that_was_asked_for_is_final_and_processor_time_has_a_second_of_grace() {
        let limits = of(&[(Resource::Fsize, 4096), (Resource::Cpu, 7)]).unwrap();
        let of = |kernel| limits.iter().find(|limit| limit.resource == kernel as i32).unwrap();
        assert_eq!(
            (of(Kernel::RLIMIT_FSIZE).soft, of(Kernel::RLIMIT_FSIZE).hard),
            (4096, 4096)
        );
        assert_eq!((of(Kernel::RLIMIT_CPU).soft, of(Kernel::RLIMIT_CPU).hard), (7, 8));
    }

    #[test]
    fn a_limit_that_cannot_be_set_ends_the_launch_before_the_command_runs() {
        let place = tempfile::tempdir().unwrap();
        let mark = place.path().join("ran");
        let argv = [OsString::from("touch"), mark.clone().into_os_string()];
        let image = ExecImage::new(vec!["/bin/touch".into(), "/usr/bin/touch".into()], &argv, &[]).unwrap();
        let plan = LaunchPlan {
            backend: BackendId::None,
            enforcement: None,
            not_confined: Vec::new(),
            steps: Vec::new(),
            dialect: &[],
        };
        let no_such = ChildLimit {
            resource: 999,
            soft: 0,
            hard: 0,
        };
        let launched = launch(
            &ringfence_none::NoBackend.prepare(&plan).unwrap(),
            &Launch {
                session: Session::Callers,
                stdio: [ChildStdio::Inherit, ChildStdio::Inherit, ChildStdio::Inherit],
                workdir: (c"/", PinnedPath::open("/".as_ref()).unwrap().id()),
                extra: None,
                limits: &[no_such],
            },
            &image,
        );
        match launched {
            Err(LaunchError::Failed(failure)) => assert_eq!(failure.stage, Stage::Limits),
            other => panic!("{other:?}"),
        }
        assert!(!mark.exists());
    }

    #[test]
    fn a_limit_above_the_hard_one_is_refused_with_both_values_and_a_way_out() {
        let (_, hard) = getrlimit(Kernel::RLIMIT_NOFILE).unwrap();
        assert_ne!(hard, UNLIMITED, "the kernel has a highest descriptor");
        let error = of(&[(Resource::Nofile, hard + 1)]).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("--limit") && said.contains(&format!("nofile={}", hard + 1)),
            "{said}"
        );
        assert!(said.contains(&format!("is {hard} here")), "{said}");
        assert!(error.hint().unwrap().contains(&format!("at most {hard}")));
    }
}
