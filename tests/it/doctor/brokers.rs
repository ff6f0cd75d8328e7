//! Brokers within reach.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringfence::SandboxMode::WorkspaceWrite;
use serde_json::Value;

use super::{doctor, document, rows};
use crate::support::{Case, World, for_each_user};

/// Where the sockets of these tests are.
const RUNTIME: (&str, &str) = ("XDG_RUNTIME_DIR", "$OUT/run");

/// A socket that listens, and that everybody may connect to.
fn listener(path: &Path) -> UnixListener {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let listener = UnixListener::bind(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    // Whoever did not connect is a failure here, and nothing to wait for.
    listener.set_nonblocking(true).unwrap();
    listener
}

/// How many connected, each without sending a byte.
fn silent_guests(listener: &UnixListener) -> usize {
    let mut guests = 0;
    loop {
        match listener.accept() {
            Ok((mut guest, _)) => {
                let mut sent = Vec::new();
                guest.set_nonblocking(true).unwrap();
                guest.read_to_end(&mut sent).expect("a connection that was closed");
                assert_eq!(sent, b"");
                guests += 1;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return guests,
            Err(error) => panic!("{error}"),
        }
    }
}

fn at<'a>(document: &'a Value, path: &Path) -> Option<&'a Value> {
    let address = path.to_str().unwrap();
    rows(document, "brokers").iter().find(|row| row["address"] == address)
}

fn runtime(world: &World, path: &str) -> PathBuf {
    world.outside("run").join(path)
}

#[test]
fn a_broker_that_listens_is_listed_and_gets_no_byte_and_a_dead_one_is_not() {
    for_each_user(|world| {
        let podman = runtime(world, "podman/podman.sock");
        let alive = listener(&podman);
        let bus = runtime(world, "bus");
        drop(listener(&bus));
        let file = runtime(world, "docker.sock");
        fs::write(&file, "no socket").unwrap();

        let document = document(world, &[], &[], &[RUNTIME]);
        let row = at(&document, &podman).unwrap_or_else(|| panic!("not listed: {document}"));
        assert_eq!((&row["broker"], &row["reachable"]), (&"podman".into(), &true.into()));
        assert_eq!(row["door"], "unix-sockets");
        assert!(row["does"].as_str().unwrap().contains("start containers"), "{row}");
        assert!(row["advice"].as_str().unwrap().contains("--unix-sockets none"), "{row}");
        assert!(row["cost"].is_string(), "{row}");
        assert_eq!(silent_guests(&alive), 1);
        assert!(
            at(&document, &bus).is_none() && at(&document, &file).is_none(),
            "{document}"
        );
        assert!(document["brokersComplete"].is_boolean(), "{document}");
    });
}

#[test]
fn what_is_listed_is_what_a_command_reaches_and_the_advice_closes_it() {
    for_each_user(|world| {
        let path = runtime(world, "systemd/private");
        let broker = listener(&path);
        assert!(at(&document(world, &[], &[], &[RUNTIME]), &path).is_some());
        assert_eq!(silent_guests(&broker), 1);
        let ask = "import socket\ntry: socket.socket(socket.AF_UNIX).connect('$OUT/run/systemd/private'); print('reached')\n\
            except OSError as error: print(error.strerror)";
        let case = |options: &[&str]| {
            let case = Case::new(WorkspaceWrite).options(options.iter().copied());
            case.argv(["python3", "-c", ask]).run_in(world).stdout().to_owned()
        };
        assert_eq!(case(&[]), "reached\n");
        assert_eq!(case(&["--unix-sockets", "none"]), "Permission denied\n");
    });
}

#[test]
fn a_socket_that_only_a_capability_opens_is_not_within_reach() {
    for_each_user(|world| {
        // Closed to everybody. Root's capabilities would open it, and a command of root's has none.
        let path = runtime(world, "bus");
        let broker = listener(&path);
        fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
        let document = document(world, &[], &[], &[RUNTIME]);
        assert!(at(&document, &path).is_none(), "{document}");
        assert_eq!(silent_guests(&broker), 0);
    });
}

