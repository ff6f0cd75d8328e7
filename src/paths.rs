//! Paths of which not everything need exist.

use std::io;
use std::path::{Path, PathBuf};

use ringfence_backend::PinnedPath;

/// A path that is canonical as far as it exists.
#[must_use]
pub fn settled(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    for existing in path.ancestors() {
        match PinnedPath::open(existing) {
            Ok(pinned) => {
                return rest
                    .iter()
                    .rev()
                    .fold(pinned.path().to_owned(), |sum, name| sum.join(name));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => rest.extend(existing.file_name()),
            Err(_) => break,
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_canonical_as_far_as_it_exists() {
        let directory = tempfile::tempdir().unwrap();
        let real = PinnedPath::open(directory.path()).unwrap().path().to_owned();
        std::os::unix::fs::symlink(&real, real.join("link")).unwrap();
        assert_eq!(settled(&real.join("link")), real);
        assert_eq!(settled(&real.join("link/a/b")), real.join("a/b"));
        assert_eq!(settled(Path::new("/no-such-place/a")), Path::new("/no-such-place/a"));
    }
}
