//! Brokers: programs outside of a run that would act for a command, over a socket within its reach.
//!
//! What a broker does for a command is outside of the run, so no mode governs it. Within reach is
//! what takes a connection, with the rights that a confined command would have. Nothing is ever
//! sent: the connection is closed as soon as it stands.

mod address;
mod places;
mod reach;
mod table;

use std::collections::HashSet;
use std::env;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::geteuid;
use ringfence::Door;
use serde::Serialize;

use super::twin;
use address::Address;
use places::Places;
use reach::Reach;
use table::KINDS;

/// How long all of it may take: a path can lie on a file system that no longer answers.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many are listed. Whoever can make sockets in the temp area could make any number.
const LISTED: usize = 100;

const NO_UNIX_SOCKETS: &str = "close the door with `--unix-sockets none`";
const NO_NETWORK: &str = "close the door with `--network none`";
const WITHOUT_UNIX_SOCKETS: &str = "a command then makes no unix sockets but pairs";
const WITHOUT_NETWORK: &str = "a command then has no network";

/// One broker.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BrokerRow {
    pub(super) broker: &'static str,
    /// A path; `@` and a name in the abstract namespace; or a URL.
    pub(super) address: String,
    /// The same in base64, when it is no UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    address_bytes: Option<String>,
    /// Absent when it was not tried.
    pub(super) reachable: Option<bool>,
    /// Why it was not tried.
    pub(super) detail: Option<&'static str>,
    /// The door that leads there, in the word of `notConfined`.
    door: Door,
    /// What a command could have it do.
    pub(super) does: &'static str,
    /// What the advice costs.
    pub(super) cost: &'static str,
    /// What to do.
    pub(super) advice: &'static str,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Brokers {
    pub(super) rows: Vec<BrokerRow>,
    /// Whether every place was asked.
    pub(super) complete: bool,
}

/// What the thread that asks has to say.
enum News {
    Found(BrokerRow),
    /// Some places were not asked.
    LeftOut,
}

/// Asks every known place, for [`PATIENCE`] at most.
pub(super) fn search() -> Brokers {
    let mut found = Brokers {
        rows: Vec::new(),
        complete: true,
    };
    let (tell, told) = channel();
    // A thread of its own, which can be left behind, and whose capabilities are its own.
    let asking = thread::Builder::new().spawn(move || {
        reach::lay_down_capabilities();
        ask(&Places::new(&|name| env::var_os(name), geteuid().as_raw()), &tell);
    });
    if asking.is_err() {
        found.complete = false;
        return found;
    }
    let end = Instant::now() + PATIENCE;
    loop {
        match told.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(News::Found(row)) if found.rows.len() < LISTED => found.rows.push(row),
            Ok(_) => found.complete = false,
            Err(RecvTimeoutError::Disconnected) => return found,
            Err(RecvTimeoutError::Timeout) => {
                found.complete = false;
                return found;
            }
        }
    }
}

fn ask(places: &Places<'_>, tell: &Sender<News>) {
    let mut seen = HashSet::new();
    for kind in KINDS {
        for place in kind.places {
            let found = places.addresses(place);
            let mut news: Vec<_> = found
                .addresses
                .into_iter()
                .filter(|address| seen.insert(Identity::of(address)))
                .filter_map(|address| Some(News::Found(row(kind.name, kind.does, &address, reach::of(&address))?)))
                .collect();
            if !found.complete {
                news.push(News::LeftOut);
            }
            // Nobody listens any longer once the time is over.
            if news.into_iter().any(|it| tell.send(it).is_err()) {
                return;
            }
        }
    }
}

/// What an address leads to: many paths can lead to one socket, through links.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    File(u64, u64),
    Other(Address),
}

impl Identity {
    fn of(address: &Address) -> Self {
        match address {
            Address::Path(path) => std::fs::metadata(path).ok().map(|it| Self::File(it.dev(), it.ino())),
            _ => None,
        }
        .unwrap_or_else(|| Self::Other(address.clone()))
    }
}

/// The row of a broker that is not known to be out of reach.
fn row(broker: &'static str, does: &'static str, address: &Address, reach: Reach) -> Option<BrokerRow> {
    let (reachable, detail) = match reach {
        Reach::Within => (Some(true), None),
        Reach::NotTried(why) => (None, Some(why)),
        Reach::Out => return None,
    };
    let (door, advice, cost) = match address {
        Address::Path(_) | Address::Abstract(_) => (Door::UnixSockets, NO_UNIX_SOCKETS, WITHOUT_UNIX_SOCKETS),
        Address::Tcp(_) | Address::Named(_) => (Door::Network, NO_NETWORK, WITHOUT_NETWORK),
    };
    let bytes = address.bytes();
    Some(BrokerRow {
        broker,
        address: String::from_utf8_lossy(&bytes).into_owned(),
        address_bytes: twin(&bytes),
        reachable,
        detail,
        door,
        does,
        cost,
        advice,
    })
}
