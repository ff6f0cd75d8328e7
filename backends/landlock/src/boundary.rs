//! The prepared boundary, and the child's steps through it.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use ringfence_backend::status::{Failure, Stage};
use ringfence_backend::{Boundary, FileId, Observe, PinnedPath, PlanStep, PrepareError};

use crate::filter::{self, Program, Sockets, TooLong};
use crate::kernel::{self, ChildFd};
use crate::ruleset::{Handled, Rulesets, build};

/// How many trees one run may keep writable or show elsewhere. The child holds their descriptors
/// on its stack, since it must not allocate.
const MOST_TREES: usize = 64;

/// A tree that is taken from one place before everything becomes read-only, and attached at another after.
#[derive(Debug)]
struct Tree {
    from: CString,
    id: FileId,
    at: CString,
}

impl Tree {
    /// A tree that is attached where it is taken from.
    fn in_place(path: &PinnedPath) -> Result<Self, PrepareError> {
        let at = c_path(path.path())?;
        Ok(Self {
            from: at.clone(),
            id: path.id(),
            at,
        })
    }
}

/// Everything the child needs to confine itself.
#[derive(Debug, Default)]
pub(crate) struct LandlockBoundary {
    maps: Option<(Vec<u8>, Vec<u8>)>,
    pids: bool,
    mounts: bool,
    trees: Vec<Tree>,
    /// What is mounted over itself inside the trees, and whether it becomes read-only.
    nested: Vec<(Tree, bool)>,
    replaced: Option<Tree>,
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

fn c_path(path: &Path) -> Result<CString, PrepareError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|e| PrepareError {
        what: format!("the path {}", path.display()),
        source: e.into(),
    })
}