#[test]
fn addresses_are_found_in_variables_however_they_are_spelt() {
    for_each_user(|world| {
        let sockets: Vec<_> = ["bus one", "agent", "docker", "code", "tmux"]
            .into_iter()
            .map(|name| (runtime(world, name), listener(&runtime(world, name))))
            .collect();
        let document = document(
            world,
            &[],
            &[],
            &[
                (
                    "DBUS_SESSION_BUS_ADDRESS",
                    "unix:abstract=none;unix:path=$OUT/run/bus%20one,guid=1",
                ),
                ("SSH_AUTH_SOCK", "$OUT/run/agent"),
                ("DOCKER_HOST", "unix://$OUT/run/docker"),
                ("VSCODE_IPC_HOOK_CLI", "$OUT/run/code"),
                ("TMUX", "$OUT/run/tmux,12,0"),
            ],
        );
        let kinds: Vec<_> = sockets
            .iter()
            .map(|(path, _)| &at(&document, path).unwrap()["broker"])
            .collect();
        assert_eq!(kinds, ["session D-Bus", "ssh-agent", "docker", "VS Code", "tmux"]);
        for (_, socket) in &sockets {
            assert_eq!(silent_guests(socket), 1);
        }
    });
}

#[test]
fn a_socket_with_two_names_is_asked_and_listed_once() {
    for_each_user(|world| {
        let path = runtime(world, "bus");
        let broker = listener(&path);
        std::os::unix::fs::symlink(&path, world.outside("link")).unwrap();
        let link = ("DBUS_SESSION_BUS_ADDRESS", "unix:path=$OUT/link");
        let document = document(world, &[], &[], &[RUNTIME, link]);
        assert!(at(&document, &world.outside("link")).is_some(), "{document}");
        assert!(at(&document, &path).is_none(), "{document}");
        assert_eq!(silent_guests(&broker), 1);
    });
}

#[test]
fn a_name_in_the_abstract_namespace_is_a_broker_as_well() {
    for_each_user(|world| {
        let name = format!("ringfence-{}", world.workspace().display());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let broker = UnixListener::bind_addr(&address).unwrap();
        broker.set_nonblocking(true).unwrap();
        let bus = format!("unix:abstract={name}");
        let document = document(world, &[], &[], &[("DBUS_SESSION_BUS_ADDRESS", &bus)]);
        assert!(at(&document, Path::new(&format!("@{name}"))).is_some(), "{document}");
        assert_eq!(silent_guests(&broker), 1);
    });
}

#[test]
fn a_daemon_on_a_port_is_behind_the_other_door_and_no_name_is_looked_up() {
    for_each_user(|world| {
        let daemon = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("tcp://{}", daemon.local_addr().unwrap());
        let found = |url: &str| {
            let document = document(world, &[], &[], &[("DOCKER_HOST", url)]);
            at(&document, Path::new(url)).cloned()
        };
        let row = found(&url).unwrap();
        assert_eq!((&row["reachable"], &row["door"]), (&true.into(), &"network".into()));
        assert!(row["advice"].as_str().unwrap().contains("--network none"), "{row}");
        let mut sent = Vec::new();
        daemon.accept().unwrap().0.read_to_end(&mut sent).unwrap();
        assert_eq!(sent, b"");
        drop(daemon);
        assert_eq!(found(&url), None);
        let named = found("tcp://docker.example:2376").unwrap();
        assert_eq!(named["reachable"], Value::Null, "{named}");
        assert!(named["detail"].is_string(), "{named}");
    });
}

#[test]
fn odd_bytes_in_a_name_are_shown_safely_and_kept_beside() {
    for_each_user(|world| {
        let path = world
            .outside("run")
            .join(std::ffi::OsStr::from_bytes(b"wayland-\xff\x1b[2J\n"));
        let broker = listener(&path);
        let words = doctor(world, &[], &[], &[RUNTIME]);
        assert!(!words.stdout().contains('\u{1b}'), "{words}");
        assert!(words.stdout().contains("wayland-\u{fffd}\\u{1b}[2J\\n: "), "{words}");
        let document = document(world, &[], &[], &[RUNTIME]);
        let row = rows(&document, "brokers")
            .iter()
            .find(|row| row["broker"] == "Wayland")
            .unwrap();
        let twin = STANDARD.encode(path.as_os_str().as_bytes());
        assert_eq!(row["addressBytes"], twin, "{row}");
        assert_eq!(silent_guests(&broker), 2);
    });
}

#[test]
fn words_speak_of_brokers_only_where_there_is_one() {
    for_each_user(|world| {
        let path = runtime(world, "podman/podman.sock");
        let broker = listener(&path);
        let with = doctor(world, &[], &[], &[RUNTIME]).stdout();
        let line = format!("  podman             {}: start containers", path.display());
        assert!(
            with.contains(&line) && with.contains("-> close the door with `--unix-sockets none`"),
            "{with}"
        );
        drop(broker);
        // The host may have brokers of its own.
        let alone = rows(&document(world, &[], &[], &[RUNTIME]), "brokers").is_empty();
        let without = doctor(world, &[], &[], &[RUNTIME]).stdout();
        assert_eq!(without.contains("Within reach"), !alone, "{without}");
        assert!(!without.contains("podman.sock"), "{without}");
    });
}
