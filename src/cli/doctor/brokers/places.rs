//! From the places where brokers are known to listen to addresses on this host.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::address::{self, Address};

/// How many names of a directory are looked at.
const NAMES: usize = 10_000;
/// How much of the kernel's list of sockets is read, in bytes.
const LIST: u64 = 4 << 20;

/// A place where a broker may listen.
#[derive(Debug)]
pub(super) enum Place {
    /// A path. It may begin with `$NAME`, a variable that holds an absolute path, and a part of it
    /// may have one `*`. What is found by one has to be a socket, or a directory on the way, itself:
    /// a command of an earlier run may have left a link in the temp area.
    Path(&'static str),
    /// What begins like this in the abstract namespace.
    Abstract(&'static str),
    /// A variable that holds addresses of D-Bus.
    Bus(&'static str),
    /// A variable that holds a URL.
    Url(&'static str),
    /// A variable that holds a path and, after a comma, more.
    UpToComma(&'static str),
}

/// What a place leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) addresses: Vec<Address>,
    /// Whether all of it was looked at.
    pub(super) complete: bool,
}

/// What places depend on.
pub(super) struct Places<'a> {
    variable: &'a dyn Fn(&str) -> Option<OsString>,
    user: u32,
    /// How many names of a directory are looked at.
    names: usize,
}

impl<'a> Places<'a> {
    /// Places of this user, in this environment.
    pub(super) fn new(variable: &'a dyn Fn(&str) -> Option<OsString>, user: u32) -> Self {
        Self {
            variable,
            user,
            names: NAMES,
        }
    }

    /// The addresses that a place stands for.
    pub(super) fn addresses(&self, place: &Place) -> Found {
        let value = |name: &str| (self.variable)(name);
        let all = |addresses| Found {
            addresses,
            complete: true,
        };
        match place {
            Place::Path(pattern) => self.paths(pattern),
            Place::Abstract(start) => all(abstract_names(start.as_bytes())),
            Place::Bus(name) => all(value(name).map(|it| address::of_bus(&it)).unwrap_or_default()),
            Place::Url(name) => all(value(name).and_then(|it| address::of_url(&it)).into_iter().collect()),
            Place::UpToComma(name) => all(value(name)
                .and_then(|it| address::up_to_comma(&it))
                .into_iter()
                .collect()),
        }
    }

    fn paths(&self, pattern: &str) -> Found {
        let (bases, rest) = match pattern.strip_prefix('$') {
            Some(from_variable) => {
                let (name, rest) = from_variable.split_once('/').unwrap_or((from_variable, ""));
                (self.directories(name), rest)
            }
            None => (vec![PathBuf::from("/")], pattern.trim_start_matches('/')),
        };
        let mut complete = true;
        let addresses = bases
            .into_iter()
            .flat_map(|base| matches(base, rest, self.names, &mut complete))
            .map(Address::Path)
            .collect();
        Found { addresses, complete }
    }

    /// The value of a variable, when it is absolute. The runtime directory is found without its
    /// variable as well, by whoever knows the user's number.
    fn directories(&self, name: &str) -> Vec<PathBuf> {
        let value = (self.variable)(name).map(PathBuf::from).filter(|it| it.is_absolute());
        let usual = (name == "XDG_RUNTIME_DIR").then(|| PathBuf::from(format!("/run/user/{}", self.user)));
        value.into_iter().chain(usual).collect()
    }
}

/// The paths beneath `base` that match.
fn matches(base: PathBuf, pattern: &str, names: usize, complete: &mut bool) -> Vec<PathBuf> {
    let mut found = vec![base];
    let mut starred = false;
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        if starred {
            found.retain(|path| is_itself(path, fs::FileType::is_dir));
        }
        found = match part.split_once('*') {
            Some((start, end)) => {
                starred = true;
                found
                    .iter()
                    .flat_map(|path| children(path, (start, end), names, complete))
                    .collect()
            }
            None => found.into_iter().map(|path| path.join(part)).collect(),
        };
    }
    if starred {
        found.retain(|path| is_itself(path, fs::FileType::is_socket));
        found.sort();
    }
    found
}

fn is_itself(path: &Path, what: fn(&fs::FileType) -> bool) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| what(&about.file_type()))
}

