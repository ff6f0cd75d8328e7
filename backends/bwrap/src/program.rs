//! Where bubblewrap is looked for, and when it is not started: it runs unconfined.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use ringfence_backend::{HOST_TEMP, PinnedPath, SandboxExecutionPolicy};

/// The directories of the system's, for callers without a PATH.
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin:/run/wrappers/bin:/run/current-system/sw/bin";

/// `/proc/sys/kernel/overflowuid`, which nobody changes.
const UNKNOWN: u32 = 65534;

/// The first program of that name in the directories of a PATH, those of the system's without one. What is no
/// absolute directory depends on where the caller happens to be, and is passed over.
///
/// # Errors
/// Why none is started, in a sentence.
pub(crate) fn find(path: Option<&OsStr>) -> Result<PathBuf, String> {
    let path = path.map_or_else(|| OsString::from(SYSTEM), OsStr::to_owned);
    let found = std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("bwrap"))
        .find(|program| program.is_file());
    let Some(found) = found else {
        return Err(format!(
            "bubblewrap is not installed: there is no bwrap in {}",
            path.display()
        ));
    };
    let settled = PinnedPath::open(&found).map_err(|e| format!("{}: {e}", found.display()))?;
    for path in settled.path().ancestors() {
        let about = std::fs::symlink_metadata(path).map_err(|e| format!("{}: {e}", path.display()))?;
        // What the caller may write, a run of the caller's may have written.
        let systems = is_the_systems(path, about.uid()).map_err(|e| {
            format!(
                "whom {} belongs to cannot be told: /proc/self/uid_map: {e}",
                path.display()
            )
        })?;
        if !systems || about.mode() & 0o022 != 0 {
            return Err(format!(
                "{} is not started, because others than root may write {}; install bubblewrap for the whole system",
                found.display(),
                path.display()
            ));
        }
    }
    Ok(settled.path().to_owned())
}

/// Whether what stands at a path belongs to root, or to somebody whom this user namespace does not know
/// (user_namespaces(7)): nobody in here can have put it there.
fn is_the_systems(path: &Path, owner: u32) -> std::io::Result<bool> {
    if owner == 0 {
        return Ok(true);
    }
    let map = std::fs::read_to_string("/proc/self/uid_map")?;
    let known = |uid: u32| {
        map.lines().any(|line| {
            let mut numbers = line
                .split_ascii_whitespace()
                .filter_map(|word| word.parse::<u64>().ok());
            let (first, length) = (numbers.next(), numbers.nth(1));
            first
                .zip(length)
                .is_some_and(|(first, length)| (first..first + length).contains(&uid.into()))
        })
    };
    // Everybody unknown shows as this one user, who may be known as well.
    let unclear = owner == UNKNOWN && !known(0);
    Ok(!known(owner) || unclear && access(path, AccessFlags::W_OK).is_err())
}

/// The program, unless it lies in a temp area, where every run may have written it.
///
/// # Errors
/// That it does, in a sentence.
pub(crate) fn out_of_temp(program: PathBuf) -> Result<PathBuf, String> {
    if HOST_TEMP.iter().any(|temp| program.starts_with(temp)) {
        return Err(format!(
            "{} lies in a temp area, where runs can write, so it is not started; install it elsewhere",
            program.display()
        ));
    }
    Ok(program)
}

/// Whether some run may have written the program: it lies in the workspace, or where this run may write.
pub(crate) fn is_in_reach(program: &Path, policy: &SandboxExecutionPolicy) -> bool {
    let within = |root: &Path| root != Path::new("/") && program.starts_with(root);
    within(policy.workspace_root().path()) || policy.writable().iter().any(|root| within(root.path()))
}

/// What tells this program from one that is put in its place later.
pub(crate) fn identity(program: &Path) -> Option<String> {
    let about = std::fs::metadata(program).ok()?;
    let changed = (about.ctime(), about.ctime_nsec());
    Some(format!(
        "{}:{}:{}:{}.{}",
        about.dev(),
        about.ino(),
        about.size(),
        changed.0,
        changed.1
    ))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn directory_with_mode(mode: u32) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("bwrap");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, Permissions::from_mode(mode)).unwrap();
        directory
    }

    #[test]
    fn the_first_one_on_the_path_is_meant_and_a_relative_directory_is_passed_over() {
        let own = directory_with_mode(0o755);
        let path = format!("bin:{}:/usr/bin", own.path().display());
        let reason = find(Some(OsStr::new(&path))).unwrap_err();
        assert!(
            reason.starts_with(own.path().join("bwrap").to_str().unwrap()),
            "{reason}"
        );
    }

    #[test]
    fn one_that_others_than_root_may_write_is_not_started_wherever_that_is() {
        for mode in [0o755, 0o777] {
            let open = directory_with_mode(mode);
            let reason = find(Some(open.path().as_os_str())).unwrap_err();
            assert!(reason.contains("others than root may write"), "{reason}");
        }
    }

    #[test]
    fn the_systems_own_is_found() {
        let found = find(Some(OsStr::new("/usr/bin")));
        assert_eq!(found, find(None));
        assert!(found.unwrap().ends_with("bwrap"));
    }

    #[test]
    fn the_absence_of_one_is_said_with_where_it_was_looked_for() {
        let none = tempfile::tempdir().unwrap();
        let reason = find(Some(none.path().as_os_str())).unwrap_err();
        assert!(reason.contains("bubblewrap is not installed") && reason.contains(none.path().to_str().unwrap()));
    }
}
