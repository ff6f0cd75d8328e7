//! The card at a terminal of its own.

use super::asker::ASKS;
use crate::support::{for_each_user, text};

/// Starts who asks at a terminal, and reads what is said there.
const TERMINAL: &str = r"
import os, pty, select, sys, termios
child, terminal = pty.fork()
if child == 0:
    os.dup2(0, 9) # a terminal that nobody holds open is gone
    null = os.open('/dev/null', os.O_RDWR)
    for stream in 0, 1, 2: os.dup2(null, stream)
    os.execv(sys.argv[1], sys.argv[1:])
said = shown = b''
def until(words):
    global said, shown
    while words not in said:
        if not select.select([terminal], [], [], 60)[0]: sys.exit('silence after ' + repr(said))
        got = os.read(terminal, 65536)
        said += got; shown += got
    said = said.split(words, 1)[1]
def press(keys): os.write(terminal, keys)
def end():
    global shown
    while True:
        try: got = os.read(terminal, 65536)
        except OSError: break
        if not got: break
        shown += got
    return os.waitpid(child, 0)[1]
KEYS = b'[?] explain\r\n > '
";

/// What the one who asks is told when a person does this at the terminal.
fn told(script: &str) -> Vec<String> {
    let told = std::cell::RefCell::new(Vec::new());
    for_each_user(|world| {
        let mut command = world.command("python3");
        command
            .args(["-c", &format!("{TERMINAL}{script}")])
            .arg(world.harness())
            .args(ASKS);
        command.env("ASK_RESULT", world.outside("result")).env("ASK_AT", "tty");
        let outcome = world.outcome(command);
        assert!(outcome.output.status.success(), "{outcome}");
        told.borrow_mut().push(text(world.outside("result")));
    });
    told.into_inner()
}

fn assert_told(script: &str, word: &str) {
    for told in told(script) {
        assert!(told.starts_with(word), "{told}");
    }
}

#[test]
fn the_key_for_it_approves() {
    assert_told("until(KEYS); press(b'a'); end()", "permitted");
}

#[test]
fn what_was_typed_before_the_card_could_be_read_approves_nothing() {
    let script =
        "until(b'approval needed'); press(b'a'); until(b'LOOSER'); press(b'aaa\\na'); until(KEYS); press(b'd'); end()";
    assert_told(script, "rejected-by-person");
}

#[test]
fn enter_and_other_keys_approve_nothing() {
    let script = "until(KEYS)\nfor key in b'\\n', b'\\r', b'y', b' ':\n    press(key); until(b'nothing has happened'); until(KEYS)\npress(b'd'); end()";
    assert_told(script, "rejected-by-person");
}

#[test]
fn what_is_pasted_approves_nothing() {
    let script = "until(KEYS)\nfor paste in b'\\x1b[200~a\\x1b[201~', b'\\x1b[200~a\\n\\x1b[201~', b'a\\n', b'aaaa':\n    press(paste); until(b'ignored'); until(KEYS)\npress(b'd'); end()";
    assert_told(script, "rejected-by-person");
}

#[test]
fn a_no_can_have_a_reason_and_whoever_asked_is_told() {
    let script = "until(KEYS); press(b'r'); until(b'because: '); press(b'use the fixturf\\x7fe\\n'); end()";
    for told in told(script) {
        assert!(
            told.starts_with("rejected-by-person") && told.ends_with(": use the fixture"),
            "{told}"
        );
    }
}

#[test]
fn a_terminal_that_is_left_or_goes_away_cancels() {
    assert_told("until(KEYS); press(b'\\x03'); end()", "cancelled");
    assert_told("until(KEYS); press(b'\\x04'); end()", "cancelled");
}

#[test]
fn the_terminal_is_afterwards_as_it_was() {
    let script = r"
until(KEYS)
while termios.tcgetattr(terminal)[3] & termios.ECHO: pass
press(b'd'); until(b'denied'); until(b'\x1b[?2004l')
while not termios.tcgetattr(terminal)[3] & (termios.ECHO | termios.ICANON | termios.ISIG): pass
end()
";
    assert_told(script, "rejected-by-person");
}

#[test]
fn three_hundred_lines_with_escapes_are_shown_whole_and_harmless() {
    let script = r"
until(KEYS); press(b'd'); end()
shown = shown.replace(b'\x1b[?2004h', b'').replace(b'\x1b[?2004l', b'')
if b'\x1b' in shown or '\u202e'.encode() in shown: sys.exit('something can steer: ' + repr(shown))
for number in range(300):
    line = b' line %d \\u{1b}[2J\\u{1b}[1A\\u{202e}\r\n' % number
    if line not in shown: sys.exit('missing: ' + repr(line) + repr(shown))
if '«it is \\u{1b}[31mneeded»'.encode() not in shown: sys.exit('the reason is missing')
";
    assert_told(script, "rejected-by-person");
}
