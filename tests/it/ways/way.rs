//! One row: an attempt, and what it needs to be one.

use ringfence::SandboxMode::{self, ReadOnly, WorkspaceWrite};

/// What every attempt in Python begins with. `T` is the directory outside, `W` the workspace, `S` a
/// place where the attempt can write, `N` the neighbour.
pub(super) const PRELUDE: &str = r"
import ctypes, fcntl, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
T, W = os.environ['T'], os.environ['W']
S, N = os.environ.get('TMPDIR', W), int(os.environ.get('N') or 0)
X86 = os.uname().machine == 'x86_64'
AT, EMPTY = -100, 0x1000
def call(number, *arguments):
    # A number, or those of x86-64 and of the architectures that came later.
    if isinstance(number, tuple): number = number[not X86]
    plain = [ctypes.c_long(a) if isinstance(a, int) else a.encode() if isinstance(a, str) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *plain)
    if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def attempt(*functions):
    for function in functions:
        try: function()
        except Exception as error: print(repr(error), file=sys.stderr)
def put(path, text='x'):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(fd, text.encode())
    os.close(fd)
def xattr(path, follow=True): os.setxattr(path, 'user.new', b'1', follow_symlinks=follow)
def own_namespaces(more=0):
    # A user namespace and a mount namespace; where the ids cannot be mapped it goes on without.
    ids = os.getuid(), os.getgid()
    call((272, 97), 0x10000000 | 0x20000 | more)
    for name, text in ('setgroups', 'deny'), ('uid_map', '0 %d 1' % ids[0]), ('gid_map', '0 %d 1' % ids[1]):
        attempt(lambda: open('/proc/self/' + name, 'w').write(text))
    mount('none', '/', None, 0x44000)
def mount(source, target, kind, flags=0, data=None): call((165, 40), source, target, kind, flags, data)
def receive():
    # What the neighbour hands over at its socket.
    import socket
    link = socket.socket(socket.AF_UNIX)
    link.connect(os.environ['HOME'] + '/socket')
    return socket.recv_fds(link, 1, 4)[1]
def hand_over(*descriptors):
    # The other side of it.
    import socket
    listener = socket.socket(socket.AF_UNIX)
    attempt(lambda: os.unlink(os.environ['HOME'] + '/socket'))
    listener.bind(os.environ['HOME'] + '/socket')
    listener.listen()
    print('ready', flush=True)
    while True:
        link = listener.accept()[0]
        socket.send_fds(link, [b'x'], list(descriptors))
        # It does not go on before the other side has closed.
        link.recv(1)
";

/// How an attempt is written down.
#[derive(Clone, Copy, Debug)]
enum Text {
    Shell(&'static str),
    Python(&'static str),
}

/// For whom an attempt succeeds where nobody confines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Works {
    /// For each user.
    ForEveryone,
    /// For root alone. It is tried as the others all the same.
    ForRoot,
}

/// A program that an attempt uses: its name in `$HOME`, its source, and options of the compiler.
pub(super) type Tool = (&'static str, &'static str, &'static str);

/// One row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    text: Text,
    pub(super) setup: &'static str,
    pub(super) before: &'static str,
    pub(super) neighbour: &'static str,
    pub(super) through: &'static str,
    pub(super) witness: &'static str,
    pub(super) undo: &'static str,
    pub(super) tools: &'static [Tool],
    pub(super) works: Works,
    pub(super) modes: &'static [SandboxMode],
    pub(super) open: &'static [&'static str],
    /// It is about something of which the host has only one.
    pub(super) alone: bool,
    pub(super) here: fn() -> Result<(), &'static str>,
}

/// An attempt in bash. `$T` is the directory outside, `$S` a place where the attempt can write.
pub(super) const fn shell(script: &'static str) -> Way {
    Way::new(Text::Shell(script))
}

/// An attempt in Python, after [`PRELUDE`].
pub(super) const fn python(program: &'static str) -> Way {
    Way::new(Text::Python(program))
}

impl Way {
    const fn new(text: Text) -> Self {
        Self {
            text,
            setup: "",
            before: "",
            neighbour: "",
            through: "",
            witness: "",
            undo: "",
            tools: &[],
            works: Works::ForEveryone,
            modes: &[WorkspaceWrite, ReadOnly],
            open: &[],
            alone: false,
            here: || Ok(()),
        }
    }

    /// What more lies in `$T` and in the workspace: bash, as the user.
    pub(super) const fn setup(self, setup: &'static str) -> Self {
        Self { setup, ..self }
    }

    /// The same as the user of the harness, afterwards. `$U` is the user's number.
    pub(super) const fn before(self, before: &'static str) -> Self {
        Self { before, ..self }
    }

    /// A process of the user's beside the run: Python after [`PRELUDE`], which prints `ready`.
    pub(super) const fn neighbour(self, neighbour: &'static str) -> Self {
        Self { neighbour, ..self }
    }

    /// What the caller's shell does before it starts the run.
    pub(super) const fn through(self, through: &'static str) -> Self {
        Self { through, ..self }
    }

    /// Prints what is outside and lies in no directory of the world: bash, as the user of the harness.
    pub(super) const fn witness(self, witness: &'static str) -> Self {
        Self { witness, ..self }
    }

    /// Puts things right after an attempt that succeeded: bash, as the user of the harness.
    pub(super) const fn undo(self, undo: &'static str) -> Self {
        Self { undo, ..self }
    }

    /// Programs that are compiled for it.
    pub(super) const fn tools(self, tools: &'static [Tool]) -> Self {
        Self { tools, ..self }
    }

    /// It takes root to succeed.
    pub(super) const fn for_root(self) -> Self {
        Self {
            works: Works::ForRoot,
            ..self
        }
    }

    /// It makes no sense in `read-only`.
    pub(super) const fn in_workspace_write(self) -> Self {
        Self {
            modes: &[WorkspaceWrite],
            ..self
        }
    }

    /// It changes metadata, which `ungoverned` may name where there are no namespaces.
    pub(super) const fn metadata(self) -> Self {
        Self {
            open: &["metadata"],
            ..self
        }
    }

    /// It is about something of which the host has only one, so nothing like it runs beside it.
    pub(super) const fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    /// What the host must have for it to succeed.
    pub(super) const fn needs(self, here: fn() -> Result<(), &'static str>) -> Self {
        Self { here, ..self }
    }

    /// The command that makes the attempt, and says `tried` when it is over.
    pub(super) fn words(&self, tried: &str) -> Vec<String> {
        match self.text {
            Text::Shell(script) => {
                let script = format!("S=${{TMPDIR:-$W}}\n{script}\necho {tried}\nexit 0");
                vec!["bash".to_owned(), "-c".to_owned(), script]
            }
            Text::Python(program) => {
                let indented = program.trim().replace('\n', "\n    ");
                let program = format!(
                    "{PRELUDE}\ntry:\n    {indented}\nexcept Exception as error: print(repr(error), file=sys.stderr)\nprint('{tried}', flush=True)\nos._exit(0)"
                );
                ["python3", "-B", "-I", "-S", "-c", &program]
                    .map(str::to_owned)
                    .to_vec()
            }
        }
    }
}
