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

/// Every access that changes something, as far as this ABI can refuse it.
///
/// Reading is not handled: a mode never restricts it. Neither is connecting to path sockets
/// (ABI 9), which is a door and no file effect.
fn handled(abi: u8) -> BitFlags<AccessFs> {
    AccessFs::from_write(known(abi)) & !make_bitflags!(AccessFs::{ResolveUnix})
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

/// One ruleset that was built: its ABI and rules, and its descriptor.
type Built = (u8, Vec<LandlockRule>, Arc<OwnedFd>);

/// Rulesets that were built before. A descriptor serves any number of runs, and a rule names
/// files by identity, so a root that was deleted and made again is another rule.
#[derive(Debug, Default)]
pub(crate) struct Rulesets(Mutex<VecDeque<Built>>);

impl Rulesets {
    /// The ruleset for these rules, built now or before.
    ///
    /// # Errors
    /// See [`build`].
    pub(crate) fn get(&self, abi: u8, rules: &[LandlockRule]) -> Result<Arc<OwnedFd>, PrepareError> {
        let mut built = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, fd)) = built.iter().find(|(a, r, _)| *a == abi && r == rules) {
            return Ok(Arc::clone(fd));
        }
        let fd = Arc::new(build(abi, rules)?);
        built.push_back((abi, rules.to_vec(), Arc::clone(&fd)));
        if built.len() > KEPT {
            built.pop_front();
        }
        Ok(fd)
    }
}

/// Builds the ruleset. Every access of the ABI is demanded: none is left out if the kernel
/// should refuse it.
///
/// # Errors
/// [`PrepareError`] naming the path or call that was refused.
fn build(abi: u8, rules: &[LandlockRule]) -> Result<OwnedFd, PrepareError> {
    let handled = handled(abi);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(handled)
        .and_then(|ruleset| {
            if abi >= SIGNALS {
                ruleset.scope(Scope::Signal)
            } else {
                Ok(ruleset)
            }
        })
        .and_then(Ruleset::create)
        .map_err(|e| refused("the Landlock ruleset", &e))?;
    for rule in rules {
        ruleset = match rule {
            LandlockRule::Everything(root) => {
                // No device node is made, wherever it would stand.
                let handled = handled & !make_bitflags!(AccessFs::{MakeChar | MakeBlock});
                let access = if root.is_directory() {
                    handled
                } else {
                    handled & AccessFs::from_file(known(abi))
                };
                add(ruleset, root, access, root.path())?
            }
            LandlockRule::Device(path) => {
                let access = handled & make_bitflags!(AccessFs::{WriteFile | Truncate});
                add_node(ruleset, Path::new(path), access)?
            }
            LandlockRule::Terminal(path) => {
                let access = handled & make_bitflags!(AccessFs::{WriteFile | Truncate | IoctlDev});
                add_node(ruleset, Path::new(path), access)?
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

    #[test]
    fn reading_and_connecting_are_never_handled() {
        for abi in 1..=12 {
            let handled = handled(abi);
            assert!(!handled.contains(AccessFs::ReadFile));
            assert!(!handled.contains(AccessFs::ReadDir));
            assert!(!handled.contains(AccessFs::Execute));
            assert!(!handled.contains(AccessFs::ResolveUnix));
        }
    }

    #[test]
    fn each_abi_handles_what_it_can_refuse() {
        assert!(handled(1).contains(AccessFs::WriteFile));
        assert!(!handled(1).contains(AccessFs::Refer));
        assert!(handled(2).contains(AccessFs::Refer));
        assert!(handled(3).contains(AccessFs::Truncate));
        assert!(handled(5).contains(AccessFs::IoctlDev));
    }
}
