//! Where a path leads, as the process that names it sees it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::SFlag;
use ringfence_backend::calls::Final;

use super::caller::Caller;
use super::place::{Place, look};
use super::walk::Walk;

impl Caller {
    /// Finds where a path leads that openat2(2) resolves in a way of its own.
    ///
    /// # Errors
    /// What the kernel would say of the path; `EXDEV` for one that ends in a link or in dots, which is
    /// not imitated.
    pub(super) fn resolve_as(&self, descriptor: Option<i32>, path: &[u8], resolve: u64) -> Result<Place, Errno> {
        let base = self.directory(descriptor)?;
        let trimmed = trim(path);
        let cut = trimmed
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |slash| slash + 1);
        let (parent, name) = trimmed.split_at(cut);
        let parent = if parent.is_empty() { &b"."[..] } else { parent };
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let how = OpenHow::new()
            .flags(flags)
            .resolve(ResolveFlag::from_bits_truncate(resolve));
        let parent = openat2(&base, OsStr::from_bytes(parent), how)?;
        let node = look(&parent, name)?;
        let link = node.as_ref().is_some_and(|node| node.kind() == SFlag::S_IFLNK);
        if link || matches!(name, b"" | b"." | b"..") {
            return Err(Errno::EXDEV);
        }
        Ok(Place {
            parent,
            name: name.to_vec(),
            node,
            slash: path.ends_with(b"/"),
        })
    }

    /// Finds where a path leads.
    ///
    /// # Errors
    /// What the kernel would say of the path on its way to the last name: that is the call's own
    /// failure and nobody's refusal.
    pub(super) fn resolve(&self, descriptor: Option<i32>, path: &[u8], last: Final) -> Result<Place, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        let absolute = path[0] == b'/';
        let base = if absolute {
            self.own("root")?
        } else {
            self.directory(descriptor)?
        };
        let trimmed = trim(path);
        let (parent, name) = trimmed
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or((&b"."[..], trimmed), |slash| {
                (
                    if slash == 0 { &b"."[..] } else { &trimmed[..slash] },
                    &trimmed[slash + 1..],
                )
            });
        let parent = parent.strip_prefix(b"/").unwrap_or(parent);
        // The common case, in one call: no link on the way, so nothing depends on who looks.
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        let climbs = trimmed.split(|byte| *byte == b'/').any(|part| part == b"..");
        let plain = !matches!(name, b"" | b".") && !climbs && !parent.starts_with(b"/");
        if plain && let Ok(parent) = openat2(&base, OsStr::from_bytes(parent), how) {
            let node = look(&parent, name)?;
            let link = node.as_ref().is_some_and(|node| node.kind() == SFlag::S_IFLNK);
            if !(link && last == Final::Follow) {
                return Ok(Place {
                    parent,
                    name: name.to_vec(),
                    node,
                    slash: path.ends_with(b"/"),
                });
            }
        }
        let place = Walk::new(self, self.own("root")?).run(base, path, last)?;
        Ok(Place {
            slash: path.ends_with(b"/"),
            ..place
        })
    }
}

/// A path without the slashes at its end, which only say that a directory is meant.
fn trim(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    &path[..end]
}

#[cfg(test)]
mod tests {
    use super::super::place::Where;
    use super::*;
    use ringfence_backend::PinnedPath;
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    /// This process, seen as another would see it.
    fn me() -> Caller {
        Caller::new(nix::unistd::gettid().as_raw())
    }

    fn found(path: &[u8], last: Final) -> Option<PathBuf> {
        match me().resolve(None, path, last).ok()?.path() {
            Where::At(path) => Some(path),
            _ => None,
        }
    }

    #[test]
    fn a_path_leads_where_the_kernel_would_take_it() {
        let directory = tempfile::tempdir().unwrap();
        let top = PinnedPath::open(directory.path()).unwrap().path().to_owned();
        fs::create_dir_all(top.join("real/deep")).unwrap();
        fs::write(top.join("real/f"), "x").unwrap();
        symlink("real/deep", top.join("link")).unwrap();
        symlink(top.join("real/f"), top.join("absolute")).unwrap();
        symlink("nowhere", top.join("dangling")).unwrap();
        let at = |name: &str| top.join(name).as_os_str().as_bytes().to_vec();
        for (path, last, leads) in [
            ("real/f", Final::Follow, "real/f"),
            ("link/../f", Final::Follow, "real/f"),
            ("absolute", Final::Follow, "real/f"),
            ("absolute", Final::Stay, "absolute"),
            ("dangling", Final::Follow, "nowhere"),
            ("link/new", Final::Stay, "real/deep/new"),
            ("real//deep/./x", Final::Stay, "real/deep/x"),
        ] {
            assert_eq!(found(&at(path), last), Some(top.join(leads)), "{path}");
        }
    }

    #[test]
    fn links_that_loop_and_paths_through_files_lead_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        symlink("b", directory.path().join("a")).unwrap();
        symlink("a", directory.path().join("b")).unwrap();
        fs::write(directory.path().join("f"), "x").unwrap();
        let at = |name: &str| directory.path().join(name).as_os_str().as_bytes().to_vec();
        assert_eq!(
            me().resolve(None, &at("a"), Final::Follow).map(|_| ()),
            Err(Errno::ELOOP)
        );
        assert_eq!(
            me().resolve(None, &at("f/x"), Final::Follow).map(|_| ()),
            Err(Errno::ENOTDIR)
        );
        assert_eq!(me().resolve(None, b"", Final::Follow).map(|_| ()), Err(Errno::ENOENT));
    }

    #[test]
    fn proc_self_is_the_callers() {
        let mine = format!("/proc/{}/comm", std::process::id());
        assert_eq!(found(b"/proc/self/comm", Final::Follow), Some(mine.into()));
    }

    #[test]
    fn a_descriptor_in_proc_leads_to_what_it_refers_to() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = PinnedPath::open(file.path()).unwrap().path().to_owned();
        let fd = file.as_file().as_raw_fd();
        assert_eq!(found(format!("/dev/fd/{fd}").as_bytes(), Final::Follow), Some(path));
    }
}
