//! A program that answers: the request as JSON on its standard input, the decision as JSON on its
//! standard output. Whatever else it does is no answer, and no refusal either.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::PollFlags;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Deserialize;

use super::decision::Outcome;
use super::office::decider;
use super::request::Request;
use super::settings::Hook;
use super::vigil::{End, Said, Turn, Vigil};
use crate::error::Error;

/// What a hook may say.
const MAX_ANSWER: usize = 64 * 1024;
/// How long between two looks at whether it has ended.
const GLANCE: Duration = Duration::from_millis(10);

/// What a hook answers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    decision: Word,
    digest: String,
    reason: Option<String>,
    by: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    AllowOnce,
    Reject,
}

/// How asking it failed.
enum Broken {
    Nothing(String),
    Ended(End),
    Failed(Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Nothing(error.to_string())
    }
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Asks the program.
pub(super) fn ask(vigil: &Vigil<'_>, hook: &Hook, request: &Request) -> Result<Said, Error> {
    let name = hook.program.display();
    match converse(vigil, hook, request) {
        Ok(answer) => {
            let outcome = match answer.decision {
                Word::AllowOnce => Outcome::AllowedOnce,
                Word::Reject => Outcome::Rejected,
            };
            let principal = match &answer.by {
                Some(by) => format!("{by}, as {name} says"),
                None => name.to_string(),
            };
            Ok(Said::Decided(outcome, decider("hook", &principal, answer.reason)))
        }
        Err(Broken::Nothing(why)) => Ok(Said::Nothing(format!("{name}: {why}"))),
        Err(Broken::Ended(end)) => Ok(Said::Ended(end)),
        Err(Broken::Failed(error)) => Err(error),
    }
}

/// Tells the program of a request; what it makes of it is its own affair. Gives the end of the waiting,
/// if that came meanwhile.
pub(super) fn tell(vigil: &Vigil<'_>, hook: &Hook, request: &Request) -> Result<Option<End>, Error> {
    match hear(vigil, hook, request) {
        Ok(_) | Err(Broken::Nothing(_)) => Ok(None),
        Err(Broken::Ended(end)) => Ok(Some(end)),
        Err(Broken::Failed(error)) => Err(error),
    }
}

fn converse(vigil: &Vigil<'_>, hook: &Hook, request: &Request) -> Result<Answer, Broken> {
    let said = hear(vigil, hook, request)?;
    let answer: Answer = serde_json::from_slice(&said)
        .map_err(|error| Broken::Nothing(format!("its answer cannot be read: {error}")))?;
    if answer.digest != request.digest {
        return Err(Broken::Nothing("its answer is for another request".to_owned()));
    }
    Ok(answer)
}

/// What the program says to the request, when it ends well.
fn hear(vigil: &Vigil<'_>, hook: &Hook, request: &Request) -> Result<Vec<u8>, Broken> {
    check(&hook.program).map_err(Broken::Nothing)?;
    let question = serde_json::to_vec(&request.document()).map_err(io::Error::from)?;
    Running::start(hook)?.converse(vigil, &question, hook.timeout)
}

/// Whether nobody but this user and root can have written the program.
fn check(program: &Path) -> Result<(), String> {
    if !program.is_absolute() {
        return Err("it has to be named by an absolute path".to_owned());
    }
    let about = std::fs::metadata(program).map_err(|error| error.to_string())?;
    let owner = about.uid() == 0 || about.uid() == nix::unistd::geteuid().as_raw();
    if !owner || about.mode() & 0o022 != 0 {
        return Err("its file belongs to, or may be written by, somebody else".to_owned());
    }
    Ok(())
}

/// A hook that runs, in a process group of its own, which ends with this value.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Running {
    #[allow(
        clippy::disallowed_methods,
        reason = "a hook is the deployment's own program and is not confined; its end is awaited here"
    )]
    fn start(hook: &Hook) -> io::Result<Self> {
        let mut child = Command::new(&hook.program)
            .args(&hook.args)
            .env_clear()
            .envs(hook.env.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let Some(output) = output else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        if let Some(input) = &input {
            fcntl(input, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(Self { child, input, output })
    }

    /// Hands over the question and takes what is said, until it has ended well.
    fn converse(&mut self, vigil: &Vigil<'_>, question: &[u8], timeout: Duration) -> Result<Vec<u8>, Broken> {
        let until = Instant::now() + timeout;
        let late = || Broken::Nothing(format!("it has not answered within {timeout:?}"));
        let mut left = question;
        let mut said = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            if let Some(input) = &mut self.input {
                match input.write(left) {
                    Ok(count) => left = &left[count..],
                    Err(error) if is_no_matter(&error) => {}
                    // It may know enough.
                    Err(_) => left = &[],
                }
                if left.is_empty() {
                    self.input = None;
                }
            }
            match self.output.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    said.extend_from_slice(&buffer[..count]);
                    if said.len() > MAX_ANSWER {
                        return Err(Broken::Nothing(format!("it said more than {MAX_ANSWER} bytes")));
                    }
                    continue;
                }
                Err(error) if is_no_matter(&error) => {}
                Err(error) => return Err(error.into()),
            }
            let mut fds = vec![(self.output.as_fd(), PollFlags::POLLIN)];
            fds.extend(self.input.as_ref().map(|input| (input.as_fd(), PollFlags::POLLOUT)));
            match vigil.wait(&fds, Some(until.saturating_duration_since(Instant::now())))? {
                Turn::Ready => {}
                Turn::Passed => return Err(late()),
                Turn::Ended(end) => return Err(Broken::Ended(end)),
            }
        }
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(said),
                Some(status) => return Err(Broken::Nothing(format!("it failed ({status})"))),
                None if Instant::now() >= until => return Err(late()),
                None => match vigil.wait(&[], Some(GLANCE))? {
                    Turn::Ended(end) => return Err(Broken::Ended(end)),
                    Turn::Ready | Turn::Passed => {}
                },
            }
        }
    }
}

fn is_no_matter(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Drop for Running {
    /// Ends the program and whatever it has left in its group.
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}
