//! Addresses of sockets, and the ways in which variables spell them.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The port of a docker daemon when a URL has none.
const DOCKER_PORT: u16 = 2375;

/// Where a broker may listen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Address {
    /// A path, from the root on.
    Path(PathBuf),
    /// A name in the abstract namespace, without the NUL byte before it.
    Abstract(Vec<u8>),
    /// A port of a machine whose number is known.
    Tcp(SocketAddr),
    /// A port of a machine that has a name, as it was given.
    Named(String),
}

impl Address {
    /// How the address is written. Abstract names begin with `@`, as ss(8) has them.
    pub(super) fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Path(path) => Cow::Borrowed(path.as_os_str().as_bytes()),
            Self::Abstract(name) => Cow::Owned([b"@", name.as_slice()].concat()),
            Self::Tcp(address) => Cow::Owned(format!("tcp://{address}").into_bytes()),
            Self::Named(name) => Cow::Owned(format!("tcp://{name}").into_bytes()),
        }
    }
}

/// A path from the root on. A relative one means another file in each directory.
pub(super) fn path(value: &OsStr) -> Option<Address> {
    let path = PathBuf::from(value);
    path.is_absolute().then_some(Address::Path(path))
}

/// The unix sockets in a list of D-Bus addresses, such as `unix:path=/a,guid=1;unix:abstract=b`.
/// The D-Bus specification has the form: keys and values are escaped with `%`.
pub(super) fn of_bus(value: &OsStr) -> Vec<Address> {
    value
        .as_bytes()
        .split(|byte| *byte == b';')
        .filter_map(|entry| entry.strip_prefix(b"unix:"))
        .flat_map(|pairs| pairs.split(|byte| *byte == b','))
        .filter_map(|pair| {
            if let Some(escaped) = pair.strip_prefix(b"path=") {
                path(&OsString::from_vec(unescaped(escaped)?))
            } else {
                let name = unescaped(pair.strip_prefix(b"abstract=")?)?;
                (!name.is_empty()).then_some(Address::Abstract(name))
            }
        })
        .collect()
}

/// The bytes behind `%` and two digits. Nothing when one of these is none.
fn unescaped(escaped: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.iter();
    while let Some(byte) = rest.next() {
        if *byte == b'%' {
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(*byte);
        }
    }
    Some(bytes)
}

/// The address in a URL such as that of `DOCKER_HOST`. One that needs a program to get there
/// (`ssh://`) is none.
pub(super) fn of_url(value: &OsStr) -> Option<Address> {
    if let Some(socket) = value.as_bytes().strip_prefix(b"unix://") {
        return path(OsStr::from_bytes(socket));
    }
    let machine = value.to_str()?.strip_prefix("tcp://")?;
    let machine = machine.split('/').next().filter(|it| !it.is_empty())?;
    let with_port = match machine.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => machine.to_owned(),
        _ => format!("{machine}:{DOCKER_PORT}"),
    };
    let local = with_port
        .strip_prefix("localhost:")
        .and_then(|port| Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse::<u16>().ok()?))));
    Some(match local.or_else(|| with_port.parse().ok()) {
        Some(address) => Address::Tcp(address),
        None => Address::Named(with_port),
    })
}

/// The path in a value such as that of `TMUX`: what stands before the first comma.
pub(super) fn up_to_comma(value: &OsStr) -> Option<Address> {
    let first = value.as_bytes().split(|byte| *byte == b',').next()?;
    path(OsStr::from_bytes(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> Address {
        Address::Path(path.into())
    }

    #[test]
    fn an_address_of_dbus_is_a_list_with_escapes() {
        let read = |text: &str| of_bus(text.as_ref());
        assert_eq!(read("unix:path=/run/user/0/bus"), [at("/run/user/0/bus")]);
        assert_eq!(read("unix:guid=ab,path=/a%20b%2c"), [at("/a b,")]);
        assert_eq!(
            read("tcp:host=h,port=1;unix:abstract=/tmp/dbus-x,guid=ab;unix:path=/b"),
            [Address::Abstract(b"/tmp/dbus-x".to_vec()), at("/b")]
        );
    }

    #[test]
    fn an_address_of_dbus_that_makes_no_sense_is_none() {
        for text in [
            "",
            "unix:",
            "unix:path=",
            "unix:path=bus",
            "unix:path=/a%2",
            "unix:path=/a%zz",
            "unix:path=/a%+1",
            "unix:abstract=",
            "unix:dir=/tmp",
            "unixexec:path=/bin/sh",
            ";;,,==",
        ] {
            assert_eq!(of_bus(text.as_ref()), [], "{text}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_survive() {
        let odd = OsStr::from_bytes(b"unix:path=/a\xff%fe");
        assert_eq!(of_bus(odd), [Address::Path(OsStr::from_bytes(b"/a\xff\xfe").into())]);
        assert_eq!(
            of_url(OsStr::from_bytes(b"unix:///a\xff")),
            path(OsStr::from_bytes(b"/a\xff"))
        );
        assert_eq!(of_url(OsStr::from_bytes(b"tcp://a\xff")), None);
    }

    #[test]
    fn a_url_has_a_path_a_number_or_a_name() {
        let read = |text: &str| of_url(text.as_ref());
        let tcp = |text: &str| Some(Address::Tcp(text.parse().unwrap()));
        let named = |text: &str| Some(Address::Named(text.to_owned()));
        assert_eq!(read("unix:///run/docker.sock"), Some(at("/run/docker.sock")));
        assert_eq!(read("tcp://127.0.0.1:2376"), tcp("127.0.0.1:2376"));
        assert_eq!(read("tcp://127.0.0.1/x"), tcp("127.0.0.1:2375"));
        assert_eq!(read("tcp://localhost:1"), tcp("127.0.0.1:1"));
        assert_eq!(read("tcp://[::1]:2376"), tcp("[::1]:2376"));
        assert_eq!(read("tcp://[::1]"), tcp("[::1]:2375"));
        assert_eq!(read("tcp://build.example"), named("build.example:2375"));
        assert_eq!(read("tcp://build.example:99999"), named("build.example:99999:2375"));
        for text in ["", "unix://docker.sock", "tcp://", "ssh://u@h", "/run/docker.sock"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn the_path_of_tmux_ends_at_the_comma() {
        assert_eq!(
            up_to_comma("/tmp/tmux-0/default,12,0".as_ref()),
            Some(at("/tmp/tmux-0/default"))
        );
        assert_eq!(up_to_comma("".as_ref()), None);
    }

    #[test]
    fn abstract_names_are_written_with_their_sign() {
        assert_eq!(&*Address::Abstract(b"a\xff".to_vec()).bytes(), b"@a\xff");
    }
}
