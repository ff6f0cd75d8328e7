//! Whether a socket takes a connection. Nothing is sent, and nothing is waited for but a port.

use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};

use super::address::Address;

/// How long a port may take to answer.
const PATIENCE: Duration = Duration::from_millis(300);

/// What is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Somebody listens, and takes a connection.
    Within,
    /// Nobody does, or not from this user.
    Out,
    /// Not tried, and why.
    NotTried(&'static str),
}

/// Tries an address.
pub(super) fn of(address: &Address) -> Reach {
    let within = match address {
        Address::Path(path) => UnixAddr::new(path).is_ok_and(|it| takes(&it)),
        #[cfg(target_os = "linux")]
        Address::Abstract(name) => UnixAddr::new_abstract(name).is_ok_and(|it| takes(&it)),
        #[cfg(not(target_os = "linux"))]
        Address::Abstract(_) => false,
        Address::Tcp(address) => TcpStream::connect_timeout(address, PATIENCE).is_ok(),
        Address::Named(_) => return Reach::NotTried("the machine's name would have to be looked up"),
    };
    if within { Reach::Within } else { Reach::Out }
}

fn takes(address: &UnixAddr) -> bool {
    let Ok(ours) = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None) else {
        return false;
    };
    let closes = fcntl(&ours, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC));
    let waits_not = fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
    if closes.is_err() || waits_not.is_err() {
        return false;
    }
    // unix(7): a connection stands at once, or the listener's queue is full, and that is known
    // only after the right to connect was found.
    matches!(connect(ours.as_raw_fd(), address), Ok(()) | Err(Errno::EAGAIN))
}

/// Gives up this thread's capabilities, as a run does: root without them obeys mode bits.
///
/// Where that fails, what only a capability opens is called within reach as well. That is too much
/// of a warning, and never too little.
pub(super) fn lay_down_capabilities() {
    #[cfg(target_os = "linux")]
    let _ = caps::clear(None, caps::CapSet::Effective);
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::os::unix::net::UnixListener;

    use nix::sys::socket::{Backlog, bind, listen};

    use super::*;

    #[test]
    fn a_listener_is_within_reach_and_gets_no_byte() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert_eq!(of(&Address::Path(path)), Reach::Within);
        let (mut connection, _) = listener.accept().unwrap();
        let mut got = Vec::new();
        connection.read_to_end(&mut got).unwrap();
        assert_eq!(got, b"");
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn what_nobody_listens_on_is_out_of_reach() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        assert_eq!(of(&Address::Path(path)), Reach::Out);
        let file = place.path().join("f");
        std::fs::write(&file, "").unwrap();
        assert_eq!(of(&Address::Path(file)), Reach::Out);
        assert_eq!(of(&Address::Path(place.path().join("none"))), Reach::Out);
        assert_eq!(of(&Address::Path("/a".repeat(100).into())), Reach::Out);
        assert_eq!(of(&Address::Abstract(b"ringfence-nobody-listens".to_vec())), Reach::Out);
    }

    #[test]
    fn a_listener_that_is_too_busy_is_within_reach_and_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("s");
        let address = UnixAddr::new(&path).unwrap();
        let stream = || socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_NONBLOCK, None).unwrap();
        let busy = stream();
        bind(busy.as_raw_fd(), &address).unwrap();
        listen(&busy, Backlog::new(0).unwrap()).unwrap();
        let waiting = stream();
        connect(waiting.as_raw_fd(), &address).unwrap();
        assert_eq!(connect(stream().as_raw_fd(), &address), Err(Errno::EAGAIN));
        assert_eq!(of(&Address::Path(path)), Reach::Within);
    }

    #[test]
    fn a_port_is_tried_and_a_name_is_not_looked_up() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(of(&Address::Tcp(address)), Reach::Within);
        let (mut connection, _) = listener.accept().unwrap();
        let mut got = Vec::new();
        connection.read_to_end(&mut got).unwrap();
        assert_eq!(got, b"");
        drop(listener);
        assert_eq!(of(&Address::Tcp(address)), Reach::Out);
        assert!(matches!(
            of(&Address::Named("build.example:1".to_owned())),
            Reach::NotTried(_)
        ));
    }
}