impl LandlockBoundary {
    /// Opens and builds what the steps name.
    ///
    /// # Errors
    /// [`PrepareError`] for the first thing that is not there.
    pub(crate) fn prepare(steps: &[PlanStep], rulesets: &Rulesets) -> Result<Self, PrepareError> {
        let mut boundary = Self::default();
        // Whose limits are not the command's to set. Inside a PID namespace that is its first process:
        // nobody else outside has a number there.
        let parent = if steps.contains(&PlanStep::PidNamespace) {
            1
        } else {
            nix::unistd::getpid().as_raw().cast_unsigned()
        };
        for step in steps {
            match step {
                PlanStep::UserNamespace => {
                    let map = |id: u32| format!("{id} {id} 1\n").into_bytes();
                    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
                    boundary.maps = Some((map(uid.as_raw()), map(gid.as_raw())));
                }
                PlanStep::PidNamespace => boundary.pids = true,
                PlanStep::ReadOnlyMounts => boundary.mounts = true,
                PlanStep::Writable(root) => {
                    boundary.trees.push(Tree::in_place(root)?);
                }
                PlanStep::Held(path) | PlanStep::Protected(path) => {
                    let read_only = matches!(step, PlanStep::Protected(_));
                    boundary.nested.push((Tree::in_place(path)?, read_only));
                }
                PlanStep::Shown { from, at } => {
                    boundary.trees.push(Tree {
                        from: c_path(from.path())?,
                        id: from.id(),
                        at: c_path(at)?,
                    });
                }
                // Part of `confine`, for every plan of this backend.
                PlanStep::DropCapabilities => {}
                PlanStep::Landlock {
                    abi,
                    rules,
                    truncation,
                    lasting,
                    log,
                } => {
                    let handled = Handled::new(*abi, *truncation);
                    boundary.ruleset = Some(if *lasting {
                        rulesets.get(handled, rules)?
                    } else {
                        Arc::new(build(handled, rules)?)
                    });
                    boundary.log = *log;
                }
                PlanStep::Replaced { by, at } => {
                    boundary.replaced = Some(Tree {
                        from: c_path(by.path())?,
                        id: by.id(),
                        at: c_path(at)?,
                    });
                }
                PlanStep::Seccomp {
                    observe,
                    cookie,
                    metadata,
                    closed,
                } => {
                    let sockets = Sockets::new(closed);
                    boundary.filter(*observe, *cookie, *metadata, (parent, sockets))?;
                }
                PlanStep::SeccompMetadata => {
                    let program = filter::metadata().map_err(|e| unbuilt(&e))?;
                    match &mut boundary.observed {
                        Some(Observed {
                            metadata: true,
                            instead,
                            ..
                        }) => {
                            if let Some(filters) = instead {
                                filters.push(program);
                            }
                        }
                        _ => boundary.filters.push(program),
                    }
                }
                PlanStep::SeccompInodeRequests => {
                    boundary
                        .filters
                        .push(filter::inode_requests().map_err(|e| unbuilt(&e))?);
                }
                PlanStep::SeatbeltProfile(_) => {
                    return Err(PrepareError {
                        what: "a profile of Seatbelt".to_owned(),
                        source: std::io::ErrorKind::Unsupported.into(),
                    });
                }
            }
        }
        if !boundary.pids && boundary.ruleset.is_some() {
            boundary.sparing = Some(filter::sparing().map_err(too_long)?);
        }
        if boundary.trees.len() > MOST_TREES {
            let source = std::io::Error::other(format!("at most {MOST_TREES} are possible"));
            return Err(PrepareError {
                what: format!("{} writable roots", boundary.trees.len()),
                source,
            });
        }
        Ok(boundary)
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

    /// Takes the trees as they are, makes everything read-only, and puts the trees back.
    ///
    /// A tree that is no longer what the runner pinned ends the launch.
    fn mount(&self) -> Result<(), Failure> {
        kernel::make_all_private().map_err(at(Stage::Mounts))?;
        if self.pids {
            kernel::mount_proc().map_err(at(Stage::Mounts))?;
        }
        let mut taken = [None::<ChildFd>; MOST_TREES];
        for (slot, tree) in taken.iter_mut().zip(&self.trees) {
            let fd = take(tree, Stage::WritableRoot)?;
            kernel::close_devices(fd).map_err(at(Stage::WritableRoot))?;
            *slot = Some(fd);
        }
        kernel::make_all_read_only().map_err(at(Stage::Mounts))?;
        for (slot, tree) in taken.iter().zip(&self.trees) {
            if let Some(fd) = slot {
                kernel::attach_tree(*fd, &tree.at).map_err(at(Stage::WritableRoot))?;
            }
        }
        // A name that something is mounted on cannot be removed or given to anything else (EBUSY).
        for (tree, read_only) in &self.nested {
            let fd = take(tree, Stage::Protected)?;
            if *read_only {
                kernel::make_tree_read_only(fd).map_err(at(Stage::Protected))?;
            }
            kernel::attach_tree(fd, &tree.at).map_err(at(Stage::Protected))?;
        }
        // Taken from what is read-only by now, so that it stays so.
        if let Some(tree) = &self.replaced {
            kernel::attach_tree(take(tree, Stage::Accelerator)?, &tree.at).map_err(at(Stage::Accelerator))?;
        }
        Ok(())
    }
}

/// A detached copy of a tree, if it still is what the runner pinned.
fn take(tree: &Tree, stage: Stage) -> Result<ChildFd, Failure> {
    let fd = kernel::clone_tree(&tree.from).map_err(at(stage))?;
    if kernel::identity(fd).map_err(at(stage))? == tree.id {
        Ok(fd)
    } else {
        Err(Failure {
            stage,
            errno: Errno::ESTALE as i32,
        })
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

impl Boundary for LandlockBoundary {
    fn clone_flags(&self) -> i32 {
        let user = if self.maps.is_some() { libc::CLONE_NEWUSER } else { 0 };
        let pids = if self.pids { libc::CLONE_NEWPID } else { 0 };
        let mount = if self.mounts { libc::CLONE_NEWNS } else { 0 };
        user | pids | mount
    }

    fn isolate(&self) -> Result<(), Failure> {
        if let Some((uid, gid)) = &self.maps {
            // user_namespaces(7): without privilege the group map wants setgroups(2) closed first.
            let write = |path, bytes| kernel::write_whole(path, bytes).map_err(at(Stage::UserMap));
            write(c"/proc/self/setgroups", b"deny")?;
            write(c"/proc/self/uid_map", uid)?;
            write(c"/proc/self/gid_map", gid)?;
        }
        if self.mounts { self.mount() } else { Ok(()) }
    }

    fn confine(&self) -> Result<Option<RawFd>, Failure> {
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
