//! What a command puts on itself last of all: capabilities dropped, a Landlock domain, filters.

use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::sync::Arc;

use nix::errno::Errno;
use ringfence_backend::status::{Failure, Stage};
use ringfence_backend::{Observe, PlanStep, PrepareError};

use crate::filter::{self, Program, Sockets, TooLong};
use crate::kernel;
use crate::ruleset::{Handled, Rulesets, build};

/// Everything the command's process needs to confine itself.
#[derive(Debug, Default)]
pub struct Confinement {
    ruleset: Option<Arc<OwnedFd>>,
    log: bool,
    filters: Vec<Program>,
    observed: Option<Observed>,
    /// For the process that is known in the child alone.
    sparing: Option<Program>,
}

/// The filter whose notified calls the runner answers.
#[derive(Debug)]
struct Observed {
    program: Program,
    /// Whether it changes metadata for the command.
    metadata: bool,
    /// What is installed when somebody else already listens to this process; none means refusal.
    instead: Option<Vec<Program>>,
}

impl Confinement {
    /// Builds what the steps name. Those of other layers are left to their backend.
    ///
    /// # Errors
    /// [`PrepareError`] for the first thing that is not there.
    pub fn prepare(steps: &[PlanStep], rulesets: &Rulesets) -> Result<Self, PrepareError> {
        let mut built = Self::default();
        let pids = steps.contains(&PlanStep::PidNamespace);
        // Whose limits are not the command's to set. Inside a PID namespace that is its first process:
        // nobody else outside has a number there.
        let parent = if pids {
            1
        } else {
            nix::unistd::getpid().as_raw().cast_unsigned()
        };
        for step in steps {
            match step {
                PlanStep::Landlock {
                    abi,
                    rules,
                    sockets,
                    lasting,
                    log,
                } => {
                    let handled = Handled::new(*abi, *sockets);
                    built.ruleset = Some(if *lasting {
                        rulesets.get(handled, rules)?
                    } else {
                        Arc::new(build(handled, rules)?)
                    });
                    built.log = *log;
                }
                PlanStep::Seccomp {
                    observe,
                    cookie,
                    metadata,
                    closed,
                } => {
                    let sockets = Sockets::new(closed);
                    built.filter(*observe, *cookie, *metadata, (parent, sockets))?;
                }
                PlanStep::SeccompMetadata => {
                    let program = filter::metadata().map_err(|e| unbuilt(&e))?;
                    match &mut built.observed {
                        Some(Observed {
                            metadata: true,
                            instead,
                            ..
                        }) => {
                            if let Some(filters) = instead {
                                filters.push(program);
                            }
                        }
                        _ => built.filters.push(program),
                    }
                }
                PlanStep::SeccompInodeRequests => {
                    built.filters.push(filter::inode_requests().map_err(|e| unbuilt(&e))?);
                }
                // `DropCapabilities` is part of `confine`, for every plan.
                _ => {}
            }
        }
        if !pids && built.ruleset.is_some() {
            built.sparing = Some(filter::sparing().map_err(too_long)?);
        }
        Ok(built)
    }

    /// Prepares the filter of every run, and the one that notifies.
    fn filter(
        &mut self,
        observe: Observe,
        cookie: Option<u64>,
        metadata: bool,
        (parent, sockets): (u32, Sockets),
    ) -> Result<(), PrepareError> {
        let base = filter::base(parent, sockets).map_err(too_long)?;
        if observe == Observe::No {
            self.filters.push(base);
            return Ok(());
        }
        self.observed = Some(Observed {
            program: filter::observing(parent, sockets, cookie).map_err(too_long)?,
            metadata,
            instead: (observe != Observe::Required).then(|| vec![base]),
        });
        Ok(())
    }

    /// Confines the calling process for good; gives the number of the filter's listener when it is
    /// observed. Raw calls on prepared data only: it may share the runner's memory.
    ///
    /// # Errors
    /// The stage and errno at which it stopped.
    pub fn confine(&self) -> Result<Option<RawFd>, Failure> {
        kernel::drop_capabilities().map_err(at(Stage::Capabilities))?;
        kernel::no_new_privileges().map_err(at(Stage::Capabilities))?;
        if let Some(ruleset) = &self.ruleset {
            kernel::landlock_restrict_self(ruleset.as_fd(), self.log).map_err(at(Stage::Landlock))?;
        }
        for program in &self.filters {
            kernel::install_filter(program).map_err(at(Stage::Seccomp))?;
        }
        if let Some(sparing) = &self.sparing {
            kernel::install_filter_for(sparing, filter::SPARED, kernel::parent()).map_err(at(Stage::Seccomp))?;
        }
        let Some(observed) = &self.observed else {
            return Ok(None);
        };
        match (kernel::install_observed(&observed.program), &observed.instead) {
            (Ok(listener), _) => Ok(Some(listener)),
            // seccomp(2): only one filter of a process can have a listener.
            (Err(Errno::EBUSY), Some(instead)) => {
                for program in instead {
                    kernel::install_filter(program).map_err(at(Stage::Seccomp))?;
                }
                Ok(None)
            }
            (Err(errno), _) => Err(at(Stage::Listener)(errno)),
        }
    }
}

fn unbuilt(error: &seccompiler::Error) -> PrepareError {
    PrepareError {
        what: "the metadata filter".to_owned(),
        source: std::io::Error::other(error.to_string()),
    }
}

fn too_long(_: TooLong) -> PrepareError {
    PrepareError {
        what: "the system call filter".to_owned(),
        source: std::io::ErrorKind::InvalidData.into(),
    }
}

fn at(stage: Stage) -> impl Fn(Errno) -> Failure {
    move |errno| Failure {
        stage,
        errno: errno as i32,
    }
}
