//! A terminal under bubblewrap: its keys, its size and its name are the command's, its mode is not.

use super::assert_prints;

/// Opens a terminal for the rest of a script, in which `run` starts a command through bubblewrap at it.
const TERMINAL: &str = r"
import fcntl, os, pty, select, signal, struct, sys, termios
child, terminal = pty.fork()
if child == 0:
    os.read(0, 1)
    os.execvp('bash', ['bash', '-c', COMMAND, sys.argv[1]])
said = b''
def until(words):
    global said
    while words not in said:
        if not select.select([terminal], [], [], 30)[0]: sys.exit('silence after ' + repr(said))
        said += os.read(terminal, 4096)
    said = said.split(words, 1)[1]
def size(rows, columns): fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
name = '/dev/pts/%d' % struct.unpack('i', fcntl.ioctl(terminal, 0x80045430, bytes(4)))
def mode(): return oct(os.stat(name).st_mode & 0o777)
size(33, 77)
os.write(terminal, b'\n')
";

fn at_a_terminal(command: &str, rest: &str) -> String {
    format!("COMMAND = r'''{command}\n'''\n{TERMINAL}{rest}")
}

#[test]
fn the_key_for_an_interrupt_reaches_the_command_and_nobody_who_makes_the_boundary() {
    let command = "\"$0\" run -m workspace-write --backend bwrap -- bash -c 'trap \"echo caught; exit 7\" INT; echo re''ady; while :; do sleep 0.05; done'; echo \"status $?\"";
    let rest = "until(b'ready'); os.write(terminal, b'\\x03'); until(b'caught'); until(b'status 7'); print('done')";
    assert_prints(&at_a_terminal(command, rest), "done\n");
}

#[test]
fn a_command_without_a_trap_dies_of_the_key_and_that_is_told() {
    let command = "trap : INT; \"$0\" run -m workspace-write --backend bwrap -- bash -c 'echo re''ady; exec sleep 600'; echo \"status $?\"";
    let rest = "until(b'ready'); os.write(terminal, b'\\x03'); until(b'status 130'); print('done')";
    assert_prints(&at_a_terminal(command, rest), "done\n");
}

#[test]
fn the_size_of_the_window_is_the_commands_and_so_is_its_change() {
    let command = "\"$0\" run -m workspace-write --backend bwrap -- bash -c 'trap \"stty size; exit 0\" WINCH; stty size; while :; do sleep 0.05; done'";
    let rest = "until(b'33 77'); size(44, 88); until(b'44 88'); print('done')";
    assert_prints(&at_a_terminal(command, rest), "done\n");
}

#[test]
fn the_terminal_is_one_inside_and_nothing_can_be_typed_into_it() {
    let command = "\"$0\" run -m workspace-write --backend bwrap -- bash -c 'test -t 0 && test -t 1 && tty | grep ^/dev/ && echo to > /dev/tty && \
        python3 -c \"import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b\\\"x\\\")\"; echo sta''tus $?'";
    assert_prints(
        &at_a_terminal(
            command,
            "until(b'/dev/'); until(b'to'); until(b'Error'); until(b'status 1'); print('done')",
        ),
        "done\n",
    );
}

#[test]
fn the_mode_of_the_terminal_stays_as_it_is_and_everything_is_governed() {
    let command = "\"$0\" run -m workspace-write --backend bwrap --report out -- bash -c 'chmod 666 $(tty) /dev/tty /dev/pts/*; \
        python3 -c \"import os; os.fchmod(0, 0o666)\"; echo en''ded'; \
        grep -o '\"ungoverned\":[^]]*]' out; rm out; echo la''st";
    let rest = "before = mode()\nuntil(b'ended')\n\
        assert mode() == before, mode()\n\
        until(b'\"ungoverned\":[]'); until(b'last'); print('done')";
    assert_prints(&at_a_terminal(command, rest), "done\n");
}