/// What a directory has whose name begins and ends like this, among its first names.
fn children(directory: &Path, (start, end): (&str, &str), names: usize, complete: &mut bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut entries = entries.filter_map(Result::ok);
    let found = entries
        .by_ref()
        .take(names)
        .filter(|entry| fits(&entry.file_name(), start.as_bytes(), end.as_bytes()))
        .map(|entry| entry.path())
        .collect();
    *complete &= entries.next().is_none();
    found
}

fn fits(name: &OsStr, start: &[u8], end: &[u8]) -> bool {
    let rest = name.as_bytes().strip_prefix(start);
    rest.is_some_and(|rest| rest.ends_with(end))
}

/// What the kernel lists in /proc/net/unix, where abstract names begin with `@`.
fn abstract_names(start: &[u8]) -> Vec<Address> {
    let mut list = Vec::new();
    let read = File::open("/proc/net/unix").and_then(|file| file.take(LIST).read_to_end(&mut list));
    if read.is_err() {
        return Vec::new();
    }
    let mut names: Vec<_> = list
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.iter().position(|byte| *byte == b'@').map(|at| &line[at + 1..]))
        .filter(|name| name.starts_with(start))
        .map(|name| Address::Abstract(name.to_vec()))
        .collect();
    // A socket that listens is there once, and each of its connections once more.
    names.sort_by(|a, b| a.bytes().cmp(&b.bytes()));
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn paths(base: &Path, pattern: &'static str) -> Vec<PathBuf> {
        let variable = |name: &str| (name == "BASE").then(|| base.as_os_str().to_owned());
        let found = Places::new(&variable, 1234).addresses(&Place::Path(pattern));
        assert!(found.complete);
        let path = |address| match address {
            Address::Path(path) => path,
            other => panic!("{other:?}"),
        };
        found.addresses.into_iter().map(path).collect()
    }

    #[test]
    fn a_star_finds_sockets_and_follows_no_link() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path();
        for name in ["ssh-a", "ssh-b", "other"] {
            fs::create_dir(base.join(name)).unwrap();
            let _ = UnixListener::bind(base.join(name).join("agent.1")).unwrap();
        }
        fs::write(base.join("ssh-a/agent.2"), "a file").unwrap();
        symlink(base.join("other/agent.1"), base.join("ssh-a/agent.3")).unwrap();
        symlink(base.join("other"), base.join("ssh-c")).unwrap();
        assert_eq!(
            paths(base, "$BASE/ssh-*/agent.*"),
            ["ssh-a/agent.1", "ssh-b/agent.1"].map(|it| base.join(it))
        );
    }

    #[test]
    fn a_directory_with_more_names_than_are_looked_at_is_not_complete() {
        let place = tempfile::tempdir().unwrap();
        let variable = |_: &str| Some(place.path().as_os_str().to_owned());
        let complete = || {
            let mut places = Places::new(&variable, 0);
            places.names = 3;
            places.addresses(&Place::Path("$BASE/x*")).complete
        };
        for name in ["a", "b", "c"] {
            File::create(place.path().join(name)).unwrap();
        }
        assert!(complete());
        File::create(place.path().join("one-more")).unwrap();
        assert!(!complete());
    }

    #[test]
    fn a_star_in_a_variable_is_a_plain_character() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().join("*");
        fs::create_dir(place.path().join("a")).unwrap();
        let _ = UnixListener::bind(place.path().join("a/s")).unwrap();
        assert_eq!(paths(&base, "$BASE/*"), Vec::<PathBuf>::new());
        assert_eq!(paths(&base, "$BASE"), [base]);
    }

    #[test]
    fn a_relative_variable_stands_for_nothing() {
        assert_eq!(paths(Path::new("run"), "$BASE/bus"), Vec::<PathBuf>::new());
        assert_eq!(paths(Path::new(""), "$BASE"), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_runtime_directory_is_found_without_its_variable() {
        assert_eq!(
            paths(Path::new("/"), "$XDG_RUNTIME_DIR/bus"),
            [Path::new("/run/user/1234/bus")]
        );
    }
}
