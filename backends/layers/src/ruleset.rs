//! The Landlock ruleset of a plan.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, PathFdError, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use nix::errno::Errno;
use ringfence_backend::{LandlockRule, PrepareError};

/// From this ABI on, processes outside the domain can be kept from being signalled: the runner, whose
/// deadline would stand still while it is stopped, among them.
pub(crate) const SIGNALS: u8 = 6;
/// From this ABI on, abstract sockets outside the domain can be closed.
const ABSTRACT_SOCKETS: u8 = 6;
/// From this ABI on, sockets that have a path can be.
const PATH_SOCKETS: u8 = 9;

/// What a ruleset refuses unless a rule grants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handled {
    abi: u8,
    sockets: bool,
}

impl Handled {
    /// What this ABI can refuse, with or without connecting to sockets outside.
    pub(crate) const fn new(abi: u8, sockets: bool) -> Self {
        Self { abi, sockets }
    }

    /// Every access that changes something.
    ///
    /// Reading is not handled: a mode never restricts it. Connecting to path sockets is a door and no file
    /// effect, handled when that is closed.
    fn accesses(self) -> BitFlags<AccessFs> {
        let mut all = AccessFs::from_write(known(self.abi)) & !make_bitflags!(AccessFs::{ResolveUnix});
        if self.sockets && self.abi >= PATH_SOCKETS {
            all |= AccessFs::ResolveUnix;
        }
        all
    }
}

impl Handled {
    /// What processes of the domain cannot reach outside of it.
    fn scopes(self) -> BitFlags<Scope> {
        let mut scopes = BitFlags::EMPTY;
        if self.abi >= SIGNALS {
            scopes |= Scope::Signal;
        }
        if self.sockets && self.abi >= ABSTRACT_SOCKETS {
            scopes |= Scope::AbstractUnixSocket;
        }
        scopes
    }
}

/// The newest ABI that both the kernel and the `landlock` crate know.
fn known(abi: u8) -> ABI {
    match abi {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        _ => ABI::V7,
    }
}

/// How many rulesets are kept. A host runs the same few policies over and over.
const KEPT: usize = 16;

/// One ruleset that was built: what it handles, its rules, and its descriptor.
type Built = (Handled, Vec<LandlockRule>, Arc<OwnedFd>);

/// Rulesets that were built before. A descriptor serves any number of runs, and a rule names
/// files by identity, so a root that was deleted and made again is another rule.
#[derive(Debug, Default)]
pub struct Rulesets(Mutex<VecDeque<Built>>);

impl Rulesets {
    /// The ruleset for these rules, built now or before.
    ///
    /// # Errors
    /// See [`build`].
    pub(crate) fn get(&self, handled: Handled, rules: &[LandlockRule]) -> Result<Arc<OwnedFd>, PrepareError> {
        let mut built = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, fd)) = built.iter().find(|(h, r, _)| *h == handled && r == rules) {
            return Ok(Arc::clone(fd));
        }
        let fd = Arc::new(build(handled, rules)?);
        built.push_back((handled, rules.to_vec(), Arc::clone(&fd)));
        if built.len() > KEPT {
            built.pop_front();
        }
        Ok(fd)
    }
}

/// Builds the ruleset. Every access is demanded: none is left out if the kernel
/// should refuse it.
///
/// # Errors
/// [`PrepareError`] naming the path or call that was refused.
pub(crate) fn build(wanted: Handled, rules: &[LandlockRule]) -> Result<OwnedFd, PrepareError> {
    let (abi, handled) = (wanted.abi, wanted.accesses());
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(handled)
        .and_then(|ruleset| {
            if wanted.scopes().is_empty() {
                Ok(ruleset)
            } else {
                ruleset.scope(wanted.scopes())
            }
        })
        .and_then(Ruleset::create)
        .map_err(|e| refused("the Landlock ruleset", &e))?;
    for rule in rules {
        ruleset = match rule {
            LandlockRule::Everything(root) => {
                // No device node is made, wherever it would stand.
                let handled = handled & !make_bitflags!(AccessFs::{MakeChar | MakeBlock | ResolveUnix});
                let access = if root.is_directory() {
                    handled
                } else {
                    handled & AccessFs::from_file(known(abi))
                };
                add(ruleset, root, access, root.path())?
            }
            LandlockRule::Device(path) => {
                let access = handled & make_bitflags!(AccessFs::{WriteFile | Truncate});
                add_node(ruleset, path, access)?
            }
            LandlockRule::Terminal(path) => {
                let access = handled & make_bitflags!(AccessFs::{WriteFile | Truncate | IoctlDev});
                add_node(ruleset, path, access)?
            }
        };
    }
    let fd: Option<OwnedFd> = ruleset.into();
    fd.ok_or_else(|| PrepareError {
        what: "the Landlock ruleset".to_owned(),
        source: Errno::ENOSYS.into(),
    })
}

fn add(
    ruleset: RulesetCreated,
    fd: impl std::os::fd::AsFd,
    access: BitFlags<AccessFs>,
    path: &Path,
) -> Result<RulesetCreated, PrepareError> {
    ruleset
        .add_rule(PathBeneath::new(fd, access))
        .map_err(|e| refused(&format!("the Landlock rule for {}", path.display()), &e))
}

/// A device that this host does not have needs no grant.
fn add_node(ruleset: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, PrepareError> {
    match PathFd::new(path) {
        Ok(fd) => add(ruleset, fd, access, path),
        Err(PathFdError::OpenCall { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(ruleset),
        Err(PathFdError::OpenCall { source, path, .. }) => Err(PrepareError {
            what: format!("the Landlock rule for {}", path.display()),
            source,
        }),
        Err(other) => Err(PrepareError {
            what: format!("the Landlock rule for {}", path.display()),
            source: std::io::Error::other(other.to_string()),
        }),
    }
}

fn refused(what: &str, error: &RulesetError) -> PrepareError {
    PrepareError {
        what: what.to_owned(),
        source: std::io::Error::other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(abi: u8) -> BitFlags<AccessFs> {
        Handled::new(abi, false).accesses()
    }

    #[test]
    fn sockets_are_closed_with_what_each_abi_has() {
        for abi in 1..=12 {
            let closed = Handled::new(abi, true);
            assert_eq!(closed.accesses().contains(AccessFs::ResolveUnix), abi >= 9);
            assert_eq!(closed.scopes().contains(Scope::AbstractUnixSocket), abi >= 6);
            assert!(!Handled::new(abi, false).scopes().contains(Scope::AbstractUnixSocket));
        }
    }

    #[test]
    fn reading_and_connecting_are_never_handled() {
        for abi in 1..=12 {
            assert!(!of(abi).contains(AccessFs::ReadFile));
            assert!(!of(abi).contains(AccessFs::ReadDir));
            assert!(!of(abi).contains(AccessFs::Execute));
            assert!(!of(abi).contains(AccessFs::ResolveUnix));
        }
    }

    #[test]
    fn each_abi_handles_what_it_can_refuse() {
        assert!(of(1).contains(AccessFs::WriteFile));
        assert!(!of(1).contains(AccessFs::Refer));
        assert!(of(2).contains(AccessFs::Refer));
        assert!(of(3).contains(AccessFs::Truncate));
        assert!(of(5).contains(AccessFs::IoctlDev));
    }
}
