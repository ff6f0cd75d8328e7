//! Which brokers there are, where they listen, and what they would do.
//!
//! Places are those of the programs' own documentation. What cannot act for a confined command is
//! not here: crontab(1) and at(1) rely on set-user-id programs, which gain nothing in a run.

use super::places::Place::{self, Abstract, Bus, Path, UpToComma, Url};

/// A kind of broker.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// What a command could have it do, as the end of that sentence.
    pub(super) does: &'static str,
    pub(super) places: &'static [Place],
}

/// Every kind, the mightiest first.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "docker",
        does: "start containers with any directory of this host in them",
        places: &[
            Path("/var/run/docker.sock"),
            Path("/run/docker.sock"),
            Url("DOCKER_HOST"),
            Path("$XDG_RUNTIME_DIR/docker.sock"),
            Path("$HOME/.docker/run/docker.sock"),
            Path("$HOME/.docker/desktop/docker.sock"),
        ],
    },
    Kind {
        name: "podman",
        does: "start containers with any directory of its user in them",
        places: &[
            Path("$XDG_RUNTIME_DIR/podman/podman.sock"),
            Path("/run/podman/podman.sock"),
            Url("CONTAINER_HOST"),
        ],
    },
    Kind {
        name: "containerd",
        does: "start containers with any directory of this host in them",
        places: &[
            Path("/run/containerd/containerd.sock"),
            Path("/run/k3s/containerd/containerd.sock"),
            Path("$XDG_RUNTIME_DIR/containerd/containerd.sock"),
        ],
    },
    Kind {
        name: "systemd",
        does: "start programs outside of the run",
        places: &[Path("$XDG_RUNTIME_DIR/systemd/private"), Path("/run/systemd/private")],
    },
    Kind {
        name: "session D-Bus",
        does: "start programs outside of the run, through systemd or any other program of the session",
        places: &[Bus("DBUS_SESSION_BUS_ADDRESS"), Path("$XDG_RUNTIME_DIR/bus")],
    },
    Kind {
        name: "system D-Bus",
        does: "ask the services of this system to act, as far as they let this user",
        places: &[
            Bus("DBUS_SYSTEM_BUS_ADDRESS"),
            Path("/run/dbus/system_bus_socket"),
            Path("/var/run/dbus/system_bus_socket"),
        ],
    },
    Kind {
        name: "libvirt",
        does: "start virtual machines with any file of its user in them",
        places: &[
            Path("/run/libvirt/libvirt-sock"),
            Path("/run/libvirt/virtqemud-sock"),
            Path("$XDG_RUNTIME_DIR/libvirt/libvirt-sock"),
            Path("$XDG_RUNTIME_DIR/libvirt/virtqemud-sock"),
        ],
    },
    Kind {
        name: "snapd",
        does: "install and remove snaps, as far as snapd lets this user",
        places: &[Path("/run/snapd.socket")],
    },
    Kind {
        name: "tmux",
        does: "type commands into a terminal outside of the run",
        places: &[UpToComma("TMUX"), Path("$TMUX_TMPDIR/tmux-*/*"), Path("/tmp/tmux-*/*")],
    },
    Kind {
        name: "screen",
        does: "type commands into a terminal outside of the run",
        places: &[Path("/run/screen/S-*/*"), Path("$SCREENDIR/*"), Path("$HOME/.screen/*")],
    },
    Kind {
        name: "emacs",
        does: "start programs outside of the run",
        places: &[
            Path("$EMACS_SOCKET_NAME"),
            Path("$XDG_RUNTIME_DIR/emacs/*"),
            Path("/tmp/emacs*/*"),
        ],
    },
    Kind {
        name: "neovim",
        does: "start programs outside of the run",
        places: &[
            Path("$NVIM"),
            Path("$NVIM_LISTEN_ADDRESS"),
            Path("$XDG_RUNTIME_DIR/nvim.*"),
            Path("/tmp/nvim.*/*/nvim.*"),
        ],
    },
    Kind {
        name: "VS Code",
        does: "open files and install extensions in the editor, outside of the run",
        places: &[
            Path("$VSCODE_IPC_HOOK_CLI"),
            Path("$VSCODE_IPC_HOOK"),
            Path("$XDG_RUNTIME_DIR/vscode-*.sock"),
            Path("/tmp/vscode-*.sock"),
        ],
    },
    Kind {
        name: "ssh-agent",
        does: "sign in to other machines with the keys of its user",
        places: &[
            Path("$SSH_AUTH_SOCK"),
            Path("$HOME/.ssh/agent/*"),
            Path("/tmp/ssh-*/agent.*"),
            Path("$XDG_RUNTIME_DIR/keyring/ssh"),
            Path("$XDG_RUNTIME_DIR/gcr/ssh"),
            Path("$XDG_RUNTIME_DIR/ssh-agent.socket"),
            Path("$XDG_RUNTIME_DIR/openssh_agent"),
        ],
    },
    Kind {
        name: "gpg-agent",
        does: "sign and decrypt with the keys of its user",
        places: &[
            Path("$XDG_RUNTIME_DIR/gnupg/S.gpg-agent"),
            Path("$XDG_RUNTIME_DIR/gnupg/S.gpg-agent.ssh"),
            Path("$GNUPGHOME/S.gpg-agent"),
            Path("$HOME/.gnupg/S.gpg-agent"),
        ],
    },
    Kind {
        name: "X11",
        does: "read what is shown and typed in other windows, and type into them",
        places: &[Path("/tmp/.X11-unix/X*"), Abstract("/tmp/.X11-unix/X")],
    },
    Kind {
        name: "Wayland",
        does: "open windows, and read and exchange what is copied",
        places: &[Path("$WAYLAND_DISPLAY"), Path("$XDG_RUNTIME_DIR/wayland-*")],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_written_once_and_from_the_root_on() {
        let mut seen = std::collections::HashSet::new();
        for place in KINDS.iter().flat_map(|kind| kind.places) {
            let text = match place {
                Path(text) => {
                    assert!(text.starts_with(['/', '$']), "{text}");
                    text
                }
                Abstract(text) | Bus(text) | Url(text) | UpToComma(text) => text,
            };
            assert!(seen.insert(text), "{text} is there twice");
        }
    }
}
