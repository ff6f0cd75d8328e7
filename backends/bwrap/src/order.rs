//! What the launcher is told of the boundary: what it must find, and what it adds.

use std::collections::BTreeSet;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use ringfence_backend::{Door, FileId, LandlockRule, Observe, PinnedPath, PlanStep, PrepareError};
use serde::{Deserialize, Serialize};

use crate::arguments::NODES;

/// The order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Order {
    /// What must stand at each path: device and inode.
    pub(crate) found: Vec<(PathBuf, u64, u64)>,
    /// Where mounts may be writable.
    pub(crate) writable: Vec<PathBuf>,
    /// Where they may not be, inside those.
    pub(crate) read_only: Vec<PathBuf>,
    /// Device nodes whose mounts may be writable, because nobody could make them otherwise.
    pub(crate) nodes: Vec<PathBuf>,
    /// Devices that are shown under names of their own.
    pub(crate) shown: Vec<PathBuf>,
    pub(crate) landlock: Option<Landlock>,
    pub(crate) filters: Vec<Filter>,
    /// The runner's process, for a trial.
    pub(crate) runner: Option<RawFd>,
}

/// A Landlock domain.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Landlock {
    abi: u8,
    sockets: bool,
    log: bool,
    opened: Vec<(PathBuf, u64, u64)>,
    devices: Vec<PathBuf>,
    terminals: Vec<PathBuf>,
}

/// A filter.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Filter {
    Calls {
        /// Whether calls are watched, and whether they must be.
        watch: Option<bool>,
        cookie: Option<u64>,
        metadata: bool,
        closed: BTreeSet<Door>,
    },
    Metadata,
    InodeRequests,
}

impl Order {
    /// What these steps ask for.
    pub(crate) fn new(steps: &[PlanStep], runner: Option<RawFd>) -> Self {
        let mut order = Self {
            runner,
            ..Self::default()
        };
        for step in steps {
            match step {
                PlanStep::Bubblewrap { prepared: false, .. } => order.nodes.extend(NODES.map(PathBuf::from)),
                PlanStep::Writable(root) | PlanStep::Held(root) => {
                    order.found.push(known(root));
                    order.writable.push(root.path().to_owned());
                }
                PlanStep::Shown { from, at } => {
                    order.found.push((at.clone(), from.id().device, from.id().inode));
                    order.writable.push(at.clone());
                }
                PlanStep::ShownDevice { at, .. } => {
                    order.shown.push(at.clone());
                    if !order.nodes.is_empty() {
                        order.nodes.push(at.clone());
                    }
                }
                PlanStep::Protected(path) => {
                    order.found.push(known(path));
                    order.read_only.push(path.path().to_owned());
                }
                PlanStep::Replaced { by, at } => {
                    order.found.push((at.clone(), by.id().device, by.id().inode));
                    order.read_only.push(at.clone());
                }
                PlanStep::Landlock {
                    abi,
                    rules,
                    sockets,
                    log,
                    ..
                } => {
                    let landlock = order.landlock.insert(Landlock::new(*abi, rules));
                    landlock.sockets = *sockets;
                    landlock.log = *log;
                }
                PlanStep::Seccomp {
                    observe,
                    cookie,
                    metadata,
                    closed,
                } => order.filters.push(Filter::Calls {
                    watch: match observe {
                        Observe::No => None,
                        Observe::IfFree => Some(false),
                        Observe::Required => Some(true),
                    },
                    cookie: *cookie,
                    metadata: *metadata,
                    closed: closed.clone(),
                }),
                PlanStep::SeccompMetadata => order.filters.push(Filter::Metadata),
                PlanStep::SeccompInodeRequests => order.filters.push(Filter::InodeRequests),
                _ => {}
            }
        }
        order
    }

    /// Its bytes.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, PrepareError> {
        postcard::to_stdvec(self).map_err(|e| PrepareError {
            what: "the launcher's order".to_owned(),
            source: std::io::Error::other(e.to_string()),
        })
    }

    /// An order from its bytes; `None` for bytes that are none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// Whether a Landlock domain is among the layers.
    pub(crate) const fn has_domain(&self) -> bool {
        self.landlock.is_some()
    }

    /// The steps that are left for the command itself, on what was found.
    ///
    /// # Errors
    /// The operating system's, for a root that cannot be opened here or is no longer what it was.
    pub(crate) fn steps(&self, found: &[PinnedPath]) -> std::io::Result<Vec<PlanStep>> {
        let mut steps = vec![PlanStep::PidNamespace, PlanStep::DropCapabilities];
        if let Some(landlock) = &self.landlock {
            steps.push(landlock.step(found)?);
        }
        steps.extend(self.filters.iter().map(|filter| match filter {
            Filter::Calls {
                watch,
                cookie,
                metadata,
                closed,
            } => PlanStep::Seccomp {
                observe: match watch {
                    None => Observe::No,
                    Some(false) => Observe::IfFree,
                    Some(true) => Observe::Required,
                },
                cookie: *cookie,
                metadata: *metadata,
                closed: closed.clone(),
            },
            Filter::Metadata => PlanStep::SeccompMetadata,
            Filter::InodeRequests => PlanStep::SeccompInodeRequests,
        }));
        Ok(steps)
    }
}

impl Landlock {
    fn new(abi: u8, rules: &[LandlockRule]) -> Self {
        let mut landlock = Self {
            abi,
            sockets: false,
            log: false,
            opened: Vec::new(),
            devices: Vec::new(),
            terminals: Vec::new(),
        };
        for rule in rules {
            match rule {
                LandlockRule::Everything(root) => landlock.opened.push(known(root)),
                LandlockRule::Device(path) => landlock.devices.push(path.clone()),
                LandlockRule::Terminal(path) => landlock.terminals.push(path.clone()),
            }
        }
        landlock
    }

    fn step(&self, found: &[PinnedPath]) -> std::io::Result<PlanStep> {
        let opened = self.opened.iter().map(|(path, device, inode)| {
            let id = FileId {
                device: *device,
                inode: *inode,
            };
            let known = found.iter().find(|it| it.path() == path && it.id() == id);
            known
                .cloned()
                .map_or_else(|| pinned(path, id), Ok)
                .map(LandlockRule::Everything)
        });
        let devices = self.devices.iter().cloned().map(LandlockRule::Device).map(Ok);
        let terminals = self.terminals.iter().cloned().map(LandlockRule::Terminal).map(Ok);
        Ok(PlanStep::Landlock {
            abi: self.abi,
            rules: opened.chain(devices).chain(terminals).collect::<std::io::Result<_>>()?,
            sockets: self.sockets,
            lasting: false,
            log: self.log,
        })
    }
}

fn known(path: &PinnedPath) -> (PathBuf, u64, u64) {
    (path.path().to_owned(), path.id().device, path.id().inode)
}

/// Opens a path that must still be what it was.
pub(crate) fn pinned(path: &Path, id: FileId) -> std::io::Result<PinnedPath> {
    let pinned = PinnedPath::open(path)?;
    if pinned.id() == id {
        Ok(pinned)
    } else {
        Err(nix::errno::Errno::ESTALE.into())
    }
}
