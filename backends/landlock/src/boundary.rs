//! The mounts of a run, and the child's steps through them.

use std::ffi::CString;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use ringfence_backend::status::{Failure, Stage};
use ringfence_backend::{Boundary, FileId, PinnedPath, PlanStep, PrepareError};
use ringfence_layers::{Confinement, Rulesets};

use crate::kernel::{self, ChildFd};

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
#[derive(Debug)]
pub(crate) struct LandlockBoundary {
    maps: Option<(Vec<u8>, Vec<u8>)>,
    pids: bool,
    mounts: bool,
    trees: Vec<Tree>,
    /// What is mounted over itself inside the trees, and whether it becomes read-only.
    nested: Vec<(Tree, bool)>,
    replaced: Option<Tree>,
    confinement: Confinement,
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
        let mut boundary = Self {
            maps: None,
            pids: false,
            mounts: false,
            trees: Vec::new(),
            nested: Vec::new(),
            replaced: None,
            confinement: Confinement::prepare(steps, rulesets)?,
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
                PlanStep::Writable(root) => boundary.trees.push(Tree::in_place(root)?),
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
                PlanStep::Replaced { by, at } => {
                    boundary.replaced = Some(Tree {
                        from: c_path(by.path())?,
                        id: by.id(),
                        at: c_path(at)?,
                    });
                }
                // Another backend's.
                PlanStep::Bubblewrap { .. } | PlanStep::ShownDevice { .. } | PlanStep::SeatbeltProfile(_) => {
                    return Err(PrepareError {
                        what: "a step of another backend".to_owned(),
                        source: std::io::ErrorKind::Unsupported.into(),
                    });
                }
                // The command's own, built above.
                PlanStep::DropCapabilities
                | PlanStep::Landlock { .. }
                | PlanStep::Seccomp { .. }
                | PlanStep::SeccompMetadata
                | PlanStep::SeccompInodeRequests => {}
            }
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
        self.confinement.confine()
    }
}
