//! Doors that a mode does not speak of, and that a policy closes.

use ringfence::SandboxMode::{self, DangerFullAccess, ReadOnly, WorkspaceWrite};
use serde_json::json;

use crate::support::{CONTAINER, Case, for_each_user};

/// Makes a socket of every family there is, reaches for a port that nobody listens on, and makes a pair.
const SOCKETS: &str = r"
import errno, socket
made = []
for family in range(1, 46):
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW:
        try:
            socket.socket(family, kind); made.append(family)
        except PermissionError as error:
            if error.errno == errno.EPERM: made.append(family)  # the system's own refusal: a privilege is missing
        except OSError: pass
for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
    for family, address in (socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1'):
        try:
            socket.socket(family, kind).connect((address, 9)); print('reached')
        except ConnectionRefusedError: print('reached')
        except OSError: pass
try:
    left, right = socket.socketpair(); left.send(b'x'); print('pair', right.recv(1) == b'x')
except OSError: print('no pair')
made = set(made)
print('unix', socket.AF_UNIX in made)
print('internet', bool({socket.AF_INET, socket.AF_INET6, socket.AF_PACKET, 40} & made))
";

const MODES: [SandboxMode; 2] = [ReadOnly, WorkspaceWrite];

fn case(mode: SandboxMode, options: &[&str]) -> Case {
    Case::new(mode)
        .options(options.iter().copied())
        .argv(["python3", "-c", SOCKETS])
}

#[test]
fn doors_are_open_unless_a_policy_closes_them() {
    for mode in MODES {
        case(mode, &[]).run_as_each_user(|_, report| {
            assert!(report.stdout().starts_with("reached\n"), "{report}");
            assert!(
                report.stdout().ends_with("pair True\nunix True\ninternet True\n"),
                "{report}"
            );
            assert_eq!(
                report.field("/sandbox/notConfined"),
                &json!(["network", "unix-sockets"])
            );
        });
    }
}

#[test]
fn a_closed_network_is_reached_by_no_socket_of_any_family() {
    for mode in MODES {
        for evidence in ["auto", "strict", "off"] {
            case(mode, &["--network", "none", "--evidence", evidence]).run_as_each_user(|_, report| {
                assert_eq!(report.stdout(), "pair True\nunix True\ninternet False\n", "{report}");
                assert_eq!(report.field("/sandbox/notConfined"), &json!(["unix-sockets"]));
                report.assert_exit(0).assert_denied(false).assert_full();
            });
        }
    }
}

#[test]
fn closed_unix_sockets_leave_pairs_and_the_network() {
    for mode in MODES {
        case(mode, &["--unix-sockets", "none"]).run_as_each_user(|_, report| {
            assert!(report.stdout().starts_with("reached\n"), "{report}");
            assert!(
                report.stdout().ends_with("pair True\nunix False\ninternet True\n"),
                "{report}"
            );
            assert_eq!(report.field("/sandbox/notConfined"), &json!(["network"]));
        });
    }
}

#[test]
fn both_can_be_closed_where_there_are_no_namespaces() {
    let options = ["--network", "none", "--unix-sockets", "none"];
    case(ReadOnly, &options)
        .inside(CONTAINER)
        .run_as_each_user(|_, report| {
            assert_eq!(report.stdout(), "pair True\nunix False\ninternet False\n", "{report}");
            assert_eq!(report.field("/sandbox/notConfined"), &json!(["process-visibility"]));
        });
}

#[test]
fn a_broker_that_listens_nearby_is_out_of_reach_behind_a_closed_door() {
    for_each_user(|world| {
        let listen = "exec python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.bind('$OUT/broker'); \
            s.listen(); print('ready', flush=True); s.accept()[0].send(b'served')\"";
        let _broker = world.neighbour(listen);
        let ask = "import socket\ntry:\n s = socket.socket(socket.AF_UNIX); s.connect('$OUT/broker'); print(s.recv(6))\n\
            except OSError as error: print(error.strerror)";
        let closed = Case::new(WorkspaceWrite)
            .options(["--unix-sockets", "none"])
            .argv(["python3", "-c", ask])
            .run_in(world);
        assert_eq!(closed.stdout(), "Permission denied\n", "{closed}");
        let open = Case::new(WorkspaceWrite).argv(["python3", "-c", ask]).run_in(world);
        assert_eq!(open.stdout(), "b'served'\n", "{open}");
    });
}

#[test]
fn a_profile_closes_doors_and_an_option_stands_above_it() {
    for_each_user(|world| {
        let profile = "schema = 1\nname = \"quiet\"\ndescription = \"x\"\n[policy]\nmode = \"read-only\"\n\
            network = \"none\"\nunix_sockets = \"none\"\n";
        std::fs::write(world.inside("quiet.toml"), profile).unwrap();
        for (options, open) in [
            (&["--profile", "$W/quiet.toml"][..], json!([])),
            (&["--profile", "$W/quiet.toml", "--network", "host"], json!(["network"])),
        ] {
            let report = Case::without_a_mode()
                .options(options.iter().copied())
                .argv(["true"])
                .run_in(world);
            assert_eq!(report.field("/sandbox/notConfined"), &open, "{report}");
        }
    });
}

#[test]
fn full_access_closes_no_door_and_says_so() {
    Case::new(DangerFullAccess)
        .options(["--network", "none"])
        .argv(["touch", "ran"])
        .run_as_each_user(|world, report| {
            report.assert_error("POLICY_INVALID");
            assert!(report.text("/error/message").contains("network"), "{report}");
            assert!(!world.inside("ran").exists());
        });
}
