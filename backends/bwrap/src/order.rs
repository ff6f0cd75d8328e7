//! What the launcher is told of the boundary: what it must find, and what it adds.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::os::fd::RawFd;
use std::path::Path;

use ringfence_backend::{Door, FileId, LandlockRule, Observe, PinnedPath, PlanStep, PrepareError};
use serde::{Deserialize, Serialize};

use crate::arguments::NODES;

/// The order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The mounts of the runner, in which the launcher must not find itself.
    pub(crate) outside: Option<(u64, u64)>,
    /// Whether the launcher seals what it stands in.
    pub(crate) seal: bool,
    /// Whether that is in a user namespace of its own.
    pub(crate) user: bool,
    /// What must stand at each path: device and inode.
    pub(crate) found: Vec<(Name, u64, u64)>,
    /// Where mounts may be writable.
    pub(crate) writable: Vec<Name>,
    /// Where they may not be, inside those.
    pub(crate) read_only: Vec<Name>,
    /// The file in whose place another is shown.
    pub(crate) replaced: Option<Name>,
    /// Device nodes whose mounts may be writable, because nobody could make them otherwise.
    pub(crate) nodes: Vec<Name>,
    /// Devices that are shown under names of their own.
    pub(crate) shown: Vec<Name>,
    pub(crate) landlock: Option<Landlock>,
    pub(crate) filters: Vec<Filter>,
    /// The runner's process, for a trial.
    pub(crate) runner: Option<RawFd>,
}

/// A path, every byte of which travels: serde takes a `PathBuf` for text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Name(OsString);

impl Deref for Name {
    type Target = Path;

    fn deref(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl<P: AsRef<OsStr> + ?Sized> From<&P> for Name {
    fn from(path: &P) -> Self {
        Self(path.as_ref().to_owned())
    }
}

/// A Landlock domain.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Landlock {
    abi: u8,
    sockets: bool,
    log: bool,
    opened: Vec<(Name, u64, u64)>,
    devices: Vec<Name>,
    terminals: Vec<Name>,
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
            outside: mount_namespace().ok(),
            runner,
            ..Self::default()
        };
        for step in steps {
            match step {
                PlanStep::UserNamespace => order.user = true,
                PlanStep::Bubblewrap { sealed, .. } => {
                    order.seal = *sealed;
                    if !*sealed {
                        order.nodes.extend(NODES.map(Name::from));
                    }
                }
                PlanStep::Writable(root) | PlanStep::Held(root) => {
                    order.found.push(known(root));
                    order.writable.push(root.path().into());
                }
                PlanStep::Shown { from, at } => {
                    order
                        .found
                        .push((at.as_path().into(), from.id().device, from.id().inode));
                    order.writable.push(at.as_path().into());
                }
                PlanStep::ShownDevice { at, .. } => {
                    order.shown.push(at.as_path().into());
                    if !order.nodes.is_empty() {
                        order.nodes.push(at.as_path().into());
                    }
                }
                PlanStep::Protected(path) => {
                    order.found.push(known(path));
                    order.read_only.push(path.path().into());
                }
                PlanStep::Replaced { by, at } => {
                    order.found.push((at.as_path().into(), by.id().device, by.id().inode));
                    order.replaced = Some(at.as_path().into());
                    order.read_only.push(at.as_path().into());
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

    /// Whether neither a domain nor a user namespace keeps the command from processes that it can see.
    pub(crate) fn stands_alone(&self) -> bool {
        self.landlock.is_none() && !self.user
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
                LandlockRule::Device(path) => landlock.devices.push(path.as_path().into()),
                LandlockRule::Terminal(path) => landlock.terminals.push(path.as_path().into()),
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
            let known = found.iter().find(|it| *it.path() == **path && it.id() == id);
            known
                .cloned()
                .map_or_else(|| pinned(path, id), Ok)
                .map(LandlockRule::Everything)
        });
        let devices = self.devices.iter().map(|at| Ok(LandlockRule::Device(at.to_path_buf())));
        let terminals = self
            .terminals
            .iter()
            .map(|at| Ok(LandlockRule::Terminal(at.to_path_buf())));
        Ok(PlanStep::Landlock {
            abi: self.abi,
            rules: opened.chain(devices).chain(terminals).collect::<std::io::Result<_>>()?,
            sockets: self.sockets,
            lasting: false,
            log: self.log,
        })
    }
}

fn known(path: &PinnedPath) -> (Name, u64, u64) {
    (path.path().into(), path.id().device, path.id().inode)
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

/// The mounts of the calling process, as namespaces(7) tells them apart: device and inode.
///
/// # Errors
/// The operating system's.
pub(crate) fn mount_namespace() -> nix::Result<(u64, u64)> {
    let about = nix::sys::stat::stat("/proc/thread-self/ns/mnt")?;
    Ok((about.st_dev, about.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_any_bytes_arrives_as_it_was_sent() {
        use std::os::unix::ffi::OsStrExt;
        let odd = OsStr::from_bytes(b"/a b/\xff\xfe\n\\");
        let order = Order {
            writable: vec![odd.into()],
            ..Order::default()
        };
        let arrived = Order::decode(&order.encode().unwrap()).unwrap();
        assert_eq!(&*arrived.writable[0], Path::new(odd));
    }
}
