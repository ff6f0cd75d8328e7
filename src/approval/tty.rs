//! The card on the terminal of whoever asks: /dev/tty and nothing else, so that no pipe can answer.
//!
//! There is no default. What was typed before the card had been there for a second is thrown away, what
//! is pasted is ignored, Enter alone does nothing, and a terminal that goes away cancels.

mod keys;
mod terminal;

use std::time::Duration;

use super::card::{Layout, card};
use super::clock::Moment;
use super::decision::Outcome;
use super::office::decider;
use super::request::Request;
use super::vigil::{End, Said, Turn, Vigil};
use crate::audit::Decider;
use crate::error::Error;
use keys::Pressed;
use terminal::Terminal;

/// How long the card is there before a key counts.
const DEAD_TIME: Duration = Duration::from_secs(1);

const KEYS: &str = " [a] run once   [d] deny   [r] deny with reason   [?] explain";

const EXPLANATION: &str = "
 A command was refused something, and asks to be run once more with more rights than it had.
 a   allows one start of exactly what the card shows, with exactly what LOOSER names. Nothing of it
     is remembered. If the program, its directory or its environment change before, it does not start.
     What scripts and files the program reads is not checked: see CWD and RUN.
 d   refuses. Nothing runs, and whoever asked is told that it was refused.
 r   refuses, and tells whoever asked why.
 REASON is what whoever asks has said. Nobody has checked it.
";

/// Why a terminal's conversation ended without a word from the person.
pub(super) enum Broken {
    /// There is no terminal to talk to.
    None(String),
    /// The terminal was closed, or the person wants none of it.
    Closed(String),
    /// The waiting ended.
    Ended(End),
    /// The host failed.
    Failed(Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Asks at the terminal.
pub(super) fn ask(vigil: &Vigil<'_>, request: &Request) -> Result<Said, Error> {
    match converse(vigil, request) {
        Ok((outcome, reason)) => Ok(Said::Decided(outcome, seen("tty", reason))),
        Err(Broken::None(why)) => Ok(Said::Nothing(why)),
        Err(Broken::Closed(why)) => Ok(Said::Decided(Outcome::Cancelled, decider("tty", &whoever(), Some(why)))),
        Err(Broken::Ended(end)) => Ok(Said::Ended(end)),
        Err(Broken::Failed(error)) => Err(error),
    }
}

/// Whoever sits at the terminal, as far as it is known.
pub(super) fn whoever() -> String {
    format!("uid {}", nix::unistd::getuid())
}

fn seen(kind: &str, reason: Option<String>) -> Decider {
    let mut by = decider(kind, &whoever(), reason);
    by.assurance = Some("seen".to_owned());
    by
}

fn converse(vigil: &Vigil<'_>, request: &Request) -> Result<(Outcome, Option<String>), Broken> {
    let mut terminal = Terminal::open().map_err(Broken::None)?;
    present(&mut terminal, vigil, request)?;
    loop {
        terminal.say(vigil, &format!("{KEYS}\n > "))?;
        match terminal.key(vigil)? {
            Pressed::Byte(b'a') => {
                terminal.say(vigil, "run once\n")?;
                return Ok((Outcome::AllowedOnce, None));
            }
            Pressed::Byte(b'd') => {
                terminal.say(vigil, "denied\n")?;
                return Ok((Outcome::Rejected, None));
            }
            Pressed::Byte(b'r') => {
                let reason = terminal.line(vigil, "denied, because: ")?;
                return Ok((Outcome::Rejected, Some(reason).filter(|it| !it.is_empty())));
            }
            Pressed::Byte(b'?') => terminal.say(vigil, EXPLANATION)?,
            Pressed::Byte(_) | Pressed::Enter => {
                terminal.say(vigil, "that is none of the keys; nothing has happened\n")?;
            }
            Pressed::Several => terminal.say(vigil, "what is pasted or typed ahead is ignored\n")?,
        }
    }
}

/// Shows the card, and forgets what was typed before it could be read.
fn present(terminal: &mut Terminal, vigil: &Vigil<'_>, request: &Request) -> Result<(), Broken> {
    let now = Moment::now().map_err(super::office::host)?;
    let layout = Layout {
        width: terminal.width(),
        colour: true,
    };
    let text = card(request, &now, layout);
    terminal.say(
        vigil,
        &format!("\n{text} (no key counts before a second has passed; Ctrl-C leaves it unanswered)\n"),
    )?;
    match vigil.wait(&[], Some(DEAD_TIME))? {
        Turn::Ended(end) => return Err(Broken::Ended(end)),
        Turn::Ready | Turn::Passed => {}
    }
    terminal.forget_input();
    Ok(())
}

/// Shows the card to whoever answers from elsewhere, and has them type what `expected` says; tells
/// whether they did.
pub(super) fn confirm(vigil: &Vigil<'_>, request: &Request, question: &str, expected: &str) -> Result<bool, Broken> {
    let mut terminal = Terminal::open().map_err(Broken::None)?;
    present(&mut terminal, vigil, request)?;
    let typed = terminal.line(vigil, question)?;
    Ok(typed.trim().eq_ignore_ascii_case(expected))
}
