//! A terminal that a command shares with the caller: who has it, and when.

mod under_bwrap;

use crate::support::for_each_user;

/// Runs an interactive shell through Ringfence at a terminal, leaves it, and reads a line after it.
const AT_A_TERMINAL: &str = r#"
import os, pty, select, sys
script = '"$0" run -m workspace-write -- bash --norc -i; read -r line; echo "got $line"; exit 7'
child, terminal = pty.fork()
if child == 0:
    os.execvp('bash', ['bash', '-c', script, sys.argv[1]])
said = b''
def until(words):
    global said
    while words not in said:
        if not select.select([terminal], [], [], 30)[0]: sys.exit('silence after ' + repr(said))
        said += os.read(terminal, 4096)
    said = said.split(words, 1)[1]
os.write(terminal, b'echo in$((20+2))\n'); until(b'in22')
os.write(terminal, b'exit\n'); until(b'exit')
os.write(terminal, b'hello\n'); until(b'got hello')
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

/// Starts a command in a shell with job control, waits until it has stopped itself, sees that the shell
/// has its terminal back, and continues it.
const STOPS_ITSELF: &str = r#"
import os, pty, re, select, sys
child, terminal = pty.fork()
if child == 0:
    os.environ['PS1'] = 'OUTER> '
    os.execvp('bash', ['bash', '--norc', '-i'])
said = b''
def until(words):
    global said
    while words not in said:
        if not select.select([terminal], [], [], 30)[0]: sys.exit('silence after ' + repr(said))
        said += os.read(terminal, 4096)
    said = said.split(words, 1)[1]
def line(text): os.write(terminal, text.encode() + b'\n')
until(b'OUTER> ')
for mode in 'workspace-write', 'danger-full-access':
    stop = "python3 -c 'import os, signal; os.kill(0, signal.SIGTSTP); print(40 + 2)'"
    line(f'{sys.argv[1]} run -m {mode} -- {stop}')
    until(b'Stopped'); until(b'OUTER> ')
    line('echo here$((20+2))'); until(b'here22'); until(b'OUTER> ')
    line('fg'); until(b'\n42'); until(b'OUTER> ')
    line('jobs; echo none$((20+2))'); until(b'none22'); until(b'OUTER> ')
line('exit')
print('done')
"#;

/// Runs the script at a terminal of its own, as each user, and asserts what it prints of it.
fn assert_prints(script: &str, expected: &str) {
    for_each_user(|world| {
        let program = world.program();
        let mut command = world.command("python3");
        command.args(["-c", script]).arg(program);
        let outcome = world.outcome(command);
        assert_eq!(outcome.stdout(), expected, "{outcome}");
    });
}

#[test]
fn a_command_that_stops_itself_gives_the_terminal_back_and_goes_on_when_it_is_continued() {
    assert_prints(STOPS_ITSELF, "done\n");
}

#[test]
fn a_terminal_is_its_owners_again_when_a_shell_inside_has_ended() {
    assert_prints(AT_A_TERMINAL, "7\n");
}
